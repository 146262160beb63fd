"""What a pod asks for: containers, sidecars, init containers, overhead, resizes (spec 04 section 9.2)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from stromboli.api import names
from stromboli.api.core import Container, ContainerStatus, Pod, PodSpec
from stromboli.api.resourcenames import HUGEPAGES_PREFIX
from stromboli.api.resources import ResourceVector

_NOTHING = ResourceVector(scalars={})
_ONE_POD = ResourceVector(scalars={names.PODS: 1.0})
_RESTARTABLE = "Always"
_INFEASIBLE = "Infeasible"


@dataclass(frozen=True, slots=True)
class RequestRules:
    """The feature gates that decide how requests are computed, and resources that devices account for themselves."""

    pod_level_resources: bool = True
    in_place_resize: bool = True
    ignored: Collection[str] = frozenset()


DEFAULT_RULES = RequestRules()


def pod_request(pod: Pod, rules: RequestRules = DEFAULT_RULES) -> ResourceVector:
    """Everything the pod takes on a node, ``pods: 1`` included. Raises BadQuantity."""
    statuses = _statuses(pod, rules)
    regular = _total(_container_request(item, statuses, rules) for item in pod.spec.containers)
    if not pod.spec.init_containers:
        return _with_pod_level(regular + _ONE_POD, pod.spec, rules)
    sidecars, initial = _NOTHING, _NOTHING
    for container in pod.spec.init_containers:
        if container.restart_policy == _RESTARTABLE:
            own = _container_request(container, statuses, rules)
            regular += own
            sidecars += own
            candidate = sidecars
        else:
            candidate = _list(container.resources.requests, rules) + sidecars
        initial = initial.raised_to(candidate)
    return _with_pod_level(regular.raised_to(initial) + _ONE_POD, pod.spec, rules)


def pod_request_without_init(pod: Pod, rules: RequestRules = DEFAULT_RULES) -> ResourceVector:
    """What the regular containers take, with pod-level amounts and overhead, without ``pods``. Raises BadQuantity."""
    statuses = _statuses(pod, rules)
    regular = _total(_container_request(item, statuses, rules) for item in pod.spec.containers)
    return _with_pod_level(regular, pod.spec, rules)


@dataclass(frozen=True, slots=True)
class _Statuses:
    by_name: dict[str, ContainerStatus]
    infeasible: bool


_NO_STATUSES = _Statuses({}, infeasible=False)


def _statuses(pod: Pod, rules: RequestRules) -> _Statuses:
    status = pod.status
    if not rules.in_place_resize or not (status.container_statuses or status.init_container_statuses):
        return _NO_STATUSES
    infeasible = status.resize == _INFEASIBLE or any(
        item.type == "PodResizePending" and item.reason == _INFEASIBLE for item in status.conditions
    )
    return _Statuses(
        {item.name: item for item in (*status.init_container_statuses, *status.container_statuses)}, infeasible
    )


def _container_request(container: Container, statuses: _Statuses, rules: RequestRules) -> ResourceVector:
    wanted = _list(container.resources.requests, rules)
    status = statuses.by_name.get(container.name)
    if status is None or status.resources is None:
        return wanted
    actual = _list(status.resources.requests, rules).raised_to(_list(status.allocated_resources, rules))
    return actual if statuses.infeasible else wanted.raised_to(actual)


def _with_pod_level(request: ResourceVector, spec: PodSpec, rules: RequestRules) -> ResourceVector:
    if rules.pod_level_resources and spec.resources is not None:
        request = _replaced(request, spec.resources.requests, rules)
    return request + _list(spec.overhead, rules) if spec.overhead else request


def _replaced(request: ResourceVector, pod_level: dict[str, str | int | float], rules: RequestRules) -> ResourceVector:
    """cpu, memory and huge pages that the pod names as a whole replace the sums of its containers."""
    named = _list(pod_level, rules)
    huge = {name: amount for name, amount in (named.scalars or {}).items() if name.startswith(HUGEPAGES_PREFIX)}
    return replace(
        request,
        cpu=named.cpu if names.CPU in pod_level else request.cpu,
        memory=named.memory if names.MEMORY in pod_level else request.memory,
        scalars={**(request.scalars or {}), **huge},
    )


def _list(resources: dict[str, str | int | float], rules: RequestRules) -> ResourceVector:
    return ResourceVector.from_list(resources, rules.ignored)


def _total(requests: Iterable[ResourceVector]) -> ResourceVector:
    result = _NOTHING
    for request in requests:
        result += request
    return result
