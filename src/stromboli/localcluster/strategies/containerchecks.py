"""Checks of containers: names, images, ports, environment, mounts, probes, resources."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from stromboli.api import quantities
from stromboli.localcluster.schemas.validating import bad, duplicate, missing, shown, unsupported
from stromboli.localcluster.statuses import Cause
from stromboli.localcluster.validation.metadata import label_problems, qualified_problems

NOT_NEGATIVE = "must be greater than or equal to 0"
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLERS = ("exec", "grpc", "httpGet", "tcpSocket")
_STANDARD = ("cpu", "memory", "ephemeral-storage", "storage")
_LARGEST = 2**31 - 1
_ENV_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
_BAD_ENV_NAME = (
    "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not "
    "start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is "
    "'[-._a-zA-Z][-._a-zA-Z0-9]*')"
)


def forbidden(path: str, why: str) -> Cause:
    """``Forbidden: WHY``."""
    return Cause("FieldValueForbidden", path, f"Forbidden: {why}")


def not_found(path: str, value: str, why: str = "") -> Cause:
    """``Not found: VALUE``."""
    return Cause("FieldValueNotFound", path, f"Not found: {shown(value)}" + (f": {why}" if why else ""))


def choice(obj: dict[str, Any], path: str, name: str, allowed: list[str]) -> Iterator[Cause]:
    """A field that takes one of a few words."""
    if obj.get(name) is not None and obj[name] not in allowed:
        yield unsupported(f"{path}.{name}", obj[name], list(allowed))


@dataclass
class _Pod:
    """What containers refer to, and the names that are taken."""

    spec: dict[str, Any]
    volumes: set[str]
    names: set[str] = field(default_factory=set)


def check_all(spec: dict[str, Any], path: str, volumes: set[str]) -> Iterator[Cause]:
    """Everything that is wrong with the containers of a pod."""
    pod = _Pod(spec, volumes)
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            place = f"{path}.{kind}[{index}]"
            yield from _container(container, place, pod)
            yield from _restart_policy(container, place, kind)


def _restart_policy(container: dict[str, Any], path: str, kind: str) -> Iterator[Cause]:
    if container.get("restartPolicy") is None:
        return
    if kind == "initContainers":
        yield from choice(container, path, "restartPolicy", ["Always"])
    else:
        yield forbidden(f"{path}.restartPolicy", "may not be set for non-init containers")


def _container(container: dict[str, Any], path: str, pod: _Pod) -> Iterator[Cause]:
    name, image = container.get("name") or "", container.get("image") or ""
    if name:
        yield from (bad(f"{path}.name", name, problem) for problem in label_problems(name))
        if name in pod.names:
            yield duplicate(f"{path}.name", name)
    pod.names.add(name)
    if not image:
        yield missing(f"{path}.image")
    elif image.strip() != image:
        yield bad(f"{path}.image", image, "must not have leading or trailing whitespace")
    yield from choice(container, path, "imagePullPolicy", ["Always", "IfNotPresent", "Never"])
    yield from _ports(container.get("ports") or [], f"{path}.ports")
    yield from _environment(container.get("env") or [], f"{path}.env")
    yield from _mounts(container.get("volumeMounts") or [], f"{path}.volumeMounts", pod.volumes)
    yield from _handlers(container, path, pod)
    yield from _user(container, path)
    yield from resources(container.get("resources") or {}, f"{path}.resources")
    yield from _claims(container, f"{path}.resources.claims", pod)


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
        for one in ("containerPort", "hostPort"):
            if port.get(one) and not 1 <= port[one] <= 65535:
                yield bad(f"{path}[{index}].{one}", port[one], "must be between 1 and 65535, inclusive")
        yield from choice(port, f"{path}[{index}]", "protocol", ["SCTP", "TCP", "UDP"])


def _environment(variables: list[dict[str, Any]], path: str) -> Iterator[Cause]:
    for index, variable in enumerate(variables):
        name = variable.get("name") or ""
        if name and not _ENV_NAME.fullmatch(name):
            yield bad(f"{path}[{index}].name", name, _BAD_ENV_NAME)
        if variable.get("value") and variable.get("valueFrom"):
            yield bad(f"{path}[{index}].valueFrom", "", "may not be specified when `value` is not empty")


def _mounts(mounts: list[dict[str, Any]], path: str, volumes: set[str]) -> Iterator[Cause]:
    places: set[str] = set()
    for index, mount in enumerate(mounts):
        name, place = mount.get("name"), mount.get("mountPath")
        if name and name not in volumes:
            yield not_found(f"{path}[{index}].name", name)
        if place and place in places:
            yield bad(f"{path}[{index}].mountPath", place, "must be unique")
        places.add(place or "")


def _handlers(container: dict[str, Any], path: str, pod: _Pod) -> Iterator[Cause]:
    for name in _PROBES:
        probe = container.get(name)
        if probe is not None and not any(probe.get(handler) is not None for handler in _HANDLERS):
            yield missing(f"{path}.{name}", "must specify a handler type")
    grace = pod.spec.get("terminationGracePeriodSeconds") or 0
    sleep = ((container.get("lifecycle") or {}).get("preStop") or {}).get("sleep")
    if sleep is not None and not 0 <= sleep.get("seconds", 0) <= grace:
        why = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
        yield bad(f"{path}.lifecycle.preStop.sleep", sleep.get("seconds", 0), why)


def _user(container: dict[str, Any], path: str) -> Iterator[Cause]:
    context = container.get("securityContext") or {}
    for name in ("runAsUser", "runAsGroup"):
        if context.get(name) is not None and not 0 <= context[name] <= _LARGEST:
            yield bad(f"{path}.securityContext.{name}", context[name], f"must be between 0 and {_LARGEST}, inclusive")


def _claims(container: dict[str, Any], path: str, pod: _Pod) -> Iterator[Cause]:
    known = {claim.get("name") for claim in pod.spec.get("resourceClaims") or ()}
    for index, claim in enumerate((container.get("resources") or {}).get("claims") or ()):
        if claim.get("name") not in known:
            why = "must be one of the names in pod.spec.resourceClaims" + ("" if known else " which is empty")
            yield not_found(f"{path}[{index}]", claim.get("name", ""), why)


def resources(found: dict[str, Any], path: str) -> Iterator[Cause]:
    """What is wrong with requests and limits."""
    limits, requests = found.get("limits") or {}, found.get("requests") or {}
    for kind, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            if kind == "limits" or name not in limits:
                yield from _amount(name, amount, f"{path}.{kind}[{name}]")
    named = {*limits, *requests}
    if any(name.startswith("hugepages-") for name in named) and not named & {"cpu", "memory"}:
        yield forbidden(path, "HugePages require cpu or memory")
    for name, amount in requests.items():
        yield from _within_limit(name, amount, limits.get(name), f"{path}.requests")


def _within_limit(name: str, amount: str, limit: str | None, path: str) -> Iterator[Cause]:
    if limit is None:
        return
    wanted, most = quantities.parse(amount), quantities.parse(limit)
    if wanted > most:
        yield bad(path, amount, f"must be less than or equal to {name} limit of {limit}")
    elif wanted != most and not _may_overcommit(name):
        yield bad(path, amount, f"must be equal to {name} limit of {limit}")


def _amount(name: str, amount: str, path: str) -> Iterator[Cause]:
    for problem in qualified_problems(name):
        yield bad(path, name, problem)
    if "/" not in name and name not in _STANDARD and not name.startswith("hugepages-"):
        yield bad(path, name, "must be a standard resource type or fully qualified")
        yield bad(path, name, "must be a standard resource for containers")
    number: Fraction = quantities.parse(amount)
    if number < 0:
        yield bad(path, amount, NOT_NEGATIVE)
    if "/" in name and number.denominator != 1:
        yield bad(path, amount, "must be an integer")


def _may_overcommit(name: str) -> bool:
    return name in _STANDARD or name.rpartition("/")[0].endswith("kubernetes.io")
