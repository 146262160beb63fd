"""Checks of where pods may go: tolerations, spreading, affinity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stromboli.localcluster.schemas.validating import bad, missing, unsupported
from stromboli.localcluster.statuses import Cause
from stromboli.localcluster.strategies.containerchecks import choice, forbidden

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def check(spec: dict[str, Any], path: str) -> Iterator[Cause]:
    """Everything that is wrong with a pod's placement."""
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        yield from _toleration(toleration, f"{path}.tolerations[{index}]")
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        yield from _spread(constraint, f"{path}.topologySpreadConstraints[{index}]")
    affinity = spec.get("affinity") or {}
    yield from _node_affinity(affinity.get("nodeAffinity") or {}, f"{path}.affinity.nodeAffinity")
    for kind in ("podAffinity", "podAntiAffinity"):
        yield from _pod_affinity(affinity.get(kind) or {}, f"{path}.affinity.{kind}")


def _toleration(toleration: dict[str, Any], path: str) -> Iterator[Cause]:
    operator, effect = toleration.get("operator") or "Equal", toleration.get("effect") or ""
    if not toleration.get("key") and operator != "Exists":
        why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield bad(f"{path}.operator", operator, why)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield bad(f"{path}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    if operator == "Exists" and toleration.get("value"):
        yield bad(f"{path}.operator", toleration["value"], "value must be empty when `operator` is 'Exists'")
    if operator not in ("Equal", "Exists"):
        yield unsupported(f"{path}.operator", operator, ["Equal", "Exists"])
    if effect:
        yield from choice(toleration, path, "effect", ["NoSchedule", "PreferNoSchedule", "NoExecute"])


def _spread(constraint: dict[str, Any], path: str) -> Iterator[Cause]:
    if constraint.get("maxSkew", 0) <= 0:
        yield bad(f"{path}.maxSkew", constraint.get("maxSkew", 0), "must be greater than zero")
    yield from choice(constraint, path, "whenUnsatisfiable", ["DoNotSchedule", "ScheduleAnyway"])


def _node_affinity(affinity: dict[str, Any], path: str) -> Iterator[Cause]:
    required = affinity.get(_REQUIRED)
    if required is not None:
        terms = required.get("nodeSelectorTerms") or []
        if not terms:
            yield missing(f"{path}.{_REQUIRED}.nodeSelectorTerms", "must have at least one node selector term")
        for index, term in enumerate(terms):
            yield from _node_term(term, f"{path}.{_REQUIRED}.nodeSelectorTerms[{index}]")
    for index, preferred in enumerate(affinity.get(_PREFERRED) or ()):
        place = f"{path}.{_PREFERRED}[{index}]"
        yield from _weight(preferred, place)
        yield from _node_term(preferred.get("preference") or {}, f"{place}.preference")


def _weight(preferred: dict[str, Any], path: str) -> Iterator[Cause]:
    if not 1 <= preferred.get("weight", 0) <= 100:
        yield bad(f"{path}.weight", preferred.get("weight", 0), "must be in the range 1-100")


def _node_term(term: dict[str, Any], path: str) -> Iterator[Cause]:
    for index, requirement in enumerate(term.get("matchExpressions") or ()):
        yield from _requirement(requirement, f"{path}.matchExpressions[{index}]")


def _requirement(requirement: dict[str, Any], path: str) -> Iterator[Cause]:
    values = requirement.get("values") or []
    match requirement.get("operator"):
        case "In" | "NotIn" if not values:
            yield missing(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        case "Exists" | "DoesNotExist" if values:
            why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield forbidden(f"{path}.values", why)
        case "Gt" | "Lt" if len(values) != 1:
            yield missing(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
        case "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt":
            return
        case other:
            yield bad(f"{path}.operator", other or "", "not a valid selector operator")


def _pod_affinity(affinity: dict[str, Any], path: str) -> Iterator[Cause]:
    for index, term in enumerate(affinity.get(_REQUIRED) or ()):
        yield from _pod_term(term, f"{path}.{_REQUIRED}[{index}]")
    for index, preferred in enumerate(affinity.get(_PREFERRED) or ()):
        yield from _weight(preferred, f"{path}.{_PREFERRED}[{index}]")
        yield from _pod_term(preferred.get("podAffinityTerm") or {}, f"{path}.{_PREFERRED}[{index}].podAffinityTerm")


def _pod_term(term: dict[str, Any], path: str) -> Iterator[Cause]:
    for index, requirement in enumerate((term.get("labelSelector") or {}).get("matchExpressions") or ()):
        if requirement.get("operator") in ("In", "NotIn") and not requirement.get("values"):
            place = f"{path}.labelSelector.matchExpressions[{index}].values"
            yield missing(place, "must be specified when `operator` is 'In' or 'NotIn'")
