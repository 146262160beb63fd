"""Which webhooks a write concerns: rules, selectors and operations, as pure functions over the configurations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from stromboli.api import kinds
from stromboli.localcluster.extending import AdmissionRequest
from stromboli.localcluster.labels import selects
from stromboli.localcluster.storage import Key, Object, Store

EXEMPT = (kinds.MUTATING_WEBHOOKS, kinds.VALIDATING_WEBHOOKS)
"""Kinds no webhook is called for, so that a broken one can always be repaired."""


@dataclass(frozen=True, slots=True)
class Hook:
    """One entry of a webhook configuration."""

    configuration: str
    spec: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The webhook's full name, as messages show it."""
        return str(self.spec["name"])

    @property
    def client_config(self) -> Mapping[str, Any]:
        """Where it listens."""
        return self.spec.get("clientConfig") or {}

    @property
    def ignores_failures(self) -> bool:
        """Whether the write goes on when the webhook cannot be asked."""
        return bool(self.spec.get("failurePolicy", "Fail") == "Ignore")

    @property
    def timeout(self) -> int:
        """Seconds to wait for an answer."""
        return int(self.spec.get("timeoutSeconds") or 10)

    @property
    def supports_dry_run(self) -> bool:
        """Whether calling it in a dry run changes nothing elsewhere."""
        return self.spec.get("sideEffects") in ("None", "NoneOnDryRun")

    @property
    def may_run_again(self) -> bool:
        """Whether it wants to see what later webhooks made of the object."""
        return self.spec.get("reinvocationPolicy") == "IfNeeded"


def hooks(kind: Literal["mutating", "validating"], store: Store) -> list[Hook]:
    """All webhooks in the order in which they are called: by configuration name, then as written."""
    source = kinds.MUTATING_WEBHOOKS if kind == "mutating" else kinds.VALIDATING_WEBHOOKS
    return [
        Hook(stored.key.name, spec) for stored in store.list(source) for spec in stored.object.get("webhooks") or ()
    ]


def matching(request: AdmissionRequest, found: Sequence[Hook], store: Store) -> Iterator[Hook]:
    """The webhooks that a write concerns, conditions (``matchConditions``) aside."""
    if request.kind in EXEMPT:
        return
    for hook in found:
        if concerns(hook.spec, request) and _selected(hook.spec, request, store):
            yield hook


def concerns(spec: Mapping[str, Any], request: AdmissionRequest) -> bool:
    """Whether one of a webhook's rules covers the write's operation, group, version, resource and scope."""
    return any(_rule(rule, request) for rule in spec.get("rules") or ())


def _rule(rule: Mapping[str, Any], request: AdmissionRequest) -> bool:
    kind = request.kind
    return (
        _listed(rule.get("operations"), request.operation)
        and _listed(rule.get("apiGroups"), kind.group)
        and _listed(rule.get("apiVersions"), kind.version)
        and _scope(rule.get("scope") or "*", kind.namespaced)
        and any(_resource(pattern, kind.plural, request.subresource) for pattern in rule.get("resources") or ())
    )


def _listed(values: Sequence[str] | None, wanted: str) -> bool:
    return values is not None and ("*" in values or wanted in values)


def _scope(scope: str, namespaced: bool) -> bool:
    return scope == "*" or scope == ("Namespaced" if namespaced else "Cluster")


def _resource(pattern: str, plural: str, subresource: str) -> bool:
    """``pods``, ``pods/status``, ``pods/*``, ``*/status``, ``*`` (no subresources) or ``*/*`` (everything)."""
    if pattern == "*/*":
        return True
    resource, _, part = pattern.partition("/")
    return resource in ("*", plural) and (part == subresource or (part == "*" and bool(subresource)))


def _selected(spec: Mapping[str, Any], request: AdmissionRequest, store: Store) -> bool:
    namespaces, objects = spec.get("namespaceSelector") or {}, spec.get("objectSelector") or {}
    if namespaces and (labels := _namespace_labels(request, store)) is not None and not selects(namespaces, labels):
        return False
    return not objects or any(selects(objects, _labels(obj)) for obj in (request.obj, request.old) if obj is not None)


def _namespace_labels(request: AdmissionRequest, store: Store) -> Mapping[str, str] | None:
    """Labels that a namespaceSelector looks at; None for cluster-scoped objects, which it never excludes."""
    if request.kind == kinds.NAMESPACES:
        return _labels(request.obj if request.obj is not None else request.old or {})
    if not request.kind.namespaced:
        return None
    stored = store.get(Key.of(kinds.NAMESPACES, None, request.namespace))
    return _labels(stored.object) if stored else {}


def _labels(obj: Object) -> Mapping[str, str]:
    return obj.get("metadata", {}).get("labels") or {}
