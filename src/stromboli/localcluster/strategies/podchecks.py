"""Checks of (defaulted) pod specs, in the words of the real server.

What is checked is what users get wrong: names, images, ports, mounts, resources, placement. Containers are in
``containerchecks``, affinity and spreading in ``placementchecks``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stromboli.api import quantities
from stromboli.localcluster.schemas.validating import bad, duplicate, missing
from stromboli.localcluster.statuses import Cause
from stromboli.localcluster.strategies import containerchecks, placementchecks
from stromboli.localcluster.strategies.containerchecks import NOT_NEGATIVE, choice, forbidden
from stromboli.localcluster.validation import metadata
from stromboli.localcluster.validation.metadata import label_problems, subdomain_problems

_LARGEST = 2**31 - 1
_SUBDOMAINS = ("nodeName", "serviceAccountName", "priorityClassName", "runtimeClassName")
_LABELS = ("hostname", "subdomain")


def check(spec: dict[str, Any], path: str, *, is_template: bool = False) -> Iterator[Cause]:
    """Everything that is wrong with a pod spec."""
    if not spec.get("containers"):
        yield missing(f"{path}.containers")
    volumes: set[str] = set()
    for index, volume in enumerate(spec.get("volumes") or ()):
        yield from _volume(volume, f"{path}.volumes[{index}]", volumes)
    yield from containerchecks.check_all(spec, path, volumes)
    if is_template and spec.get("ephemeralContainers"):
        yield forbidden(f"{path}.ephemeralContainers", "ephemeral containers not allowed in pod template")
    yield from _names(spec, path)
    yield from _policies(spec, path)
    yield from _security(spec, path)
    yield from _pod_resources(spec, path)
    yield from placementchecks.check(spec, path)


def _volume(volume: dict[str, Any], path: str, seen: set[str]) -> Iterator[Cause]:
    name = volume.get("name") or ""
    if name:
        yield from (bad(f"{path}.name", name, problem) for problem in label_problems(name))
    if name in seen:
        yield duplicate(f"{path}.name", name)
    seen.add(name)
    sources = [source for source in volume if source != "name"]
    for extra in sources[1:]:
        yield forbidden(f"{path}.{extra}", "may not specify more than 1 volume type")


def _names(spec: dict[str, Any], path: str) -> Iterator[Cause]:
    for field in _SUBDOMAINS:
        if spec.get(field):
            yield from (bad(f"{path}.{field}", spec[field], problem) for problem in subdomain_problems(spec[field]))
    for field in _LABELS:
        if spec.get(field):
            yield from (bad(f"{path}.{field}", spec[field], problem) for problem in label_problems(spec[field]))
    yield from metadata.label_causes(f"{path}.nodeSelector", spec.get("nodeSelector") or {})


def _policies(spec: dict[str, Any], path: str) -> Iterator[Cause]:
    yield from choice(spec, path, "restartPolicy", ["Always", "Never", "OnFailure"])
    yield from choice(spec, path, "dnsPolicy", ["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"])
    yield from choice(spec, path, "preemptionPolicy", ["PreemptLowerPriority", "Never"])
    if spec.get("dnsPolicy") == "None" and not (spec.get("dnsConfig") or {}).get("nameservers"):
        yield missing(f"{path}.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None")
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        yield bad(f"{path}.terminationGracePeriodSeconds", spec["terminationGracePeriodSeconds"], NOT_NEGATIVE)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _LARGEST:
        yield bad(f"{path}.activeDeadlineSeconds", deadline, f"must be between 1 and {_LARGEST}, inclusive")


def _security(spec: dict[str, Any], path: str) -> Iterator[Cause]:
    if spec.get("hostUsers") is False:
        for field in ("hostNetwork", "hostPID", "hostIPC"):
            if spec.get(field):
                yield forbidden(f"{path}.{field}", "when `hostUsers` is false")
    context = spec.get("securityContext") or {}
    for field in ("runAsUser", "runAsGroup", "fsGroup"):
        if context.get(field) is not None and not 0 <= context[field] <= _LARGEST:
            yield bad(f"{path}.securityContext.{field}", context[field], f"must be between 0 and {_LARGEST}, inclusive")


def _pod_resources(spec: dict[str, Any], path: str) -> Iterator[Cause]:
    """Resources of the pod as a whole: within their limits, and no less than the containers' together."""
    found = spec.get("resources") or {}
    yield from containerchecks.resources(found, f"{path}.resources")
    for name, amount in (found.get("requests") or {}).items():
        total = sum(
            quantities.parse(requests[name])
            for container in spec.get("containers") or ()
            if name in (requests := (container.get("resources") or {}).get("requests") or {})
        )
        if total > quantities.parse(amount):
            why = f"must be greater than or equal to aggregate container requests of {quantities.format(total)}"
            yield bad(f"{path}.resources.requests[{name}]", amount, why)
