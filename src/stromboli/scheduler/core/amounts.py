"""Resource lists and pod requests as amounts by name, ready for ``core.columns`` (spec 04 sections 8.1 and 9.2)."""

from __future__ import annotations

from collections.abc import Mapping

from stromboli.api import core, names
from stromboli.api.requests import DEFAULT_RULES, RequestRules, pod_request
from stromboli.api.resourcenames import HUGEPAGES_PREFIX
from stromboli.api.resources import ResourceVector

Amounts = dict[str, float]

LARGEST = 2.0**50
"""No pod asks for more (2^50 bytes, 2^40 cpus), no node has more: it would swallow smaller amounts in the sums."""
_LARGEST_STORAGE = 2.0**55
"""The same for storage and huge pages, which are counted in thousandths of bytes: 36 TB. Sums of two stay exact."""
_TOGETHER = 2.0**10
"""How much more memory and storage a group or queue can speak of than one node: a cluster has more than 2^50 bytes."""

_DEFAULT_CPU = 100.0
_DEFAULT_MEMORY = 200.0 * 1024 * 1024
_RESTARTABLE = "Always"


def of_vector(vector: ResourceVector) -> Amounts:
    """All components by name; cpu and memory are always there."""
    return {"cpu": vector.cpu, "memory": vector.memory, **(vector.scalars or {})}


def read(resources: Mapping[str, str | int | float], rules: RequestRules = DEFAULT_RULES) -> Amounts:
    """A resource list in internal units; names that are not counted are dropped. Raises ``BadQuantity``."""
    listed = of_vector(ResourceVector.from_list(resources, rules.ignored))
    return {name: amount for name, amount in listed.items() if name in resources}


def bounded(amounts: Mapping[str, float]) -> Amounts:
    """What a pod asks for or a node has, with absurd amounts cut to the largest that leaves others' sums alone."""
    return {name: min(amount, _LARGEST_STORAGE if _is_storage(name) else LARGEST) for name, amount in amounts.items()}


def read_together(resources: Mapping[str, str | int | float], rules: RequestRules = DEFAULT_RULES) -> Amounts:
    """Like :func:`read`, for what pods or nodes have together, with absurd amounts cut: PodGroups and queues."""
    return {name: min(amount, _most_together(name)) for name, amount in read(resources, rules).items()}


def _most_together(name: str) -> float:
    if _is_storage(name):
        return _LARGEST_STORAGE * _TOGETHER
    return LARGEST * _TOGETHER if name == names.MEMORY else LARGEST


def _is_storage(name: str) -> bool:
    return name == names.EPHEMERAL_STORAGE or name.startswith(HUGEPAGES_PREFIX)


def write(amounts: Mapping[str, float]) -> dict[str, str]:
    """Internal units back to a resource list; cpu and memory are always there."""
    scalars = {name: amount for name, amount in amounts.items() if name not in ("cpu", "memory")}
    return ResourceVector(amounts.get("cpu", 0.0), amounts.get("memory", 0.0), scalars).to_list()


def request_of(pod: core.Pod, rules: RequestRules = DEFAULT_RULES) -> Amounts:
    """What a pod asks of its node, ``pods: 1`` included."""
    return of_vector(pod_request(pod, rules))


def nonzero_request(pod: core.Pod) -> tuple[float, float]:
    """cpu and memory as the least-requested score counts them: a container without a request counts a default."""
    cpu = memory = sidecar_cpu = sidecar_memory = peak_cpu = peak_memory = 0.0
    for container in pod.spec.containers:
        own_cpu, own_memory = _with_defaults(container)
        cpu, memory = cpu + own_cpu, memory + own_memory
    for container in pod.spec.init_containers:
        own_cpu, own_memory = _with_defaults(container)
        if container.restart_policy == _RESTARTABLE:
            cpu, memory = cpu + own_cpu, memory + own_memory
            sidecar_cpu, sidecar_memory = sidecar_cpu + own_cpu, sidecar_memory + own_memory
            own_cpu = own_memory = 0.0
        peak_cpu = max(peak_cpu, sidecar_cpu + own_cpu)
        peak_memory = max(peak_memory, sidecar_memory + own_memory)
    overhead = read(pod.spec.overhead)
    return max(cpu, peak_cpu) + overhead.get("cpu", 0.0), max(memory, peak_memory) + overhead.get("memory", 0.0)


def _with_defaults(container: core.Container) -> tuple[float, float]:
    asked = read(container.resources.requests)
    return asked.get("cpu", _DEFAULT_CPU), asked.get("memory", _DEFAULT_MEMORY)
