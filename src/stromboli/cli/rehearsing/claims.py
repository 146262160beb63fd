"""Resource claims of pods in a rehearsal: made with a pod, written when it is placed, given back when it is evicted.

What the resource claim controller and the scheduler's binder do in a cluster, at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from stromboli.api import core
from stromboli.api.kinds import PODS
from stromboli.scheduler.core.extensions import DeviceGrant
from stromboli.scheduler.core.objects import ClusterObjects

Templates = Mapping[tuple[str, str], core.ResourceClaimTemplate]


def furnished(pod: core.Pod, templates: Templates) -> tuple[core.Pod, list[core.ResourceClaim]]:
    """A new pod whose status names its claims, and those of them that are made from templates.

    A claim whose template is not there is not made: the pod waits for it, as in a cluster.
    """
    made = dict(_claims(pod, templates))
    if not made:
        return pod, []
    names = tuple(
        core.PodResourceClaimStatus(name=name, resource_claim_name=claim.name) for name, claim in made.items()
    )
    status = msgspec.structs.replace(pod.status, resource_claim_statuses=names)
    return msgspec.structs.replace(pod, status=status), list(made.values())


def _claims(pod: core.Pod, templates: Templates) -> Iterator[tuple[str, core.ResourceClaim]]:
    for reference in pod.spec.resource_claims:
        template = templates.get((pod.namespace, reference.resource_claim_template_name or ""))
        if template is not None:
            yield reference.name, _made_of(template, pod, f"{pod.name}-{reference.name}")


def _made_of(template: core.ResourceClaimTemplate, pod: core.Pod, name: str) -> core.ResourceClaim:
    owner = core.OwnerReference(api_version="v1", kind=PODS.kind, name=pod.name, uid=pod.uid, controller=True)
    labels = template.spec.metadata.labels
    return core.ResourceClaim(
        metadata=core.ObjectMeta(
            name=name, namespace=pod.namespace, uid=f"{pod.uid}-{name}", labels=labels, owner_references=(owner,)
        ),
        spec=template.spec.spec,
    )


def written(objects: ClusterObjects, pod: core.Pod, grants: Iterable[DeviceGrant]) -> Iterator[core.ResourceClaim]:
    """Claims as they are once the pod is bound: allocated, and reserved for it."""
    consumer = core.ResourceClaimConsumer(resource=PODS.plural, name=pod.name, uid=pod.uid)
    for grant in grants:
        claim = objects.get(core.ResourceClaim, grant.claim, pod.namespace)
        if claim is not None and claim.uid == grant.uid:
            others = tuple(one for one in claim.status.reserved_for if one.uid != pod.uid)
            yield _with_status(claim, claim.status.allocation or grant.allocation, (*others, consumer))


def given_back(objects: ClusterObjects, pod: core.Pod) -> Iterator[tuple[core.ResourceClaim, bool]]:
    """Claims that a pod which is gone had, as they are then, and whether they are gone with it."""
    for claim in list(objects.all(core.ResourceClaim).values()):
        if claim.controller is not None and claim.controller.uid == pod.uid:
            yield claim, True
        elif any(one.uid == pod.uid for one in claim.status.reserved_for):
            others = tuple(one for one in claim.status.reserved_for if one.uid != pod.uid)
            yield _with_status(claim, claim.status.allocation if others else None, others), False


def _with_status(
    claim: core.ResourceClaim,
    allocation: core.DeviceAllocation | None,
    consumers: tuple[core.ResourceClaimConsumer, ...],
) -> core.ResourceClaim:
    status = core.ResourceClaimStatus(allocation=allocation, reserved_for=consumers)
    return msgspec.structs.replace(claim, status=status)
