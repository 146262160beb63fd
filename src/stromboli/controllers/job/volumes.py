"""Claims of a job's volumes: naming them, creating them, insisting on those that are the user's (spec 02 section 16).

A name is stored in the job before the claim is created, so a controller that dies in between finds it again.
"""

from __future__ import annotations

from stromboli.api import kinds
from stromboli.api.batch import Job
from stromboli.controllers.job import pods
from stromboli.controllers.job.observed import Observed
from stromboli.controllers.job.operations import CreateClaim, Operation, PatchJob
from stromboli.controllers.job.refusals import Refused
from stromboli.kube.json import JsonObject


def naming(view: Observed) -> PatchJob | None:
    """The patch that names volumes without a name; None when all have one."""
    volumes = view.job.spec.volumes
    if all(volume.volume_claim_name for volume in volumes):
        return None
    wire: list[JsonObject] = []
    for position, volume in enumerate(volumes):
        written = volume.to_wire()
        written.setdefault("volumeClaimName", _generated(view, position))
        wire.append(written)
    return PatchJob({"spec": {"volumes": wire}})


def _generated(view: Observed, position: int) -> str:
    """``<job>-pvc-<12 characters>`` that no claim has yet; the same one however often it is asked for."""
    for attempt in range(100):
        name = _prefix(view.job) + pods.digest(view.job.uid, "volume", str(position), str(attempt))
        if name not in view.claims:
            return name
    raise Refused("PVCError", "Failed to create PVC, err: no free name was found in 100 attempts")


def _prefix(job: Job) -> str:
    return f"{job.name}-pvc-"


def claims(view: Observed) -> tuple[list[Operation], dict[str, str]]:
    """Claims to create, and the entries for ``status.controlledResources``. All volumes must have names.

    Raises:
        Refused: a claim that is the user's own does not exist.
    """
    wanted: list[Operation] = []
    controlled: dict[str, str] = {}
    for volume in view.job.spec.volumes:
        name = volume.volume_claim_name
        if name not in view.claims:
            if not volume.volume_claim or not name.startswith(_prefix(view.job)):
                raise Refused(
                    "PVCError",
                    f"Failed to create PVC, err: pvc {name} is not found, "
                    "the job will be in the Pending state until the PVC is created",
                )
            wanted.append(CreateClaim(_claim(view.job, name, volume.volume_claim.to_wire())))
        controlled[f"volume-pvc-{name}"] = name
    return wanted, controlled


def _claim(job: Job, name: str, spec: JsonObject) -> JsonObject:
    return {
        "apiVersion": kinds.PERSISTENT_VOLUME_CLAIMS.api_version,
        "kind": kinds.PERSISTENT_VOLUME_CLAIMS.kind,
        "metadata": {
            "name": name,
            "namespace": job.namespace,
            "ownerReferences": [pods.owner_reference(job)],
        },
        "spec": spec,
    }
