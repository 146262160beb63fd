"""ServiceAccount: pods run as ``default`` unless they say otherwise, and never as an account that does not exist.

No token volume is added: simulated containers mount nothing, and pods stay as small as their authors wrote them.
"""

from __future__ import annotations

from stromboli.api import kinds
from stromboli.localcluster.extending import AdmissionRequest
from stromboli.localcluster.statuses import forbidden
from stromboli.localcluster.storage import Key, Store


def set_service_account(request: AdmissionRequest, store: Store) -> None:
    """Name the account of a new pod, and refuse one that is not there."""
    pod = request.obj
    if request.kind != kinds.PODS or request.operation != "CREATE" or request.subresource or pod is None:
        return
    spec = pod["spec"]
    name = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    account = store.get(Key.of(kinds.SERVICE_ACCOUNTS, request.namespace, name))
    if account is None:
        why = f'error looking up service account {request.namespace}/{name}: serviceaccount "{name}" not found'
        raise forbidden(kinds.PODS, request.name, why)
    secrets = account.object.get("imagePullSecrets")
    if secrets and not spec.get("imagePullSecrets"):
        spec["imagePullSecrets"] = [dict(secret) for secret in secrets]
