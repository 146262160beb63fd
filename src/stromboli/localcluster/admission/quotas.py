"""ResourceQuota: what a namespace uses, and whether one more object fits.

Use is counted from the stored objects at the moment of the question. Counted are pods (``pods``, ``count/pods``,
requests and limits of cpu, memory, ephemeral storage and extended resources) and the number of objects of any kind
(``count/PLURAL.GROUP`` and the old short names). Scopes: Terminating, NotTerminating, BestEffort, NotBestEffort and
PriorityClass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from stromboli.api import kinds, quantities
from stromboli.api.kinds import Kind
from stromboli.localcluster.extending import AdmissionRequest
from stromboli.localcluster.statuses import forbidden
from stromboli.localcluster.storage import Object, Store

Usage = dict[str, Fraction]

_COUNTED: tuple[Kind, ...] = (
    kinds.CONFIG_MAPS, kinds.SECRETS, kinds.SERVICES, kinds.PERSISTENT_VOLUME_CLAIMS,
    kinds.REPLICATION_CONTROLLERS, kinds.RESOURCE_QUOTAS,
)  # fmt: skip
_SHORT_NAMES = {kind.plural: kind for kind in _COUNTED}
_NATIVE = ("cpu", "memory", "ephemeral-storage")
_BINARY = ("memory", "storage")


def check_quotas(request: AdmissionRequest, store: Store) -> None:
    """Refuse a new object that does not fit into every quota of its namespace."""
    if request.operation != "CREATE" or request.subresource or request.obj is None or not request.kind.namespaced:
        return
    for stored in store.list(kinds.RESOURCE_QUOTAS, request.namespace):
        _check(stored.object, request, request.obj, store)


def _check(quota: Object, request: AdmissionRequest, obj: Object, store: Store) -> None:
    hard = (quota.get("spec") or {}).get("hard") or {}
    asked = {name: amount for name, amount in usage_of(request.kind, obj).items() if name in hard}
    if request.kind == kinds.PODS:
        if not in_scope(quota, obj):
            return
        missing = sorted(_unspecified(hard, obj))
        if missing:
            names = _sources(missing, obj)
            why = f"failed quota: {quota['metadata']['name']}: must specify {names}"
            raise forbidden(request.kind, request.name, why)
    asked = {name: amount for name, amount in asked.items() if amount > 0}
    if not asked:
        return
    used = quota_usage(quota, request.namespace, store)
    over = sorted(name for name in asked if used.get(name, 0) + asked[name] > quantities.parse(hard[name]))
    if over:
        why = (
            f"exceeded quota: {quota['metadata']['name']}, requested: {_listed(over, asked)}, "
            f"used: {_listed(over, used)}, limited: {','.join(f'{name}={hard[name]}' for name in over)}"
        )
        raise forbidden(request.kind, request.name, why)


def quota_usage(quota: Object, namespace: str, store: Store) -> Usage:
    """What counts against a quota at the moment, for each of its hard limits."""
    hard = (quota.get("spec") or {}).get("hard") or {}
    total: Usage = {name: Fraction(0) for name in hard}
    for kind in _kinds(hard):
        for stored in store.list(kind, namespace):
            obj = stored.object
            if kind == kinds.PODS and (_finished(obj) or not in_scope(quota, obj)):
                continue
            for name, amount in usage_of(kind, obj).items():
                if name in total:
                    total[name] += amount
    return total


def usage_of(kind: Kind, obj: Object) -> Usage:
    """What one object counts for, by the names that quotas use."""
    usage: Usage = {f"count/{kind.resource}": Fraction(1)}
    if kind.plural in _SHORT_NAMES and not kind.group:
        usage[kind.plural] = Fraction(1)
    if kind == kinds.PODS:
        usage["pods"] = Fraction(1)
        usage |= _pod_usage(obj["spec"])
    if kind == kinds.PERSISTENT_VOLUME_CLAIMS:
        storage = ((obj["spec"].get("resources") or {}).get("requests") or {}).get("storage")
        if storage is not None:
            usage["requests.storage"] = quantities.parse(storage)
    return usage


def rendered(name: str, amount: Fraction) -> str:
    """An amount as quotas show it."""
    return quantities.format(amount, "binary" if name.endswith(_BINARY) else "decimal")


def in_scope(quota: Object, pod: Object) -> bool:
    """Whether a pod counts against a quota."""
    spec = quota.get("spec") or {}
    plain = all(_scope(scope, pod) for scope in spec.get("scopes") or ())
    expressions = (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return plain and all(_scope_expression(expression, pod) for expression in expressions)


def _scope_expression(expression: Mapping[str, Any], pod: Object) -> bool:
    if expression.get("scopeName") != "PriorityClass":
        return _scope(str(expression.get("scopeName")), pod)
    name = pod["spec"].get("priorityClassName") or ""
    match expression.get("operator"):
        case "In":
            return name in (expression.get("values") or ())
        case "NotIn":
            return name not in (expression.get("values") or ())
        case "Exists":
            return bool(name)
        case _:
            return not name


def _scope(scope: str, pod: Object) -> bool:
    spec = pod["spec"]
    match scope:
        case "Terminating":
            return spec.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return spec.get("activeDeadlineSeconds") is None
        case "BestEffort":
            return _best_effort(spec)
        case "NotBestEffort":
            return not _best_effort(spec)
        case _:
            return False


def _best_effort(spec: Object) -> bool:
    resources = [container.get("resources") or {} for container in spec["containers"]]
    return not any(one.get("requests") or one.get("limits") for one in resources)


def _pod_usage(spec: Object) -> Usage:
    """Requests and limits: the containers' sum or, where it is larger, the largest init container."""
    usage: Usage = {}
    for field, prefix in (("requests", "requests."), ("limits", "limits.")):
        total = _sum((container.get("resources") or {}).get(field) or {} for container in spec["containers"])
        for container in spec.get("initContainers") or ():
            for name, amount in ((container.get("resources") or {}).get(field) or {}).items():
                total[name] = max(total.get(name, Fraction(0)), quantities.parse(amount))
        for name, amount in total.items():
            usage[prefix + name] = amount
            if field == "requests" and name in _NATIVE:
                usage[name] = amount
    return usage


