"""NamespaceLifecycle: nothing is created in a namespace that does not exist or is going away.

The namespaces default, kube-system and kube-public cannot be deleted.
"""

from __future__ import annotations

from stromboli.api import kinds
from stromboli.localcluster.extending import AdmissionRequest
from stromboli.localcluster.statuses import StatusError, forbidden, not_found
from stromboli.localcluster.storage import Key, Store

IMMORTAL = frozenset({"default", "kube-system", "kube-public"})


def check_namespace(request: AdmissionRequest, store: Store) -> None:
    """Refuse writes that the state of the namespace forbids."""
    if request.kind == kinds.NAMESPACES:
        if request.operation == "DELETE" and request.name in IMMORTAL:
            raise forbidden(kinds.NAMESPACES, request.name, "this namespace may not be deleted")
        return
    if request.operation != "CREATE" or request.subresource or not request.kind.namespaced:
        return
    stored = store.get(Key.of(kinds.NAMESPACES, None, request.namespace))
    if stored is None:
        raise not_found(kinds.NAMESPACES, request.namespace)
    if stored.object["metadata"].get("deletionTimestamp"):
        raise _terminating(request)


def _terminating(request: AdmissionRequest) -> StatusError:
    why = f"unable to create new content in namespace {request.namespace} because it is being terminated"
    error = forbidden(request.kind, request.name, why)
    cause = {"reason": "NamespaceTerminating", "message": f"namespace {request.namespace} is being terminated",
             "field": "metadata.namespace"}  # fmt: skip
    error.details["causes"] = [cause]
    return error
