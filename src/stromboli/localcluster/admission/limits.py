"""LimitRanger for containers: defaults for requests and limits, and minimum and maximum."""

from __future__ import annotations

from collections.abc import Iterator

from stromboli.api import kinds, quantities
from stromboli.localcluster.extending import AdmissionRequest
from stromboli.localcluster.statuses import forbidden
from stromboli.localcluster.storage import Object, Store


def apply_limit_defaults(request: AdmissionRequest, store: Store) -> None:
    """Fill the requests and limits that containers leave open."""
    for item, container in _containers(request, store):
        resources = container.setdefault("resources", {})
        limits, requests = dict(resources.get("limits") or {}), dict(resources.get("requests") or {})
        for name, amount in (item.get("default") or {}).items():
            limits.setdefault(name, amount)
        for name, amount in (item.get("defaultRequest") or item.get("default") or {}).items():
            requests.setdefault(name, amount)
        if limits:
            resources["limits"] = limits
        if requests:
            resources["requests"] = requests


def check_limits(request: AdmissionRequest, store: Store) -> None:
    """Refuse containers outside of minimum and maximum."""
    for item, container in _containers(request, store):
        problems = list(_problems(item, container.get("resources") or {}))
        if problems:
            text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
            raise forbidden(kinds.PODS, request.name, text)


def _containers(request: AdmissionRequest, store: Store) -> Iterator[tuple[Object, Object]]:
    """Pairs of a limit item and a container of the new pod that it concerns."""
    pod = request.obj
    if request.kind != kinds.PODS or request.operation != "CREATE" or request.subresource or pod is None:
        return
    for stored in store.list(kinds.LIMIT_RANGES, request.namespace):
        for item in stored.object["spec"].get("limits") or ():
            if item.get("type") == "Container":
                for container in [*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]]:
                    yield item, container


def _problems(item: Object, resources: Object) -> Iterator[str]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for name, least in (item.get("min") or {}).items():
        given = requests.get(name)
        if given is None:
            yield f"minimum {name} usage per Container is {least}.  No request is specified"
        elif quantities.parse(given) < quantities.parse(least):
            yield f"minimum {name} usage per Container is {least}, but request is {given}"
    for name, most in (item.get("max") or {}).items():
        given = limits.get(name)
        if given is None:
            yield f"maximum {name} usage per Container is {most}.  No limit is specified"
        elif quantities.parse(given) > quantities.parse(most):
            yield f"maximum {name} usage per Container is {most}, but limit is {given}"
