"""DefaultStorageClass: a claim that names no class gets the default one, the newest if there are several."""

from __future__ import annotations

from stromboli.api import kinds
from stromboli.localcluster.extending import AdmissionRequest
from stromboli.localcluster.storage import Object, Store

IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"


def set_storage_class(request: AdmissionRequest, store: Store) -> None:
    """Name the class of a new claim; an empty name means none and stays."""
    claim = request.obj
    if request.kind != kinds.PERSISTENT_VOLUME_CLAIMS or request.operation != "CREATE" or claim is None:
        return
    if claim["spec"].get("storageClassName") is None:
        chosen = default_class(store)
        if chosen is not None:
            claim["spec"]["storageClassName"] = chosen["metadata"]["name"]


def default_class(store: Store) -> Object | None:
    """The StorageClass that is marked as default."""
    marked = [
        stored.object
        for stored in store.list(kinds.STORAGE_CLASSES)
        if (stored.object["metadata"].get("annotations") or {}).get(IS_DEFAULT) == "true"
    ]
    return max(marked, key=lambda one: str(one["metadata"].get("creationTimestamp")), default=None)
