"""DefaultTolerationSeconds: new pods tolerate a node that is not ready or unreachable for five minutes."""

from __future__ import annotations

from stromboli.api import kinds
from stromboli.localcluster.extending import AdmissionRequest
from stromboli.localcluster.storage import Object, Store

SECONDS = 300
TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def add_default_tolerations(request: AdmissionRequest, store: Store) -> None:
    """Add what a new pod does not tolerate by itself."""
    pod = request.obj
    if request.kind != kinds.PODS or request.operation != "CREATE" or request.subresource or pod is None:
        return
    tolerations: list[Object] = list(pod["spec"].get("tolerations") or ())
    missing = [key for key in TAINTS if not any(_tolerates(toleration, key) for toleration in tolerations)]
    if missing:
        pod["spec"]["tolerations"] = tolerations + [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": SECONDS} for key in missing
        ]


def _tolerates(toleration: Object, key: str) -> bool:
    return toleration.get("key") in (key, "", None) and toleration.get("effect") in ("NoExecute", "", None)
