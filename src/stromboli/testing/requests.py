"""What a request to the fake API server is about: verb, resource, namespace, name, options."""

from __future__ import annotations

from dataclasses import dataclass

from aiohttp import web

from stromboli.testing.memory import Key, Resource

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}


@dataclass(frozen=True, slots=True)
class Target:
    """One request, as authorisation would see it."""

    verb: str
    resource: Resource
    namespace: str
    name: str
    subresource: str
    label_selector: str
    field_selector: str
    dry_run: bool

    @property
    def key(self) -> Key:
        """``(namespace, name)``."""
        return self.namespace, self.name

    @property
    def api_version(self) -> str:
        """``group/version``."""
        group, version, _ = self.resource
        return f"{group}/{version}" if group else version


def parse_target(request: web.Request) -> Target:
    """What the path and the query say. ``LookupError`` when the path is not that of a resource."""
    resource, namespace, name, subresource = _parse_path(request.path)
    return Target(
        verb=_verb(request, name),
        resource=resource,
        namespace=namespace,
        name=name,
        subresource=subresource,
        label_selector=request.query.get("labelSelector", ""),
        field_selector=request.query.get("fieldSelector", ""),
        dry_run=bool(request.query.get("dryRun")),
    )


def _parse_path(path: str) -> tuple[Resource, str, str, str]:
    match path.strip("/").split("/"):
        case ["api", version, *rest] if rest:
            group = ""
        case ["apis", group, version, *rest] if rest:
            pass
        case _:
            raise LookupError(path)
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        _, namespace, *rest = rest
    plural, name, subresource, *more = [*rest, "", ""]
    if any(more):
        raise LookupError(path)
    return (group, version, plural), namespace, name, subresource


def _verb(request: web.Request, name: str) -> str:
    if request.method == "GET":
        if request.query.get("watch") in ("true", "1"):
            return "watch"
        return "get" if name else "list"
    if request.method == "DELETE":
        return "delete" if name else "deletecollection"
    if request.method not in _VERBS:
        raise LookupError(request.method)
    return _VERBS[request.method]
