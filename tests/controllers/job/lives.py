"""Lives of jobs, each from submission to an end that can be told, played on a stage with whatever goes wrong there.

A life answers a picture of its end without names and times that differ from run to run. Two runs that end with equal
pictures have created the same number of pods, so none was run twice, and have left the same behind.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

from stromboli.api import kinds
from stromboli.controllers.garbagecollector.controller import GarbageCollector
from stromboli.controllers.job.controller import JobController
from stromboli.kube import json
from stromboli.kube.json import JsonObject
from stromboli.testing.faults import Call, Disconnect, Failure, Hold
from stromboli.testing.memory import resource_of
from tests.controllers.autopilot import always_succeed, autopilot
from tests.controllers.building import JobBuilder, job
from tests.controllers.stage import Stage

WRITES = ("create", "update", "patch", "delete")
KEYS = ["--ssh-private-key=private", "--ssh-public-key=public"]  # drawing some takes longer than all the rest
LEFTOVERS = (kinds.POD_GROUPS, kinds.CONFIG_MAPS, kinds.SECRETS, kinds.SERVICES, kinds.NETWORK_POLICIES)
Life = Callable[[Stage], Awaitable[JsonObject]]
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


async def begin(scene: Stage) -> None:
    """Start the controllers that a life needs, as a new process would."""
    await scene.run(
        lambda informers: JobController(scene.client, informers, scene.events, scene.numbers, counters_wait=0.05),
        lambda informers: GarbageCollector(scene.client, informers),
    )


# -- telling the end ---------------------------------------------------------------------------------------------------


def picture(scene: Stage) -> JsonObject:
    """A job that is still there, and what there is of it."""
    status = scene.status()
    return {
        "phase": scene.phase(),
        "retries": status.get("retryCount", 0),
        "version": status.get("version", 0),
        "counters": {key: status.get(key, 0) for key in ("pending", "running", "succeeded", "failed", "terminating")},
        "pods": scene.pod_phases(),
        "pods ever made": pods_made(scene),
        "left": [name for kind in LEFTOVERS for name in scene.names_of(kind)],
        "controlled": {unnamed(key): unnamed(name) for key, name in status.get("controlledResources", {}).items()},
        "claims": len(scene.names_of(kinds.PERSISTENT_VOLUME_CLAIMS)),
    }


def pods_made(scene: Stage) -> int:
    """How many pods have ever been created."""
    return sum(change.before is None for change in scene.server.memory.since(resource_of(kinds.PODS), 0))


def unnamed(text: str) -> str:
    """The text without what is drawn for each job."""
    return re.sub(r"(?<=-pvc-)[0-9a-z]{12}", "drawn", text)


# -- lives that fail once and are restarted ----------------------------------------------------------------------------


def restarting_a_task() -> JobBuilder:
    """The failure of worker 0 restarts its task, and the master runs on."""
    return job().task("master", 1).task("worker", 2).policy("PodFailed", "RestartTask", task="worker")


def restarting_a_pod() -> JobBuilder:
    """The failure of worker 0 restarts nothing else; that the old pod goes is no eviction."""
    builder = job().task("worker", 3).policy("PodFailed", "RestartPod").policy("PodEvicted", "TerminateJob")
    return builder.spec(plugins={"svc": []})


def restarting_a_partition() -> JobBuilder:
    """Two partitions, of which the failing one is restarted; a key pair and a claim."""
    policy = {"totalPartitions": 2, "partitionSize": 1}
    return (
        job()
        .task("worker", 2, partitionPolicy=policy)
        .policy("PodFailed", "RestartPartition")
        .spec(plugins={"svc": [], "ssh": KEYS}, volumes=[{"mountPath": "/data", "volumeClaim": CLAIM}])
    )


def furnished() -> JobBuilder:
    """Everything that a job can have: all plugins, claims of both kinds, a task that waits for another."""
    plugins = {"env": [], "svc": [], "ssh": KEYS, "tensorflow": [], "pytorch": [], "mpi": [], "hcclrank": []}
    volumes = [{"mountPath": "/data", "volumeClaim": CLAIM}, {"mountPath": "/in", "volumeClaimName": "given"}]
    return (
        job()
        .task("master", 1, minAvailable=1)
        .task("worker", 2, minAvailable=2, dependsOn={"name": ["master"]})
        .policy("PodFailed", "RestartJob")
        .spec(plugins={**plugins, "ray": ["--head=master", "--headContainer=main"]}, volumes=volumes)
    )


class FirstRunFails:
    """Fails worker 0 on its first run, lets everything else succeed."""

    def __init__(self, scene: Stage) -> None:
        self._scene = scene
        self._failed = ""

    def __call__(self, name: str, version: int) -> str:
        uid = self._scene.uids().get(name, "")
        if name == "job1-worker-0" and self._failed in ("", uid):
            self._failed = uid
            return "Failed"
        return "Succeeded" if self._failed else "Running"


def failing_once(build: Callable[[], JobBuilder]) -> Life:
    """The life of a job whose worker 0 fails on its first run."""

    async def live(scene: Stage) -> JsonObject:
        given = {"metadata": {"name": "given", "namespace": "default"}, "spec": CLAIM}
        scene.server.put(kinds.PERSISTENT_VOLUME_CLAIMS, given)
        async with autopilot(scene, FirstRunFails(scene)):
            scene.submit(build())
            await completed(scene)
        return picture(scene)

    return live


async def completed(scene: Stage) -> None:
    """Wait for the end, until nothing more is to be done."""
    await scene.until(lambda: scene.phase() == "Completed")
    await scene.until(lambda: not any(scene.names_of(kind) for kind in LEFTOVERS), "leftovers to go")
    await scene.until(lambda: scene.status().get("succeeded") == len(scene.pods()), "all counted")
    await scene.until(lambda: not markers(scene), "markers to go")


def markers(scene: Stage) -> list[str]:
    """Plugins that the job's status says have objects."""
    return [key for key in scene.status().get("controlledResources", {}) if key.startswith("plugin-")]


