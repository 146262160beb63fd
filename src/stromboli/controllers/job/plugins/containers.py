"""Small changes to containers that several plugins make."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.kube.json import JsonObject


def regular(pod: JsonObject) -> list[JsonObject]:
    """Containers of a pod, without init containers."""
    return list(pod["spec"].get("containers") or ())


def every(pod: JsonObject) -> list[JsonObject]:
    """Containers and init containers of a pod."""
    return [*regular(pod), *(pod["spec"].get("initContainers") or ())]


def append(holder: JsonObject, field: str, *items: JsonObject) -> None:
    """Append to a list that may be missing."""
    holder[field] = [*(holder.get(field) or ()), *items]


def add_env(containers: Iterable[JsonObject], *variables: tuple[str, str]) -> None:
    """Append environment variables with literal values."""
    for container in containers:
        append(container, "env", *({"name": name, "value": value} for name, value in variables))


def expose(containers: Iterable[JsonObject], name: str, port: int) -> None:
    """Add a container port, unless the container exposes that number already."""
    for container in containers:
        if all(one.get("containerPort") != port for one in container.get("ports") or ()):
            append(container, "ports", {"name": name, "containerPort": port})
