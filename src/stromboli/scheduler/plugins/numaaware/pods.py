"""What of a pod matters to CPU managers: its quality of service and the CPUs of its containers."""

from __future__ import annotations

from stromboli.api import core, quantities
from stromboli.api.quantities import BadQuantity

MILLI = 1000
_DECISIVE = ("cpu", "memory")


def is_guaranteed(spec: core.PodSpec) -> bool:
    """Whether every container has limits of cpu and memory, and requests that are equal to them."""
    containers = (*spec.containers, *spec.init_containers)
    return bool(containers) and all(_is_full(container.resources) for container in containers)


def _is_full(resources: core.ResourceRequirements) -> bool:
    try:
        for name in _DECISIVE:
            limit = quantities.parse(resources.limits.get(name, 0))
            if limit <= 0 or quantities.parse(resources.requests.get(name, limit_text(resources, name))) != limit:
                return False
    except BadQuantity:
        return False
    return True


def limit_text(resources: core.ResourceRequirements, name: str) -> quantities.Quantity:
    """A limit as written: what an absent request defaults to."""
    return resources.limits.get(name, 0)


def whole_cpus(container: core.Container) -> int:
    """CPUs that the container gets for itself: its request if that is a whole number, else 0."""
    resources = container.resources
    milli = quantities.milli(resources.requests.get("cpu", limit_text(resources, "cpu")))
    return milli // MILLI if milli % MILLI == 0 else 0
