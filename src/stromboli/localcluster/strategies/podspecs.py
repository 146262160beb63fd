"""Defaults and checks of pod specs, in pods and in the templates of everything that makes pods."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from stromboli.api import quantities
from stromboli.localcluster.schemas.validating import bad, duplicate, missing, unsupported
from stromboli.localcluster.statuses import Cause
from stromboli.localcluster.strategies.common import set_defaults
from stromboli.localcluster.validation.metadata import BAD_LABEL, LABEL, qualified_problems

CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_MODE = 0o644
_ENV_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")


def default(spec: dict[str, Any]) -> None:
    """Fill in what the real server fills in."""
    set_defaults(
        spec, restartPolicy="Always", dnsPolicy="ClusterFirst", schedulerName="default-scheduler",
        terminationGracePeriodSeconds=30, securityContext={},
    )  # fmt: skip
    for field in CONTAINER_LISTS:
        for container in spec.get(field) or ():
            _default_container(container, bool(spec.get("hostNetwork")))
    for volume in spec.get("volumes") or ():
        _default_volume(volume)
    if spec.get("serviceAccountName"):
        set_defaults(spec, serviceAccount=spec["serviceAccountName"])


def _default_container(container: dict[str, Any], host_network: bool) -> None:
    set_defaults(
        container, terminationMessagePath="/dev/termination-log", terminationMessagePolicy="File", resources={},
        imagePullPolicy=_pull_policy(container.get("image") or ""),
    )  # fmt: skip
    for port in container.get("ports") or ():
        set_defaults(port, protocol="TCP")
        if host_network and port.get("containerPort"):
            set_defaults(port, hostPort=port["containerPort"])
    for variable in container.get("env") or ():
        field = (variable.get("valueFrom") or {}).get("fieldRef")
        if field:
            set_defaults(field, apiVersion="v1")
    for probe in filter(None, (container.get(name) for name in _PROBES)):
        set_defaults(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
        if probe.get("httpGet"):
            set_defaults(probe["httpGet"], path="/", scheme="HTTP")
    _default_requests(container["resources"])


def _default_requests(resources: dict[str, Any]) -> None:
    limits = resources.get("limits")
    if limits:
        resources["requests"] = {**limits, **(resources.get("requests") or {})}


def _pull_policy(image: str) -> str:
    name = image.rpartition("/")[2]
    if "@" in name:
        return "IfNotPresent"
    tag = name.partition(":")[2]
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _default_volume(volume: dict[str, Any]) -> None:
    if len(volume) == 1:
        volume["emptyDir"] = {}
    for source in ("secret", "configMap", "downwardAPI", "projected"):
        if volume.get(source) is not None:
            set_defaults(volume[source], defaultMode=_MODE)
    for part in (volume.get("projected") or {}).get("sources") or ():
        if part.get("serviceAccountToken"):
            set_defaults(part["serviceAccountToken"], expirationSeconds=3600)
    if volume.get("hostPath") is not None:
        set_defaults(volume["hostPath"], type="")


def qos_class(spec: dict[str, Any]) -> str:
    """``Guaranteed``, ``Burstable`` or ``BestEffort``."""
    containers = [one for field in ("initContainers", "containers") for one in spec.get(field) or ()]
    resources = [one.get("resources") or {} for one in containers]
    named = [amounts for one in resources for amounts in (one.get("requests"), one.get("limits")) if _counted(amounts)]
    if not named:
        return "BestEffort"
    guaranteed = all(
        len(_counted(one.get("limits"))) == 2 and _counted(one.get("requests")) == _counted(one.get("limits"))
        for one in resources
    )
    return "Guaranteed" if guaranteed else "Burstable"


def _counted(amounts: dict[str, str] | None) -> dict[str, Any]:
    return {
        name: quantities.parse(amount)
        for name, amount in (amounts or {}).items()
        if name in ("cpu", "memory") and quantities.parse(amount) != 0
    }


def check(spec: dict[str, Any], path: str) -> Iterator[Cause]:
    """What is wrong with a (defaulted) pod spec."""
    if not spec.get("containers"):
        yield missing(f"{path}.containers")
    volumes: set[str] = set()
    for index, volume in enumerate(spec.get("volumes") or ()):
        yield from _volume(volume, f"{path}.volumes[{index}]", volumes)
    names: set[str] = set()
    for field in CONTAINER_LISTS:
        for index, container in enumerate(spec.get(field) or ()):
            yield from _container(container, f"{path}.{field}[{index}]", names, volumes)
    yield from _choice(spec, path, "restartPolicy", ["Always", "OnFailure", "Never"])
    yield from _choice(spec, path, "dnsPolicy", ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"])
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        yield bad(f"{path}.terminationGracePeriodSeconds", spec["terminationGracePeriodSeconds"], _NOT_NEGATIVE)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline < 2**31:
        yield bad(f"{path}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive")
    for key, value in (spec.get("nodeSelector") or {}).items():
        for problem in qualified_problems(key):
            yield bad(f"{path}.nodeSelector", key, problem)
        if len(value) > 63:
            yield bad(f"{path}.nodeSelector", value, "must be no more than 63 characters")
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        yield from _toleration(toleration, f"{path}.tolerations[{index}]")


_NOT_NEGATIVE = "must be greater than or equal to 0"


def _choice(obj: dict[str, Any], path: str, field: str, allowed: list[str]) -> Iterator[Cause]:
    if obj.get(field) is not None and obj[field] not in allowed:
        yield unsupported(f"{path}.{field}", obj[field], sorted(allowed))


def _volume(volume: dict[str, Any], path: str, seen: set[str]) -> Iterator[Cause]:
    name = volume.get("name") or ""
    if name and not re.fullmatch(LABEL, name):
        yield bad(f"{path}.name", name, BAD_LABEL)
    if name in seen:
        yield duplicate(f"{path}.name", name)
    seen.add(name)
    sources = [source for source in volume if source != "name"]
    for extra in sources[1:]:
        yield Cause("FieldValueForbidden", f"{path}.{extra}", "Forbidden: may not specify more than 1 volume type")


def _container(container: dict[str, Any], path: str, names: set[str], volumes: set[str]) -> Iterator[Cause]:
    name = container.get("name") or ""
    if name and not re.fullmatch(LABEL, name):
        yield bad(f"{path}.name", name, BAD_LABEL)
    elif len(name) > 63:
        yield bad(f"{path}.name", name, "must be no more than 63 characters")
    if name and name in names:
        yield duplicate(f"{path}.name", name)
    names.add(name)
    image = container.get("image") or ""
    if not image:
        yield missing(f"{path}.image")
    elif image.strip() != image:
        yield bad(f"{path}.image", image, "must not have leading or trailing whitespace")
    yield from _choice(container, path, "imagePullPolicy", ["Always", "IfNotPresent", "Never"])
    yield from _ports(container.get("ports") or [], f"{path}.ports")
    yield from _environment(container.get("env") or [], f"{path}.env")
    yield from _mounts(container.get("volumeMounts") or [], f"{path}.volumeMounts", volumes)
    yield from resources(container.get("resources") or {}, f"{path}.resources")


def _ports(ports: list[dict[str, Any]], path: str) -> Iterator[Cause]:
    names: set[str] = set()
    for index, port in enumerate(ports):
        name, number = port.get("name"), port.get("containerPort")
        if name:
            if name in names:
                yield duplicate(f"{path}[{index}].name", name)
            names.add(name)
        if not number:
            yield missing(f"{path}[{index}].containerPort")
        for field in ("containerPort", "hostPort"):
            if port.get(field) and not 1 <= port[field] <= 65535:
                yield bad(f"{path}[{index}].{field}", port[field], "must be between 1 and 65535, inclusive")
        yield from _choice(port, f"{path}[{index}]", "protocol", ["SCTP", "TCP", "UDP"])


def _environment(variables: list[dict[str, Any]], path: str) -> Iterator[Cause]:
    for index, variable in enumerate(variables):
        name = variable.get("name") or ""
        if name and not _ENV_NAME.fullmatch(name):
            why = (
                "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', "
                "and must not start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used "
                "for validation is '[-._a-zA-Z][-._a-zA-Z0-9]*')"
            )
            yield bad(f"{path}[{index}].name", name, why)
        if variable.get("value") and variable.get("valueFrom"):
            yield bad(f"{path}[{index}].valueFrom", "", "may not be specified when `value` is not empty")


def _mounts(mounts: list[dict[str, Any]], path: str, volumes: set[str]) -> Iterator[Cause]:
    places: set[str] = set()
    for index, mount in enumerate(mounts):
        name, place = mount.get("name"), mount.get("mountPath")
        if name and name not in volumes:
            yield Cause("FieldValueNotFound", f"{path}[{index}].name", f'Not found: "{name}"')
        if place and place in places:
            yield bad(f"{path}[{index}].mountPath", place, "must be unique")
        places.add(place or "")


def resources(found: dict[str, Any], path: str) -> Iterator[Cause]:
    """What is wrong with requests and limits."""
    limits, requests = found.get("limits") or {}, found.get("requests") or {}
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            yield from _amount(name, amount, f"{path}.{field}[{name}]", f"{path}.{field}")
    for name, amount in requests.items():
        limit = limits.get(name)
        if limit is None:
            continue
        wanted, most = quantities.parse(amount), quantities.parse(limit)
        if wanted > most:
            yield bad(f"{path}.requests", amount, f"must be less than or equal to {name} limit of {limit}")
        elif wanted != most and not _may_overcommit(name):
            yield bad(f"{path}.requests", amount, f"must be equal to {name} limit of {limit}")


def _amount(name: str, amount: str, place: str, path: str) -> Iterator[Cause]:
    for problem in qualified_problems(name):
        yield bad(path, name, problem)
    if "/" not in name and name not in _STANDARD and not name.startswith("hugepages-"):
        yield bad(path, name, "must be a standard resource type or fully qualified")
        yield bad(path, name, "must be a standard resource for containers")
    number = quantities.parse(amount)
    if number < 0:
        yield bad(place, amount, _NOT_NEGATIVE)
    if "/" in name and number.denominator != 1:
        yield bad(place, amount, "must be an integer")


_STANDARD = ("cpu", "memory", "ephemeral-storage", "storage")


def _may_overcommit(name: str) -> bool:
    return name in _STANDARD or name.rpartition("/")[0].endswith("kubernetes.io")


def _toleration(toleration: dict[str, Any], path: str) -> Iterator[Cause]:
    operator = toleration.get("operator") or "Equal"
    if operator not in ("Equal", "Exists"):
        yield unsupported(f"{path}.operator", operator, ["Equal", "Exists"])
    if not toleration.get("key") and operator != "Exists":
        yield bad(
            f"{path}.operator",
            operator,
            'operator must be Exists when `key` is empty, which means "match all values and all keys"',
        )
    if operator == "Exists" and toleration.get("value"):
        yield bad(f"{path}.operator", toleration, "value must be empty when `operator` is 'Exists'")
    yield from _choice(toleration, path, "effect", ["NoSchedule", "PreferNoSchedule", "NoExecute"])
