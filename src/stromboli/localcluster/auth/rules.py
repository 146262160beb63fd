"""RBAC rules as pure functions: does a PolicyRule cover a request, and how is a refusal worded?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from stromboli.localcluster.extending import Attributes

Rule: TypeAlias = Mapping[str, Any]


def combined(wanted: Attributes) -> str:
    """``resource/subresource``, or the resource alone."""
    return f"{wanted.resource}/{wanted.subresource}" if wanted.subresource else wanted.resource


def covers(rule: Rule, wanted: Attributes) -> bool:
    """Whether one PolicyRule allows a request."""
    if not _listed(rule.get("verbs"), wanted.verb):
        return False
    if wanted.path:
        return any(_path_matches(pattern, wanted.path) for pattern in rule.get("nonResourceURLs") or ())
    if not _listed(rule.get("apiGroups"), wanted.group):
        return False
    if not any(_resource_matches(pattern, wanted) for pattern in rule.get("resources") or ()):
        return False
    names = rule.get("resourceNames") or ()
    return not names or wanted.name in names


def any_covers(rules: Iterable[Rule], wanted: Attributes) -> bool:
    """Whether one of the rules allows a request."""
    return any(covers(rule, wanted) for rule in rules)


def subject_matches(subject: Mapping[str, Any], user: str, groups: Sequence[str], namespace: str) -> bool:
    """Whether a binding's subject means this user; ``namespace`` is that of the binding."""
    match subject.get("kind"):
        case "User":
            return bool(subject.get("name") == user)
        case "Group":
            return subject.get("name") in groups
        case "ServiceAccount":
            where = subject.get("namespace") or namespace
            return bool(where) and user == f"system:serviceaccount:{where}:{subject.get('name')}"
        case _:
            return False


def refusal(user: str, wanted: Attributes, reason: str = "") -> str:
    """What a 403 says, in kube-apiserver's words (without the ``pods is forbidden: `` in front)."""
    if wanted.path:
        text = f'User "{user}" cannot {wanted.verb} path "{wanted.path}"'
    else:
        where = f'in the namespace "{wanted.namespace}"' if wanted.namespace else "at the cluster scope"
        text = f'User "{user}" cannot {wanted.verb} resource "{combined(wanted)}" in API group "{wanted.group}" {where}'
    return f"{text}: {reason}" if reason else text


def _listed(values: Sequence[str] | None, wanted: str) -> bool:
    return values is not None and ("*" in values or wanted in values)


def _resource_matches(pattern: str, wanted: Attributes) -> bool:
    if pattern in ("*", combined(wanted)):
        return True
    return bool(wanted.subresource) and pattern == f"*/{wanted.subresource}"


def _path_matches(pattern: str, path: str) -> bool:
    return pattern == path or (pattern.endswith("*") and path.startswith(pattern[:-1]))
