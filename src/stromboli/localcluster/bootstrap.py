"""What exists in the cluster from the start: namespaces, roles, priority classes, the storage class, the API's Service.

Everything is created only where it is missing, so a restored cluster keeps what its users changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import yaml

from stromboli.api import manifests
from stromboli.localcluster.admission.priorities import system_priority_classes
from stromboli.localcluster.auth.bootstrap import cluster_role_bindings, cluster_roles
from stromboli.localcluster.controllers.namespaces import complete
from stromboli.localcluster.controllers.volumes import default_storage_class
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.requests import WriteOptions
from stromboli.localcluster.statuses import StatusError
from stromboli.localcluster.storage import Key, Object

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease", "volcano-system")


class ManifestError(Exception):
    """A manifest that cannot be loaded at start; the message names the file and what is wrong."""

    for_user = True


async def bootstrap(registry: Registry, ca: str) -> None:
    """Create what is missing."""
    for name in NAMESPACES:
        await ensure(registry, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        await complete(registry, name, ca)
    for obj in (*cluster_roles(), *cluster_role_bindings(), *system_priority_classes(), default_storage_class()):
        await ensure(registry, obj)
    await ensure(registry, _api_service())


async def ensure(registry: Registry, obj: Object, options: WriteOptions | None = None) -> None:
    """Create an object unless one of its name is there. Raises :class:`ManifestError` for a kind that is not served."""
    served = registry.kinds.by_kind(str(obj.get("apiVersion")), str(obj.get("kind")))
    if served is None:
        raise ManifestError(f'no matches for kind "{obj.get("kind")}" in version "{obj.get("apiVersion")}"')
    metadata = obj.get("metadata") or {}
    namespace = (metadata.get("namespace") or "default") if served.kind.namespaced else None
    if registry.store.get(Key.of(served.kind, namespace, str(metadata.get("name")))) is None:
        await registry.create(served.kind, obj, namespace, options or WriteOptions())


def read_manifests(directory: Path) -> list[tuple[Path, Object]]:
    """All objects in the YAML and JSON files of a directory, in the order of the files' names.

    Raises :class:`ManifestError` naming the file.
    """
    try:
        files = sorted(path for path in directory.iterdir() if path.suffix in (".yaml", ".yml", ".json"))
    except OSError as error:
        raise ManifestError(f"{directory}: {error.strerror}; give a readable directory") from error
    return [(path, obj) for path in files for obj in _read(path)]


async def load(registry: Registry, manifests: Sequence[tuple[Path, Object]]) -> None:
    """Create the objects of manifests that are missing; definitions and namespaces first.

    Raises :class:`ManifestError` naming the first file that is refused.
    """
    for path, obj in sorted(manifests, key=lambda one: _rank(one[1])):
        try:
            await ensure(registry, obj)
        except StatusError as error:
            raise ManifestError(f"{path}: {error.message}") from error
        except ManifestError as error:
            raise ManifestError(f"{path}: {error}") from error


def _read(path: Path) -> Iterable[Object]:
    try:
        documents = list(manifests.documents(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"{path}: cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise ManifestError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    for document in documents:
        if document is None:
            continue
        if not isinstance(document, dict) or not document.get("kind"):
            raise ManifestError(f"{path}: expected an object with apiVersion, kind and metadata")
        if document["kind"] == "List":
            yield from document.get("items") or ()
        else:
            yield document


def _rank(obj: Object) -> int:
    order = {"CustomResourceDefinition": 0, "Namespace": 1, "ServiceAccount": 2, "PriorityClass": 2}
    return order.get(str(obj.get("kind")), 3)


def _api_service() -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {"type": "ClusterIP", "ports": [{"name": "https", "port": 443, "targetPort": 6443, "protocol": "TCP"}]},
    }


async def install_own_definitions(registry: Registry) -> None:
    """Install the definitions that the system itself needs."""
    for definition in _own_definitions():
        await ensure(registry, definition)


@cache
def _own_definitions() -> list[Object]:
    """Made once: several clusters in one process (tests) share them, and the registry copies what it is given."""
    from stromboli.api.crds import custom_resource_definitions

    return custom_resource_definitions()
