"""Claims, the volumes they can have on a node, and pods that are bound only when their claims are."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import msgspec
import pytest

from stromboli.api import core, kinds
from stromboli.api.core import ObjectMeta
from stromboli.kube.json import JsonObject
from stromboli.scheduler import volume_binding
from stromboli.scheduler.binding import PreBindError
from stromboli.scheduler.core import volumes
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.objects import ClusterObjects
from stromboli.scheduler.core.results import Bind, TaskRef
from stromboli.scheduler.core.volumes import VolumeProblem
from stromboli.scheduler.volume_binding import VolumeBinder
from stromboli.testing import builders
from stromboli.testing.builders import node
from stromboli.testing.clocks import FakeClock
from tests.scheduler.core.worlds import world
from tests.scheduler.shell.stage import Stage, gang

LOCAL = core.StorageClass(
    metadata=ObjectMeta(name="local"),
    provisioner="kubernetes.io/no-provisioner",
    volume_binding_mode="WaitForFirstConsumer",
)
DYNAMIC = core.StorageClass(
    metadata=ObjectMeta(name="fast"), provisioner="csi.example.com", volume_binding_mode="WaitForFirstConsumer"
)
IMMEDIATE = core.StorageClass(metadata=ObjectMeta(name="now"), provisioner="csi.example.com")


def zoned(*zones: str) -> core.StorageClass:
    requirement = core.TopologySelectorRequirement(key="zone", values=zones)
    return core.StorageClass(
        metadata=ObjectMeta(name="zoned"),
        provisioner="csi.example.com",
        volume_binding_mode="WaitForFirstConsumer",
        allowed_topologies=(core.TopologySelectorTerm(match_label_expressions=(requirement,)),),
    )


def claim(
    name: str = "data",
    class_: str = "local",
    size: str = "1Gi",
    volume: str = "",
    annotations: dict[str, str] | None = None,
) -> core.PersistentVolumeClaim:
    return core.PersistentVolumeClaim(
        metadata=ObjectMeta(name=name, namespace="ns", uid=f"uid-{name}", annotations=annotations or {}),
        spec=core.PersistentVolumeClaimSpec(
            access_modes=("ReadWriteOnce",),
            resources=core.ResourceRequirements(requests={"storage": size}),
            storage_class_name=class_,
            volume_name=volume,
        ),
    )


def volume(
    name: str = "pv", size: str = "1Gi", class_: str = "local", on: str = "", taken_by: str = ""
) -> core.PersistentVolume:
    term = core.NodeSelectorTerm(match_expressions=(core.Requirement(key="host", operator="In", values=(on,)),))
    affinity = core.VolumeNodeAffinity(required=core.NodeSelector(node_selector_terms=(term,))) if on else None
    reference = core.ObjectReference(namespace="ns", name=taken_by, uid=f"uid-{taken_by}") if taken_by else None
    return core.PersistentVolume(
        metadata=ObjectMeta(name=name, uid=f"uid-{name}"),
        spec=core.PersistentVolumeSpec(
            capacity={"storage": size},
            access_modes=("ReadWriteOnce", "ReadOnlyMany"),
            storage_class_name=class_,
            node_affinity=affinity,
            claim_ref=reference,
        ),
        status=core.PersistentVolumeStatus(phase="Available"),
    )


def stored(*objects: core.Object) -> ClusterObjects:
    known = ClusterObjects()
    for obj in objects:
        known.apply(obj)
    return known


NODE = core.Node(metadata=ObjectMeta(name="n1", labels={"host": "n1", "zone": "a"}))


@dataclass
class Case:
    """Claims on node n1, and the volumes that they get (None: provisioned) or the reason why not."""

    claims: list[core.PersistentVolumeClaim]
    objects: list[core.Object]
    want: dict[str, str | None] | str
    taken: set[str] = field(default_factory=set)


PLANS = {
    "smallest that fits": Case(
        [claim(size="2Gi")],
        [LOCAL, volume("big", "9Gi"), volume("fit", "3Gi"), volume("small", "1Gi")],
        {"data": "fit"},
    ),
    "smallest claim is served first": Case(
        [claim("large", size="5Gi"), claim("little")],
        [LOCAL, volume("pv1", "2Gi"), volume("pv2", "6Gi")],
        {"little": "pv1", "large": "pv2"},
    ),
    "volume on another node": Case([claim()], [LOCAL, volume(on="n2")], volumes.NO_VOLUME),
    "volume on this node": Case([claim()], [LOCAL, volume(on="n1")], {"data": "pv"}),
    "volume of another claim": Case([claim()], [LOCAL, volume(taken_by="other")], volumes.NO_VOLUME),
    "volume reserved for this claim": Case([claim()], [LOCAL, volume(taken_by="data")], {"data": "pv"}),
    "volume that a pod is about to take": Case([claim()], [LOCAL, volume()], volumes.NO_VOLUME, {"pv"}),
    "one volume is not given twice": Case([claim("a"), claim("b")], [LOCAL, volume()], volumes.NO_VOLUME),
    "volume of another class": Case([claim()], [LOCAL, volume(class_="fast")], volumes.NO_VOLUME),
    "nothing there, but it can be provisioned": Case([claim(class_="fast")], [DYNAMIC], {"data": None}),
    "existing volume before a new one": Case([claim(class_="fast")], [DYNAMIC, volume(class_="fast")], {"data": "pv"}),
    "zone in which volumes can be made": Case([claim(class_="zoned")], [zoned("a", "b")], {"data": None}),
    "zone in which they cannot": Case([claim(class_="zoned")], [zoned("c")], volumes.NO_VOLUME),
    "class that does not exist": Case([claim(class_="ghost")], [], volumes.NO_VOLUME),
    "size that is nonsense does not stop anything": Case([claim(size="much")], [LOCAL, volume()], {"data": "pv"}),
}


@pytest.mark.parametrize("case", PLANS.values(), ids=PLANS.keys())
def test_plans(case: Case) -> None:
    try:
        choices = volumes.Choices(taken=dict.fromkeys(case.taken, ("ns", "another")))
        plan = volumes.plan(case.claims, NODE, stored(*case.objects), choices)
    except VolumeProblem as problem:
        assert str(problem) == case.want
        return
    got: dict[str, str | None] = {claim.name: volume.name for volume, claim in plan.static}
    got |= dict.fromkeys(claim.name for claim in plan.provision)
    assert got == case.want


@pytest.mark.parametrize(("selected", "allowed"), [("n1", True), ("n2", False)])
def test_node_that_provisioning_was_asked_for_stands(selected: str, allowed: bool) -> None:
    asked = claim(class_="fast", annotations={volumes.SELECTED_NODE: selected})
    if allowed:
        assert volumes.plan([asked], NODE, stored(DYNAMIC)).provision == (asked,)
    else:
        with pytest.raises(VolumeProblem):
            volumes.plan([asked], NODE, stored(DYNAMIC))


DATA = (core.Volume(name="v", persistent_volume_claim=core.PvcVolume(claim_name="data")),)
SCRATCH = (core.Volume(name="scratch", ephemeral=core.EphemeralVolume()),)


def sorted_claims(pod_volumes: tuple[core.Volume, ...], *objects: core.Object) -> volumes.PodClaims:
    return volumes.claims_of("ns", "p", "uid-p", pod_volumes, stored(*objects))


def test_claims_are_sorted_by_what_is_still_to_be_done() -> None:
    bound = claim(volume="pv", annotations={volumes.BIND_COMPLETED: "yes"})
    assert sorted_claims(DATA, bound).bound == (bound,)
    assert sorted_claims(DATA, LOCAL, claim()).delayed == (claim(),)
    assert sorted_claims(DATA, IMMEDIATE, claim(class_="now")).immediate == (claim(class_="now"),)
    half = claim(volume="pv")
    assert sorted_claims(DATA, LOCAL, half).immediate == (half,)


LOST = core.PersistentVolumeClaim(
    metadata=ObjectMeta(name="data", namespace="ns"),
    spec=core.PersistentVolumeClaimSpec(volume_name="gone"),
    status=core.PersistentVolumeClaimStatus(phase="Lost"),
)
PROBLEMS = {
    "missing": (DATA, [], 'persistentvolumeclaim "data" not found'),
    "ephemeral and missing": (
        SCRATCH,
        [],
        'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-scratch"',
    ),
    "lost": (DATA, [LOST], 'persistentvolumeclaim "data" bound to non-existent persistentvolume "gone"'),
    "ephemeral of somebody else": (SCRATCH, [claim("p-scratch")], "was not created for this pod"),
}


@pytest.mark.parametrize(("pod_volumes", "objects", "want"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_claims_that_cannot_be_used(
    pod_volumes: tuple[core.Volume, ...], objects: list[core.Object], want: str
) -> None:
    with pytest.raises(VolumeProblem, match=want):
        sorted_claims(pod_volumes, *objects)


def test_bound_claim_ties_the_pod_to_where_its_volume_is() -> None:
    bound = claim(volume="pv")
    volumes.check_bound([bound], NODE, stored(volume(on="n1")))
    with pytest.raises(VolumeProblem, match="node affinity"):
        volumes.check_bound([bound], NODE, stored(volume(on="n2")))
    with pytest.raises(VolumeProblem, match="non-existent"):
        volumes.check_bound([bound], NODE, stored())


# -- a scheduler ---------------------------------------------------------------------------------------------------


def put_claim(stage: Stage, class_: str) -> None:
    stage.server.put(kinds.PERSISTENT_VOLUME_CLAIMS, dict(core.to_builtins(claim(class_=class_))))


def put_pod(stage: Stage) -> None:
    """A gang of one whose pod uses the claim."""
    put_pods(stage, 1)


def put_pods(stage: Stage, size: int) -> None:
    """A gang whose pods all use the claim."""
    stage.put(node("n1").offer(cpu=4, memory="8Gi").label(host="n1"))
    stage.put(*gang("job", size))
    for index in range(size):
        pod = stage.pod(f"job-{index}")
        spec = {**pod["spec"], "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
        stage.server.remove(kinds.PODS, f"job-{index}", "ns")
        stage.server.put(kinds.PODS, {**pod, "spec": spec})


def the_claim(stage: Stage) -> JsonObject:
    return stage.server.get(kinds.PERSISTENT_VOLUME_CLAIMS, "data", "ns")


def complete(stage: Stage) -> None:
    """What the volume controller does in the end."""
    present = the_claim(stage)
    annotations = {**(present["metadata"].get("annotations") or {}), volumes.BIND_COMPLETED: "yes"}
    bound = {**present, "metadata": {**present["metadata"], "annotations": annotations}}
    bound["spec"] = {**present["spec"], "volumeName": "pv"}
    stage.server.put(kinds.PERSISTENT_VOLUME_CLAIMS, bound)


async def test_pod_waits_for_its_volume_to_be_provisioned_on_its_node(stage: Stage) -> None:
    stage.server.put(kinds.STORAGE_CLASSES, dict(core.to_builtins(DYNAMIC)))
    put_claim(stage, "fast")
    put_pod(stage)
    await stage.start()
    await stage.until(
        lambda: (the_claim(stage)["metadata"].get("annotations") or {}).get(volumes.SELECTED_NODE) == "n1",
        "node selected",
    )
    stage.put(*gang("other", 1, born=3000))
    await stage.until(lambda: stage.bound("other") == 1, "pods without volumes are not held up")
    assert stage.bound("job") == 0
    complete(stage)
    await stage.until(lambda: stage.bound("job") == 1)


async def test_existing_volume_is_reserved_for_the_claim(stage: Stage) -> None:
    stage.server.put(kinds.STORAGE_CLASSES, dict(core.to_builtins(LOCAL)))
    stage.server.put(kinds.PERSISTENT_VOLUMES, dict(core.to_builtins(volume(on="n1"))))
    put_claim(stage, "local")
    put_pod(stage)
    await stage.start()
    await stage.until(lambda: stage.server.get(kinds.PERSISTENT_VOLUMES, "pv")["spec"].get("claimRef"), "reserved")
    reserved = stage.server.get(kinds.PERSISTENT_VOLUMES, "pv")
    assert reserved["spec"]["claimRef"]["uid"] == the_claim(stage)["metadata"]["uid"]
    assert reserved["metadata"]["annotations"][volumes.BOUND_BY_CONTROLLER] == "yes"
    complete(stage)
    await stage.until(lambda: stage.bound("job") == 1)


async def test_pod_whose_claim_cannot_be_served_is_told_why_and_frees_its_place(stage: Stage) -> None:
    stage.server.put(kinds.STORAGE_CLASSES, dict(core.to_builtins(LOCAL)))
    put_claim(stage, "local")
    put_pod(stage)
    await stage.start()
    await stage.until(lambda: (stage.condition("job-0") or {}).get("message"), "condition")
    condition = stage.condition("job-0")
    assert condition is not None
    assert volumes.NO_VOLUME in condition["message"]
    assert stage.bound("job") == 0


async def test_pods_that_share_a_claim_wait_for_it_together(stage: Stage) -> None:
    stage.server.put(kinds.STORAGE_CLASSES, dict(core.to_builtins(LOCAL)))
    stage.server.put(kinds.PERSISTENT_VOLUMES, dict(core.to_builtins(volume(on="n1"))))
    put_claim(stage, "local")
    put_pods(stage, 3)
    await stage.start()
    await stage.until(lambda: stage.server.get(kinds.PERSISTENT_VOLUMES, "pv")["spec"].get("claimRef"), "reserved")
    complete(stage)
    await stage.until(lambda: stage.bound("job") == 3)
    assert len(stage.server.called("patch", kinds.PERSISTENT_VOLUMES, "pv")) == 1
    assert not stage.events("FailedScheduling")


@dataclass
class Waiting:
    """A bind that waits for the claim of a pod, by a clock that the test moves."""

    stage: Stage
    mirror: Mirror
    clock: FakeClock
    binding: asyncio.Task[None]

    @classmethod
    async def begun(cls, stage: Stage, *objects: core.Object) -> Waiting:
        """The pod of a one-pod gang on n1, and everything the API server and the mirror know of volumes."""
        user = builders.pod("p").group("job").on("n1", "Pending").build()
        spec = msgspec.structs.replace(user.spec, volumes=DATA)
        user = msgspec.structs.replace(user, spec=spec)
        mirror, clock = world(node("n1").label(host="n1").build(), user, objects), FakeClock()
        for obj in objects:
            stage.server.put(KINDS[type(obj)], dict(core.to_builtins(obj)))
        binder = VolumeBinder(stage.client, mirror, clock=clock, timeout=lambda: 30.0)
        bind = Bind(TaskRef("ns", "p", user.uid, "ns/job"), "n1")
        waiting = cls(stage, mirror, clock, asyncio.create_task(binder.pre_bind(bind)))
        await stage.until(lambda: clock.sleepers, "waiting")
        return waiting

    async def sees(self, *objects: core.Object) -> None:
        """The watch shows these, and a second goes by."""
        for obj in objects:
            self.mirror.apply_object(obj)
        await self.clock.advance(volume_binding.POLL_SECONDS)

    async def failure(self) -> str:
        """How it ended."""
        await self.stage.until(self.binding.done, "the end")
        error = self.binding.exception()
        assert isinstance(error, PreBindError)
        return str(error)


KINDS: dict[type[core.Object], kinds.Kind] = {
    core.StorageClass: kinds.STORAGE_CLASSES,
    core.PersistentVolume: kinds.PERSISTENT_VOLUMES,
    core.PersistentVolumeClaim: kinds.PERSISTENT_VOLUME_CLAIMS,
}


async def test_a_volume_that_loses_its_claim_again_fails_the_bind(stage: Stage) -> None:
    waiting = await Waiting.begun(stage, LOCAL, claim(), volume(on="n1"))
    await waiting.sees(volume(on="n1"))
    await waiting.sees(volume(on="n1", taken_by="data"))
    assert not waiting.binding.done()
    await waiting.sees(volume(on="n1"))
    assert await waiting.failure() == 'binding volumes: ClaimRef got reset for pv "pv"'


@pytest.mark.parametrize("afterwards", ["", "n2"])
async def test_a_node_that_is_not_selected_any_more_fails_the_bind(stage: Stage, afterwards: str) -> None:
    waiting = await Waiting.begun(stage, DYNAMIC, claim(class_="fast"))
    await waiting.sees(claim(class_="fast", annotations={volumes.SELECTED_NODE: "n1"}))
    assert not waiting.binding.done()
    await waiting.sees(claim(class_="fast", annotations={volumes.SELECTED_NODE: afterwards} if afterwards else {}))
    assert await waiting.failure() == 'binding volumes: provisioning failed for PVC "data"'


async def test_a_claim_that_gets_a_volume_elsewhere_fails_the_bind(stage: Stage) -> None:
    waiting = await Waiting.begun(stage, DYNAMIC, claim(class_="fast"))
    await waiting.sees(volume(on="n2"), claim(class_="fast", volume="pv", annotations={volumes.BIND_COMPLETED: "yes"}))
    assert await waiting.failure() == 'binding volumes: pv "pv" node affinity doesn\'t match node "n1"'


async def test_a_claim_that_is_never_bound_is_not_waited_for_without_end(stage: Stage) -> None:
    waiting = await Waiting.begun(stage, DYNAMIC, claim(class_="fast"))
    for _ in range(31):
        await waiting.sees()
    assert await waiting.failure() == "binding volumes: timed out after 30 s waiting for claims data"