def _sum(parts: Iterable[Mapping[str, str]]) -> Usage:
    total: Usage = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, Fraction(0)) + quantities.parse(amount)
    return total


def _unspecified(hard: Mapping[str, str], pod: Object) -> set[str]:
    """Compute resources that the quota limits and some container leaves open."""
    missing: set[str] = set()
    for name in hard:
        field, _, resource = name.partition(".") if "." in name else ("requests", "", name)
        if field in ("requests", "limits") and resource in ("cpu", "memory"):
            for container in pod["spec"]["containers"]:
                if resource not in ((container.get("resources") or {}).get(field) or {}):
                    missing.add(name)
    return missing


def _sources(missing: Sequence[str], pod: Object) -> str:
    names = ",".join(container["name"] for container in pod["spec"]["containers"])
    return "; ".join(f"{name} for: {names}" for name in missing)


def _finished(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _kinds(hard: Iterable[str]) -> set[Kind]:
    found: set[Kind] = set()
    for name in hard:
        if name.startswith("count/"):
            plural, _, group = name.removeprefix("count/").partition(".")
            found.add(
                next(
                    (kind for kind in kinds.ALL if (kind.plural, kind.group) == (plural, group)),
                    Kind(group, "v1", plural, plural),
                )
            )
        elif name in _SHORT_NAMES:
            found.add(_SHORT_NAMES[name])
        elif name == "requests.storage":
            found.add(kinds.PERSISTENT_VOLUME_CLAIMS)
        else:
            found.add(kinds.PODS)
    return found


def _listed(names: Sequence[str], amounts: Mapping[str, Fraction]) -> str:
    return ",".join(f"{name}={rendered(name, amounts.get(name, Fraction(0)))}" for name in names)
