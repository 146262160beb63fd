"""Discovery documents: which groups, versions and resources there are. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.localcluster.catalog import Catalog, ServedKind
from stromboli.localcluster.scaling import SCALE
from stromboli.localcluster.storage import Object

_PART_VERBS = ("get", "patch", "update")
_FIRST_GROUPS = ("apps", "batch")


def legacy_versions(address: str) -> Object:
    """``/api``."""
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}


def group_list(catalog: Catalog) -> Object:
    """``/apis``."""
    groups = [group(catalog, name) for name in _named_groups(catalog)]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(catalog: Catalog, name: str) -> Object:
    """``/apis/GROUP``; raises LookupError for a group that is not served."""
    versions = _versions(catalog.groups()[name])
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"kind": "APIGroup", "apiVersion": "v1", "name": name, "versions": listed, "preferredVersion": listed[0]}


def resource_list(catalog: Catalog, name: str, version: str) -> Object:
    """``/api/v1`` and ``/apis/GROUP/VERSION``; raises LookupError when it is not served."""
    served = catalog.groups()[name][version]
    group_version = f"{name}/{version}" if name else version
    resources = [one for kind in _sorted(served) for one in _resources(kind)]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}


def aggregated(catalog: Catalog, *, legacy: bool) -> Object:
    """The aggregated form (``APIGroupDiscoveryList``, v2) of ``/api`` or ``/apis``."""
    groups = catalog.groups()
    names = [""] if legacy else _named_groups(catalog)
    items = [{"metadata": {"name": name}, "versions": _aggregated_versions(groups[name])} for name in names]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _named_groups(catalog: Catalog) -> list[str]:
    """Built-in groups before those of CRDs, so that short names of built-in kinds win."""
    custom = {served.kind.group for served in catalog if served.is_custom}
    names = [name for name in catalog.groups() if name]
    return sorted(names, key=lambda name: (name in custom, name not in _FIRST_GROUPS, name))


def _versions(by_version: dict[str, list[ServedKind]]) -> list[str]:
    return sorted(by_version, key=_maturity, reverse=True)


def _maturity(version: str) -> tuple[int, int, int]:
    """Kubernetes' order: v2 before v1 before v1beta1 before v1alpha1."""
    digits = version.lstrip("v")
    for level, word in ((1, "beta"), (0, "alpha")):
        major, found, minor = digits.partition(word)
        if found:
            return level, int(major or 0), int(minor or 0)
    return 2, int(digits) if digits.isdigit() else 0, 0


def _sorted(served: Iterable[ServedKind]) -> list[ServedKind]:
    return sorted(served, key=lambda one: one.kind.plural)


def _parts(served: ServedKind) -> Iterator[tuple[str, Kind, tuple[str, ...]]]:
    if served.has_status:
        yield "status", served.kind, _PART_VERBS
    if served.scale is not None:
        yield "scale", SCALE, _PART_VERBS
    if served.kind == kinds.NAMESPACES:
        yield "finalize", served.kind, ("update",)
    for name, subresource in sorted(served.subresources.items()):
        yield name, subresource.kind, subresource.verbs


def _resources(served: ServedKind) -> Iterator[Object]:
    kind, names = served.kind, served.names
    resource: Object = {
        "name": kind.plural, "singularName": names.singular, "namespaced": kind.namespaced, "kind": kind.kind,
        "verbs": list(served.verbs),
    }  # fmt: skip
    if names.short:
        resource["shortNames"] = list(names.short)
    if names.categories:
        resource["categories"] = list(names.categories)
    yield resource
    for name, body, verbs in _parts(served):
        part: Object = {
            "name": f"{kind.plural}/{name}", "singularName": "", "namespaced": kind.namespaced, "kind": body.kind,
            "verbs": list(verbs),
        }  # fmt: skip
        if body.group != kind.group:
            part |= {"group": body.group, "version": body.version}
        yield part


def _aggregated_versions(by_version: dict[str, list[ServedKind]]) -> list[Object]:
    return [
        {
            "version": version,
            "resources": [_aggregated_resource(served) for served in _sorted(by_version[version])],
            "freshness": "Current",
        }
        for version in _versions(by_version)
    ]


def _aggregated_resource(served: ServedKind) -> Object:
    kind, names = served.kind, served.names
    resource: Object = {
        "resource": kind.plural, "responseKind": _response_kind(kind),
        "scope": "Namespaced" if kind.namespaced else "Cluster", "singularResource": names.singular,
        "verbs": list(served.verbs),
    }  # fmt: skip
    if names.short:
        resource["shortNames"] = list(names.short)
    if names.categories:
        resource["categories"] = list(names.categories)
    parts = [
        {"subresource": name, "responseKind": _response_kind(body), "verbs": list(verbs)}
        for name, body, verbs in _parts(served)
    ]
    if parts:
        resource["subresources"] = parts
    return resource


def _response_kind(kind: Kind) -> Object:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}