# -- lives that their owner interferes with ----------------------------------------------------------------------------


async def scaled(scene: Stage) -> JsonObject:
    """From two workers to four and down to one; a pod that goes for that is none that was evicted."""
    builder = job().task("worker", 2, minAvailable=1).policy("PodEvicted", "TerminateJob").spec(plugins={"svc": []})
    async with autopilot(scene, lambda _name, _version: "Running"):
        scene.submit(builder)
        await scene.until(lambda: scene.status().get("running") == 2, "two that run")
        await scaled_to(scene, 4)
        await scaled_to(scene, 1)
        await scene.until(lambda: not scene.status().get("terminating"), "nothing on its way out")
    return {**picture(scene), "members": scene.group()["spec"]["minTaskMember"]}


async def scaled_to(scene: Stage, replicas: int) -> None:
    """As the owner: another number of workers; return when all is as it should be."""
    present = scene.job()
    present["spec"]["tasks"][0]["replicas"] = replicas
    scene.server.put(kinds.JOBS, present)
    await scene.until(lambda: scene.status().get("running") == replicas, f"{replicas} that run")
    await scene.until(lambda: len(scene.pods()) == replicas, f"{replicas} pods")
    await scene.until(lambda: hosts(scene) == str(replicas), f"{replicas} hosts")


def hosts(scene: Stage) -> str:
    """How many workers the job's ConfigMap knows."""
    return str(scene.server.get(kinds.CONFIG_MAPS, "job1-svc", "default")["data"]["VC_WORKER_NUM"])


