"""``pods/binding`` and the ``bindings`` collection: a pod gets its node, once.

The write goes straight to the store: ``spec.nodeName`` is what nobody else may change, and between the check and the
write nothing can happen. Annotations and labels of the Binding are merged into the pod's.
"""

from __future__ import annotations

from collections.abc import Mapping

from stromboli.api import kinds
from stromboli.localcluster import clock
from stromboli.localcluster.extending import AdmissionRequest, Answer, SubresourceRequest
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.statuses import Cause, StatusError, bad_request, invalid
from stromboli.localcluster.storage import Key, Object


class Bindings:
    """Serves both forms of binding."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def __call__(self, request: SubresourceRequest) -> Answer:
        """Bind the pod that the path, or the Binding itself, names."""
        body = request.body or {}
        metadata = body.get("metadata") or {}
        name = request.name or metadata.get("name") or ""
        if request.name and metadata.get("name") not in (None, "", request.name):
            raise bad_request("name in URL does not match name in Binding object")
        node = _target(body, name)
        await self._admit(
            request, name, {**body, "metadata": {**metadata, "name": name, "namespace": request.namespace}}
        )
        await bind(
            self._registry,
            request.namespace,
            name,
            node,
            uid=metadata.get("uid"),
            version=metadata.get("resourceVersion"),
            annotations=metadata.get("annotations"),
            labels=metadata.get("labels"),
            dry_run=request.dry_run,
        )
        return Answer({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201)

    async def _admit(self, request: SubresourceRequest, name: str, body: Object) -> None:
        if self._registry.admission is None:
            return
        asked = AdmissionRequest(
            "CREATE", kinds.PODS, request.namespace, name, body, None, request.user, "binding",
            request.dry_run, {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"}, request.warn,
        )  # fmt: skip
        await self._registry.admission.mutate(asked)
        await self._registry.admission.validate(asked)


async def bind(
    registry: Registry,
    namespace: str,
    name: str,
    node: str,
    *,
    uid: str | None = None,
    version: str | None = None,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    dry_run: bool = False,
) -> None:
    """Give a pod its node. 404 when it is not there, 409 when it is another pod, is bound already or is going away."""
    stored = registry.read(kinds.PODS, namespace, name)
    pod = stored.object
    _check(pod, name, uid, version)
    metadata = dict(pod["metadata"])
    if annotations:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **annotations}
    if labels:
        metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
    status = pod.get("status") or {}
    conditions = [one for one in status.get("conditions") or () if one["type"] != "PodScheduled"]
    conditions.append(
        {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": clock.timestamp()}
    )
    bound = {
        **pod,
        "metadata": metadata,
        "spec": {**pod["spec"], "nodeName": node},
        "status": {**status, "phase": status.get("phase") or "Pending", "conditions": conditions},
    }
    if not dry_run:
        registry.store.replace(Key.of(kinds.PODS, namespace, name), bound, stored.revision)


def _check(pod: Object, name: str, uid: str | None, version: str | None) -> None:
    metadata = pod["metadata"]
    if uid and uid != metadata["uid"]:
        raise _refused(name, f"Precondition failed: UID in precondition: {uid}, UID in object meta: {metadata['uid']}")
    if version and version != metadata["resourceVersion"]:
        present = metadata["resourceVersion"]
        seen = f"ResourceVersion in precondition: {version}, ResourceVersion in object meta: {present}"
        raise _refused(name, f"Precondition failed: {seen}")
    if metadata.get("deletionTimestamp"):
        raise _refused(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if pod["spec"].get("nodeName"):
        raise _refused(name, f'pod {name} is already assigned to node "{pod["spec"]["nodeName"]}"')
    if pod["spec"].get("schedulingGates"):
        raise _refused(name, f"pod {name} has non-empty .spec.schedulingGates")


def _refused(name: str, why: str) -> StatusError:
    message = f'Operation cannot be fulfilled on pods/binding "{name}": {why}'
    return StatusError(409, "Conflict", message, details={"name": name, "kind": "pods/binding"})


def _target(body: Object, name: str) -> str:
    target = body.get("target")
    if not isinstance(target, dict) or not target.get("name"):
        raise invalid(kinds.BINDINGS, name, [Cause("FieldValueRequired", "target.name", "Required value")])
    if target.get("kind") not in (None, "", "Node"):
        text = f'Unsupported value: "{target["kind"]}": supported values: "Node", "<empty>"'
        raise invalid(kinds.BINDINGS, name, [Cause("FieldValueNotSupported", "target.kind", text)])
    return str(target["name"])
