"""Paths that are about the server rather than about objects: discovery, OpenAPI, version and health."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import NamedTuple

import orjson

from stromboli.localcluster import discovery, openapi, statuses
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.storage import Object

VERSION = ("1", "34", "v1.34.1+stromboli")
"""What ``kubectl version`` shows: the API level that is followed."""

HEALTH_PATHS = ("/healthz", "/livez", "/readyz")
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_PROTOBUF_V2 = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_EMPTY_SWAGGER = b"\n\x032.0\x12\x15\n\nKubernetes\x12\x07v1.34.1"
"""An OpenAPI v2 Document without paths in Protobuf (``swagger: "2.0"``, ``info``): clients prefer v3 and find it."""


class Document(NamedTuple):
    """A body with its media type."""

    body: bytes
    media_type: str = "application/json"


class Documents:
    """Answers for such paths; discovery and OpenAPI are made anew only when the set of kinds has changed."""

    def __init__(self, registry: Registry, address: str = "") -> None:
        self._registry = registry
        self._address = address
        self._cache: dict[str, Document] = {}
        self._generation = -1

    def find(self, path: str, accept: str, query: Mapping[str, str]) -> Document:
        """The document at ``path``; 404 when there is none."""
        if path.startswith(HEALTH_PATHS):
            return health(path, query)
        if path == "/version":
            return Document(_dump(version()))
        aggregated = _accepts_aggregated(accept)
        key = f"{path} {aggregated} {_PROTOBUF_V2 in accept}"
        if self._generation != self._registry.kinds.generation:
            self._cache.clear()
            self._generation = self._registry.kinds.generation
        if key not in self._cache:
            self._cache[key] = self._make(path, accept, aggregated)
        return self._cache[key]

    def _make(self, path: str, accept: str, aggregated: bool) -> Document:
        parts = [part for part in path.split("/") if part]
        if not parts:
            return Document(_dump({"paths": self._root_paths()}))
        try:
            match parts:
                case ["api" | "apis"] if aggregated:
                    return Document(
                        _dump(discovery.aggregated(self._registry.kinds, legacy=parts == ["api"])), AGGREGATED
                    )
                case ["openapi", *rest]:
                    return self._openapi(rest, accept)
                case _:
                    return Document(_dump(self._discovery(parts)))
        except LookupError as error:
            raise statuses.no_such_path() from error

    def _discovery(self, parts: list[str]) -> Object:
        catalog = self._registry.kinds
        match parts:
            case ["api"]:
                return discovery.legacy_versions(self._address)
            case ["apis"]:
                return discovery.group_list(catalog)
            case ["api", version]:
                return discovery.resource_list(catalog, "", version)
            case ["apis", group]:
                return discovery.group(catalog, group)
            case ["apis", group, version]:
                return discovery.resource_list(catalog, group, version)
        raise LookupError(parts)

    def _openapi(self, parts: list[str], accept: str) -> Document:
        groups = self._registry.kinds.groups()
        match parts:
            case ["v2"] if _PROTOBUF_V2 in accept:
                return Document(_EMPTY_SWAGGER, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
            case ["v2"]:
                info = {"title": "Kubernetes", "version": VERSION[2]}
                return Document(_dump({"swagger": "2.0", "info": info, "paths": {}, "definitions": {}}))
            case ["v3"]:
                return Document(_dump(openapi.index(self._registry.kinds)))
            case ["v3", "api", version]:
                return Document(_dump(openapi.document(groups[""][version])))
            case ["v3", "apis", group, version]:
                return Document(_dump(openapi.document(groups[group][version])))
        raise LookupError(parts)

    def _root_paths(self) -> list[str]:
        found = ["/api", "/api/v1", "/apis"]
        for group, versions in self._registry.kinds.groups().items():
            if group:
                found += [f"/apis/{group}", *(f"/apis/{group}/{version}" for version in versions)]
        return sorted([*found, *HEALTH_PATHS, "/openapi/v2", "/openapi/v3", "/version"])


def _accepts_aggregated(accept: str) -> bool:
    return any(
        "as=APIGroupDiscoveryList" in clause and "v=v2" in clause and "v=v2beta1" not in clause
        for clause in accept.replace(" ", "").split(",")
    )


def health(path: str, query: Mapping[str, str]) -> Document:
    """The health endpoints; the server is ready as soon as it listens."""
    name = path.strip("/").partition("/")[0]
    text = f"[+]ping ok\n[+]storage ok\n{name} check passed\n" if "verbose" in query else "ok"
    return Document(text.encode(), "text/plain")


def version() -> Object:
    """``/version``."""
    major, minor, full = VERSION
    return {
        "major": major, "minor": minor, "gitVersion": full, "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": platform.python_implementation().lower(),
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }  # fmt: skip


def _dump(document: Object) -> bytes:
    return orjson.dumps(document)
