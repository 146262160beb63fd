"""Rules for resource requirements of containers and pods."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from stromboli.api import names, quantities
from stromboli.api.resourcenames import HUGEPAGES_PREFIX, is_extended
from stromboli.webhooks import amounts
from stromboli.webhooks.errors import FieldError, forbidden, invalid, not_found, required, unsupported
from stromboli.webhooks.naming import qualified_name_faults
from stromboli.webhooks.podtemplates.shapes import Container, PodSpec, Requirements

_NOTHING: Final = Fraction(0)
_STANDARD: Final = (names.CPU, names.MEMORY, names.EPHEMERAL_STORAGE)


def container_faults(resources: Requirements, field: str, claims: set[str]) -> Iterator[FieldError]:
    """Faults of a container's resources; ``claims`` are the names that the pod declares."""
    faults = list(_list_faults(resources, field))
    yield from faults
    if not faults:
        yield from _pair_faults(resources, field)
        yield from _huge_page_faults(resources, field)
    for index, claim in enumerate(resources.claims):
        if claim.name not in claims:
            which = "" if claims else " which is empty"
            detail = f"must be one of the names in pod.spec.resourceClaims{which}"
            yield not_found(f"{field}.claims[{index}]", claim.name, detail)


def _list_faults(resources: Requirements, field: str) -> Iterator[FieldError]:
    for part, listed in (("limits", resources.limits), ("requests", resources.requests)):
        yield from amounts.malformed(listed, f"{field}.{part}", bracketed=True)
        for name, amount in sorted(listed.items()):
            place = amounts.entry(f"{field}.{part}", name, bracketed=True)
            yield from _name_faults(name, place)
            if quantities.is_quantity(amount):
                yield from amounts.amount_faults(name, amount, place)


def _name_faults(name: str, field: str) -> Iterator[FieldError]:
    yield from (invalid(field, name, fault) for fault in qualified_name_faults(name))
    if "/" in name or name in _STANDARD or name.startswith(HUGEPAGES_PREFIX):
        return
    yield invalid(field, name, "must be a standard resource type or fully qualified")
    yield invalid(field, name, "must be a standard resource for containers")


def _pair_faults(resources: Requirements, field: str) -> Iterator[FieldError]:
    for name, amount in sorted(resources.requests.items()):
        limit = resources.limits.get(name)
        if limit is None:
            if not _may_exceed(name):
                yield required(f"{field}.limits", "Limit must be set for non overcommitable resources")
        else:
            yield from _order_faults(name, amount, limit, f"{field}.requests")


def _order_faults(
    name: str, amount: quantities.Quantity, limit: quantities.Quantity, field: str
) -> Iterator[FieldError]:
    wanted, allowed = quantities.parse(amount), quantities.parse(limit)
    shown, bound = quantities.canonical(amount), quantities.canonical(limit)
    if not _may_exceed(name) and wanted != allowed:
        yield invalid(field, shown, f"must be equal to {name} limit of {bound}")
    elif wanted > allowed:
        yield invalid(field, shown, f"must be less than or equal to {name} limit of {bound}")


def _may_exceed(name: str) -> bool:
    """Whether a node may promise more of the resource than it has."""
    return not is_extended(name) and not name.startswith(HUGEPAGES_PREFIX)


def _huge_page_faults(resources: Requirements, field: str) -> Iterator[FieldError]:
    named = resources.limits.keys() | resources.requests.keys()
    huge = any(name.startswith(HUGEPAGES_PREFIX) for name in named)
    if huge and not named & {names.CPU, names.MEMORY}:
        yield forbidden(field, "HugePages require cpu or memory")


# Pod level


def pod_faults(spec: PodSpec, field: str) -> Iterator[FieldError]:
    """Faults of pod-level resources: they must hold what the containers ask for together."""
    resources = spec.resources
    if resources is None:
        return
    faults = [*_pod_name_faults(resources, field), *_amount_faults(resources, field)]
    yield from faults
    if faults:
        return
    total = aggregate_requests(spec)
    for name, amount in sorted(resources.requests.items()):
        if name in total and quantities.parse(amount) < total[name]:
            shown = quantities.format(total[name], quantities.style_of(amount))
            detail = f"must be greater than or equal to aggregate container requests of {shown}"
            yield invalid(f"{field}.requests[{name}]", quantities.canonical(amount), detail)
    for name, amount in sorted(resources.requests.items()):
        if name in resources.limits:
            yield from _order_faults(name, amount, resources.limits[name], f"{field}.requests")


def _amount_faults(resources: Requirements, field: str) -> Iterator[FieldError]:
    for part, listed in (("limits", resources.limits), ("requests", resources.requests)):
        yield from amounts.malformed(listed, f"{field}.{part}", bracketed=True)


def _pod_name_faults(resources: Requirements, field: str) -> Iterator[FieldError]:
    supported = [names.CPU, HUGEPAGES_PREFIX, names.MEMORY]
    for part, listed in (("limits", resources.limits), ("requests", resources.requests)):
        for name in sorted(listed):
            if name not in (names.CPU, names.MEMORY) and not name.startswith(HUGEPAGES_PREFIX):
                yield unsupported(f"{field}.{part}[{name}]", name, supported)


def aggregate_requests(spec: PodSpec) -> dict[str, Fraction]:
    """What the containers need together: those that run at once added up, init containers one after the other."""
    running: dict[str, Fraction] = {}
    peak: dict[str, Fraction] = {}
    for container in spec.init_containers:
        needed = _sum(running, _requests(container))
        peak = _larger(peak, needed)
        if container.restart_policy == "Always":
            running = needed
    for container in spec.containers:
        running = _sum(running, _requests(container))
    return _larger(running, peak)


def _requests(container: Container) -> dict[str, Fraction]:
    return {
        name: quantities.parse(amount)
        for name, amount in container.resources.requests.items()
        if quantities.is_quantity(amount)
    }


def _sum(first: dict[str, Fraction], second: dict[str, Fraction]) -> dict[str, Fraction]:
    return {name: first.get(name, _NOTHING) + second.get(name, _NOTHING) for name in first.keys() | second.keys()}


def _larger(first: dict[str, Fraction], second: dict[str, Fraction]) -> dict[str, Fraction]:
    return {name: max(first.get(name, _NOTHING), second.get(name, _NOTHING)) for name in first.keys() | second.keys()}