async def commanded(scene: Stage) -> JsonObject:
    """Suspended, resumed, run again to its end."""
    async with autopilot(scene, lambda _name, version: "Succeeded" if version > 1 else "Running"):
        scene.submit(job().task("worker", 2).spec(plugins={"svc": []}))
        await scene.until(lambda: scene.status().get("running") == 2, "two that run")
        await ordered(scene, "AbortJob", lambda: scene.phase() == "Aborted" and not scene.pods() and not markers(scene))
        await ordered(scene, "ResumeJob", lambda: scene.phase() == "Completed")
        await completed(scene)
    # An abort that has to be tried again counts as another kill; versions only have to grow (spec 02 section 10.3).
    return {**picture(scene), "version": scene.status()["version"] >= 2}


async def ordered(scene: Stage, action: str, done: Callable[[], bool]) -> None:
    """As the owner: give a Command, and give it again if it was lost, which may happen to it (at most once)."""
    before, scene.outstanding = scene.phase(), True
    scene.command(action)
    await scene.until(lambda: done() or (lost(scene) and scene.phase() == before))
    if not done():
        scene.command(action)
    await scene.until(done, f"{action} to be obeyed")
    scene.outstanding = False


def lost(scene: Stage) -> bool:
    """Whether a Command was deleted, and who would have obeyed was not told so or is gone."""
    trouble = scene.trouble
    took = isinstance(trouble, WriteUnanswered | WriteHeld) and trouble.took_a_command
    return took and not scene.server.objects(kinds.COMMANDS)


async def collected(scene: Stage) -> JsonObject:
    """Run to its end and deleted at once, because its time to live is over then."""
    builder = job().task("worker", 2).spec(ttlSecondsAfterFinished=0, plugins={"svc": []})
    async with autopilot(scene, always_succeed):
        scene.submit(builder)
        uid = json.uid_of(scene.job())
        await scene.until(lambda: not scene.names_of(kinds.JOBS), "the job to go")
    kept = [one for kind in (*LEFTOVERS, kinds.PODS) for one in scene.server.objects(kind)]
    strays = [json.key_of(one)[1] for one in kept if uid not in owners(one)]
    return {"pods ever made": pods_made(scene), "left to no owner": strays}


def owners(obj: JsonObject) -> list[str]:
    """UIDs of the owners of an object, with which it goes."""
    return [str(one["uid"]) for one in json.metadata(obj).get("ownerReferences") or ()]


# -- what goes wrong at the n-th write ---------------------------------------------------------------------------------


class WriteRefused(Failure):
    """Refuses one write."""

    def applies(self, call: Call) -> bool:
        return call.verb in WRITES and super().applies(call)


class WriteUnanswered(Disconnect):
    """Cuts the connection of one write."""

    took_a_command = False

    def applies(self, call: Call) -> bool:
        hit = call.verb in WRITES and super().applies(call)
        self.took_a_command |= hit and self.executed and call.kind == kinds.COMMANDS.plural
        return hit


class WriteHeld(Hold):
    """Lets one write wait until the controller that sent it is gone."""

    took_a_command = False
    struck = ""

    def applies(self, call: Call) -> bool:
        hit = call.verb in WRITES and super().applies(call)
        if hit:
            self.struck = call.kind
        return hit


async def replace_controller(scene: Stage, held: WriteHeld) -> None:
    """Once a write is held, kill the controller that waits for it and start another, which knows no Command of old."""
    await scene.until(lambda: held.hits)
    await scene.stop()
    told = held.struck == kinds.COMMANDS.plural or not scene.server.objects(kinds.COMMANDS)
    took = scene.outstanding and told
    held.release()
    await begin(scene)
    held.took_a_command = took


LIVES: dict[str, Life] = {
    "a task that is restarted": failing_once(restarting_a_task),
    "a pod that is restarted": failing_once(restarting_a_pod),
    "a partition that is restarted": failing_once(restarting_a_partition),
    "a job that has everything and is restarted": failing_once(furnished),
    "a job that is scaled up and down": scaled,
    "a job that is suspended and resumed": commanded,
    "a job whose time is over at its end": collected,
}
