"""What a ResourceQuota would charge for a pod, plus extended resources under their own names.

This is what ``minResources`` of a PodGroup is made of (spec 02 section 15, spec 03 section 3.3). Amounts are exact
fractions until they are written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import TypeAlias

from stromboli.api import quantities
from stromboli.api.core import Container, PodSpec, ResourceList
from stromboli.api.resourcenames import HUGEPAGES_PREFIX, is_extended

Usage: TypeAlias = dict[str, Fraction]
"""Amount by resource name."""

_COMPUTE = ("cpu", "memory", "ephemeral-storage")


def of_pod(spec: PodSpec) -> Usage:
    """Usage of one pod that is neither finished nor past its deletion."""
    charged: Usage = {"count/pods": Fraction(1), "pods": Fraction(1)}
    for name, amount in effective(spec, "requests").items():
        if name in _COMPUTE or name.startswith(HUGEPAGES_PREFIX) or is_extended(name):
            charged[name] = charged[f"requests.{name}"] = amount
    for name, amount in effective(spec, "limits").items():
        if name in _COMPUTE:
            charged[f"limits.{name}"] = amount
    return charged


def total(parts: Iterable[tuple[int, Usage]]) -> Usage:
    """Sum of usages, each taken a number of times; nothing at all when every number is 0."""
    summed: Usage = {}
    for times, usage in parts:
        if times > 0:
            summed = _sum(summed, {name: amount * times for name, amount in usage.items()})
    return summed


def to_wire(usage: Usage) -> ResourceList:
    """The usage as a resource list; bytes in binary units where they are whole."""
    return {name: _written(name, amount) for name, amount in sorted(usage.items())}


def _written(name: str, amount: Fraction) -> str:
    counts_bytes = "memory" in name or "storage" in name or HUGEPAGES_PREFIX in name
    return quantities.format(amount, "binary" if counts_bytes and amount.denominator == 1 else "decimal")


def effective(spec: PodSpec, side: str) -> Usage:
    """Effective ``requests`` or ``limits`` of a pod.

    Containers and sidecars run together; every other init container runs before them, beside the sidecars that precede
    it. Pod-level amounts replace the sum for cpu, memory and huge pages. Overhead comes on top.
    """
    together: Usage = {}
    for container in spec.containers:
        together = _sum(together, _amounts(container, side))
    sidecars: Usage = {}
    highest: Usage = {}
    for container in spec.init_containers:
        own = _amounts(container, side)
        if container.restart_policy == "Always":
            sidecars = _sum(sidecars, own)
            highest = _max(highest, sidecars)
        else:
            highest = _max(highest, _sum(own, sidecars))
    found = _max(_sum(together, sidecars), highest) | _pod_level(spec, side)
    return _with_overhead(found, spec.overhead, side)


def _with_overhead(found: Usage, overhead: ResourceList, side: str) -> Usage:
    extra = _parsed(overhead)
    if side == "limits":  # without a limit there is nothing that overhead could raise
        extra = {name: amount for name, amount in extra.items() if found.get(name)}
    return _sum(found, extra)


def _pod_level(spec: PodSpec, side: str) -> Usage:
    listed: ResourceList = getattr(spec.resources, side) if spec.resources else {}
    return {
        name: amount
        for name, amount in _parsed(listed).items()
        if name in ("cpu", "memory") or name.startswith(HUGEPAGES_PREFIX)
    }


def _amounts(container: Container, side: str) -> Usage:
    listed: ResourceList = getattr(container.resources, side)
    return _parsed(listed)


def _parsed(listed: ResourceList) -> Usage:
    return {name: quantities.parse(amount) for name, amount in listed.items()}


def _sum(left: Mapping[str, Fraction], right: Mapping[str, Fraction]) -> Usage:
    return {name: left.get(name, Fraction()) + right.get(name, Fraction()) for name in {**left, **right}}


def _max(left: Mapping[str, Fraction], right: Mapping[str, Fraction]) -> Usage:
    return {name: max(left.get(name, Fraction()), right.get(name, Fraction())) for name in {**left, **right}}
