"""ResourceQuota: what a namespace uses, and whether one more object fits.

Amounts are whole thousandths. Counted are pods (``pods``, ``count/pods``,
requests and limits of cpu, memory, ephemeral storage and extended resources) and the number of objects of any kind
(``count/PLURAL.GROUP`` and the old short names). Scopes: Terminating, NotTerminating, BestEffort, NotBestEffort and
PriorityClass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from stromboli.api import kinds, quantities
from stromboli.api.kinds import Kind
from stromboli.localcluster.extending import AdmissionRequest
from stromboli.localcluster.statuses import forbidden
from stromboli.localcluster.storage import Gone, Key, Object, Store, Stored

Usage: TypeAlias = dict[str, int]
"""Thousandths by the names that quotas use."""

ONE = 1000

_COUNTED: tuple[Kind, ...] = (
    kinds.CONFIG_MAPS, kinds.SECRETS, kinds.SERVICES, kinds.PERSISTENT_VOLUME_CLAIMS,
    kinds.REPLICATION_CONTROLLERS, kinds.RESOURCE_QUOTAS,
)  # fmt: skip
_SHORT_NAMES = {kind.plural: kind for kind in _COUNTED}
_NATIVE = ("cpu", "memory", "ephemeral-storage")
_BINARY = ("memory", "storage")


class QuotaCheck:
    """The admission plugin; it is the last one and does not wait, so nothing comes between its count and the store."""

    def __init__(self, ledger: QuotaLedger) -> None:
        self._ledger = ledger

    def __call__(self, request: AdmissionRequest, store: Store) -> None:
        """Refuse a new object that does not fit into every quota of its namespace."""
        if request.operation != "CREATE" or request.subresource or request.obj is None or not request.kind.namespaced:
            return
        for stored in store.list(kinds.RESOURCE_QUOTAS, request.namespace):
            self._check(stored.object, request, request.obj)

    def _check(self, quota: Object, request: AdmissionRequest, obj: Object) -> None:
        hard = hard_limits(quota)
        if request.kind == kinds.PODS:
            if not in_scope(quota, obj):
                return
            _require_requests(quota, request, obj)
        asked = {name: amount for name, amount in usage_of(request.kind, obj).items() if name in hard and amount > 0}
        if not asked:
            return
        used = self._ledger.used(quota, request.namespace)
        over = sorted(name for name in asked if used.get(name, 0) + asked[name] > quantities.milli(hard[name]))
        if over:
            why = (
                f"exceeded quota: {quota['metadata']['name']}, requested: {_listed(over, asked)}, "
                f"used: {_listed(over, used)}, limited: {','.join(f'{name}={hard[name]}' for name in over)}"
            )
            raise forbidden(request.kind, request.name, why)


class QuotaLedger:
    """What is used of each quota, kept up to date from the store's log instead of counted anew for every object."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._accounts: dict[str, _Account] = {}

    def used(self, quota: Object, namespace: str) -> Usage:
        """What counts against a quota at this moment, for each of its hard limits."""
        uid = quota["metadata"]["uid"]
        account = self._accounts.get(uid)
        if account is not None and account.spec == quota.get("spec"):
            try:
                account.refresh()
            except Gone:
                account = None
        else:
            account = None
        if account is None:
            self._forget_gone()
            account = self._accounts[uid] = _Account(self._store, quota, namespace)
        return account.total

    def _forget_gone(self) -> None:
        present = {stored.object["metadata"]["uid"] for stored in self._store.list(kinds.RESOURCE_QUOTAS)}
        self._accounts = {uid: account for uid, account in self._accounts.items() if uid in present}


class _Account:
    """The running total of one quota, and what each object adds to it."""

    def __init__(self, store: Store, quota: Object, namespace: str) -> None:
        self.spec = quota.get("spec")
        self._quota = quota
        self.total: Usage = dict.fromkeys(hard_limits(quota), 0)
        self._parts: dict[Key, Usage] = {}
        counted = _kinds(self.total)
        self._watches = {kind: store.watch(kind, namespace) for kind in counted}
        for kind in counted:
            for stored in store.list(kind, namespace):
                self._put(kind, stored)

    def refresh(self) -> None:
        """Take in what has changed. Raises ``Gone`` when that is no longer known."""
        for kind, watch in self._watches.items():
            for event in watch.take():
                self._drop(event.stored.key)
                if event.type != "DELETED":
                    self._put(kind, event.stored)

    def _put(self, kind: Kind, stored: Stored) -> None:
        obj = stored.object
        if kind == kinds.PODS and (_finished(obj) or not in_scope(self._quota, obj)):
            return
        part = {name: amount for name, amount in usage_of(kind, obj).items() if name in self.total}
        self._parts[stored.key] = part
        for name, amount in part.items():
            self.total[name] += amount

    def _drop(self, key: Key) -> None:
        for name, amount in self._parts.pop(key, {}).items():
            self.total[name] -= amount


def hard_limits(quota: Object) -> Mapping[str, str]:
    """The limits that a quota sets."""
    return (quota.get("spec") or {}).get("hard") or {}


def usage_of(kind: Kind, obj: Object) -> Usage:
    """What one object counts for, by the names that quotas use."""
    usage: Usage = {f"count/{kind.resource}": ONE}
    if kind.plural in _SHORT_NAMES and not kind.group:
        usage[kind.plural] = ONE
    if kind == kinds.PODS:
        usage["pods"] = ONE
        usage |= _pod_usage(obj["spec"])
    if kind == kinds.PERSISTENT_VOLUME_CLAIMS:
        storage = ((obj["spec"].get("resources") or {}).get("requests") or {}).get("storage")
        if storage is not None:
            usage["requests.storage"] = quantities.milli(storage)
    return usage


def rendered(name: str, amount: int) -> str:
    """An amount as quotas show it."""
    return quantities.format(Fraction(amount, ONE), "binary" if name.endswith(_BINARY) else "decimal")


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
                total[name] = max(total.get(name, 0), quantities.milli(amount))
        for name, amount in total.items():
            usage[prefix + name] = amount
            if field == "requests" and name in _NATIVE:
                usage[name] = amount
    return usage


def _sum(parts: Iterable[Mapping[str, str]]) -> Usage:
    total: Usage = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, 0) + quantities.milli(amount)
    return total


def _require_requests(quota: Object, request: AdmissionRequest, pod: Object) -> None:
    """Refuse a pod that leaves open what the quota limits."""
    missing = sorted(_unspecified(hard_limits(quota), pod))
    if missing:
        why = f"failed quota: {quota['metadata']['name']}: must specify {_sources(missing, pod)}"
        raise forbidden(request.kind, request.name, why)


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


def _listed(names: Sequence[str], amounts: Mapping[str, int]) -> str:
    return ",".join(f"{name}={rendered(name, amounts.get(name, 0))}" for name in names)
