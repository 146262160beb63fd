"""Why a job waits, asked as its owner asks: each situation has one reason, one sentence with numbers and a next step,
and PodGroup, pods and job tell the same (pain P64).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from e2e.cluster import Cluster, Json, eventually, queue, vcjob
from e2e.denying import denied
from e2e.shell import Shell
from e2e.situations import (
    FOREVER,
    JOB,
    Situation,
    check,
    job,
    own_queue,
    patched_nodes,
    queue_name,
    queues,
    running,
    told,
)
from stromboli.api.kinds import JOBS, QUEUES, RESOURCE_QUOTAS

pytestmark = pytest.mark.simulated_nodes

SELECTOR = "5 node(s) didn't match Pod's node affinity/selector"
TAINTS = [{"key": "team", "value": "a", "effect": "NoSchedule"}]
GATE = "example.com/wait"
START_DELAY = "simulation.stromboli.dev/start-delay"


@pytest.fixture
def shell(kubeconfig: Path, cluster: Cluster) -> Shell:
    return Shell(kubeconfig, cluster.namespace)


def apart(cluster: Cluster) -> Json:
    """Six pods of which no two may share a node."""
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"volcano.sh/job-name": JOB, "volcano.sh/job-namespace": cluster.namespace}},
    }
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return job({"affinity": affinity}, replicas=6)(cluster)


def two_tasks(cluster: Cluster, **second: object) -> Json:
    """A gang of a worker and a server, which is made of the worker's template."""
    made = job(replicas=1, min_available=2)(cluster)
    (worker,) = made["spec"]["tasks"]
    spec = {**worker["template"]["spec"], **second.pop("pod_spec", {})}  # type: ignore[dict-item]
    server = {**worker, "name": "server", "template": {**worker["template"], "spec": spec}, **second}
    made["spec"]["tasks"].append(server)
    return made


@asynccontextmanager
async def no_pods_allowed(cluster: Cluster) -> AsyncIterator[None]:
    """A ResourceQuota, in force."""
    body = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": {"pods": "0"}}}
    await cluster.create(RESOURCE_QUOTAS, body)
    await eventually(
        lambda: cluster.client.get(RESOURCE_QUOTAS, "few", cluster.namespace),
        lambda seen: seen.get("status", {}).get("used", {}).get("pods") == "0",
    )
    yield
    await cluster.delete(RESOURCE_QUOTAS, "few")


SITUATIONS: dict[str, Situation] = {
    "the queue may not hold so much": Situation(
        job(queue="{q}", cpu="2"),
        "QueueQuotaInsufficient",
        "waits: the group needs cpu 4; queue {q} may hold cpu 2, of which cpu 0 is taken: short by cpu 2.",
        "he group needs cpu 4; queue {q} may hold cpu 2, of which cpu 0 is taken: short by cpu 2",
        around=own_queue(capability={"cpu": "2"}),
        want_lines=["cpu: 0 in use, 4 wanted, deserved 2, guaranteed -, at most 2, 2 left"],
    ),
    "another queue's guarantee keeps the room": Situation(
        job(replicas=5, cpu="4"),
        "QueueQuotaInsufficient",
        "waits: the group needs cpu 20; queue default may hold cpu 16, of which cpu 0 is taken: short by cpu 4; "
        "no capability says so: it is what the cluster has, less what other queues are guaranteed.",
        "queue default may hold cpu 16, of which cpu 0 is taken: short by cpu 4",
        around=lambda cluster: queues(
            cluster, queue(queue_name(cluster), deserved={"cpu": "24"}, guarantee={"resource": {"cpu": "24"}})
        ),
    ),
    "the gang is too big for the cluster": Situation(
        job(replicas=9, cpu="8"),
        "ClusterOvercommitted",
        "waits: the group needs cpu 72; the cluster admits cpu 48 (1.2 times its size), "
        "of which cpu 0 is taken: short by cpu 24.",
        "he group needs cpu 72; the cluster admits cpu 48 (1.2 times its size)",
        want_lines=["room for 5 of 9", "cpu: 0 in use, 72 wanted, deserved -, guaranteed -, at most 40, 40 left"],
    ),
    "the cluster is full": Situation(
        job(replicas=4, cpu="8"),
        "ClusterOvercommitted",
        "waits: the group needs cpu 32; the cluster admits cpu 48 (1.2 times its size), "
        "of which cpu 32 is taken: short by cpu 16.",
        "of which cpu 32 is taken: short by cpu 16",
        around=running(replicas=4, cpu="8"),
        want_lines=["worker (4 waiting, each cpu 8): 1 of 5 nodes takes one now", "refused: 4 Insufficient cpu"],
    ),
    "there is room for a part of the gang": Situation(
        job(replicas=6, cpu="6"),
        "GangIncomplete",
        "waits: there is room for 5 of the 6 pods that it lacks (worker cpu 6).",
        "5 Insufficient cpu",
        want_event="5 of 6 tasks found a node; waits-worker-5 asks for 6 cpu, and 2 is left on node-0",
        want_lines=["needs 6 pods at once, 0 have a place: short by 6 (6 Pending)", "room for 5 of 6"],
    ),
    "a pod asks for more cpu than any node has": Situation(
        job(replicas=1, cpu="9"),
        "NodesRefuse",
        "waits: no node takes a pod of role worker: 5 Insufficient cpu; node-0 comes nearest and lacks cpu 1.",
        "5 Insufficient cpu",
        want_event="waits-worker-0 asks for 9 cpu, and 8 is left on node-0",
        want_lines=["refused: 5 Insufficient cpu", "nearest: node-0 lacks cpu 1", "nearest: node-2 lacks cpu 1"],
    ),
    "a pod asks for more memory than any node has": Situation(
        job(container={"resources": {"requests": {"memory": "40Gi"}}}, replicas=1),
        "NodesRefuse",
        "waits: no node takes a pod of role worker: 5 Insufficient memory; node-0 comes nearest and lacks memory 8Gi.",
        "5 Insufficient memory",
        want_event="waits-worker-0 asks for 40Gi memory, and 32Gi is left on node-0",
    ),
    "nobody has a gpu": Situation(
        job(container={"resources": {key: {"nvidia.com/gpu": "1"} for key in ("requests", "limits")}}, replicas=1),
        "ClusterOvercommitted",
        "waits: the group needs nvidia.com/gpu 1; the cluster admits nvidia.com/gpu 0 (1.2 times its size), "
        "of which nvidia.com/gpu 0 is taken: short by nvidia.com/gpu 1.",
        "he group needs nvidia.com/gpu 1",
        want_lines=["refused: 5 Insufficient nvidia.com/gpu", "nearest: node-0 lacks nvidia.com/gpu 1"],
    ),
    "no node has the label": Situation(
        job({"nodeSelector": {"disk": "fast"}}, replicas=2),
        "NodesRefuse",
        f"waits: no node takes a pod of role worker: {SELECTOR}.",
        SELECTOR,
        want_lines=["worker (2 waiting, each cpu 100m): 0 of 5 nodes take one now", f"refused: {SELECTOR}"],
    ),
    "nodes are tainted": Situation(
        job(replicas=2),
        "NodesRefuse",
        "waits: no node takes a pod of role worker: 5 node(s) had untolerated taint(s).",
        "5 node(s) had untolerated taint(s)",
        around=patched_nodes({"taints": TAINTS}, {"taints": None}),
    ),
    "nodes are cordoned": Situation(
        job(replicas=2),
        "NodesRefuse",
        "waits: no node takes a pod of role worker: 5 node(s) were unschedulable.",
        "5 node(s) were unschedulable",
        around=patched_nodes({"unschedulable": True}, {"unschedulable": None}),
    ),
    "pods must be apart and nodes are too few": Situation(
        apart,
        "GangIncomplete",
        "waits: 5 of the 6 pods that it lacks find a node; then waits-worker-5: "
        "0/5 nodes are unavailable: 5 node(s) didn't match pod anti-affinity rules.",
        "5 node(s) didn't match pod anti-affinity rules",
    ),
    "pods want the same port of too few nodes": Situation(
        job(container={"ports": [{"containerPort": 80, "hostPort": 8123}]}, replicas=6),
        "GangIncomplete",
        "waits: 5 of the 6 pods that it lacks find a node; then waits-worker-5: "
        "0/5 nodes are unavailable: 5 node(s) didn't have free ports for the requested pod ports.",
        "5 node(s) didn't have free ports for the requested pod ports",
    ),
    "a claim is not there": Situation(
        job({"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}, replicas=1),
        "ClaimsNotReady",
        'waits: no node is tried for a pod of role worker: persistentvolumeclaim "data" not found.',
        'persistentvolumeclaim "data" not found',
    ),
    "another task of the gang finds no node": Situation(
        lambda cluster: two_tasks(cluster, pod_spec={"nodeSelector": {"disk": "fast"}}),
        "NodesRefuse",
        f"waits: no node takes a pod of role server: {SELECTOR}.",
        SELECTOR,
        want_lines=["server (1 waiting, each cpu 100m): 0 of 5 nodes take one now", "room for all 1"],
    ),
    "a switch that no plugin looks at does not confine": Situation(
        job(replicas=6, cpu="5", networkTopology={"mode": "hard", "highestTierAllowed": 1}),
        "GangIncomplete",
        "waits: there is room for 5 of the 6 pods that it lacks (worker cpu 5).",
        "5 Insufficient cpu",
        want_event="5 of 6 tasks found a node; waits-worker-5 asks for 5 cpu, and 3 is left on node-0",
        want_lines=["not heeded: plugin network-topology-aware is not in the policy"],
    ),
    "pods have scheduling gates": Situation(
        job({"schedulingGates": [{"name": GATE}]}, replicas=2),
        "PodsGated",
        "waits: 2 of its 2 pods have scheduling gates.",
        "",
    ),
    "a quota refuses pods": Situation(
        job(replicas=1),
        "PodsRefused",
        'waits: it needs 1 pod at once, of which 0 exist: pods "waits-worker-0" is forbidden: '
        "exceeded quota: few, requested: pods=1, used: pods=0, limited: pods=0.",
        "exceeded quota: few, requested: pods=1, used: pods=0, limited: pods=0",
        around=no_pods_allowed,
        want_job_state="PodCreationFailed",
    ),
    "a webhook refuses pods": Situation(
        job(replicas=1),
        "PodsRefused",
        'waits: it needs 1 pod at once, of which 0 exist: admission webhook "{hook}" denied the request: '
        "no pods today.",
        'admission webhook "{hook}" denied the request: no pods today',
        around=lambda cluster: denied(cluster, "pods", "no pods today"),
        want_job_state="PodCreationFailed",
    ),
    "a webhook refuses binds": Situation(
        job({"nodeSelector": {"kubernetes.io/hostname": "node-0"}}, replicas=1),
        "BindingRefused",
        'waits: failed to bind to node node-0: admission webhook "{hook}" denied the request: no binds today (403).',
        "nodes were found, but binds of its pods are refused",
        around=lambda cluster: denied(cluster, "pods/binding", "no binds today"),
        want_lines=["room for all 1"],
    ),
    "a task of the gang waits for another": Situation(
        lambda cluster: two_tasks(cluster, dependsOn={"name": ["worker"]}),
        "TaskDependency",
        "waits: it needs 2 pods at once, of which 1 exists: task server waits for task worker (dependsOn).",
        "",
    ),
    "the job is for another scheduler": Situation(
        job(replicas=1, schedulerName="somebody-else"),
        "OtherScheduler",
        "waits: its pods are for scheduler somebody-else, which is not asked here.",
        "",
    ),
}


@pytest.mark.parametrize("name", SITUATIONS)
async def test_the_cause_is_told(shell: Shell, cluster: Cluster, name: str) -> None:
    await check(SITUATIONS[name], cluster, shell)


def test_every_situation_has_numbers_names_or_both_and_none_is_told_twice() -> None:
    sentences = [situation.want_sentence for situation in SITUATIONS.values()]
    assert len(sentences) >= 18
    assert len(set(sentences)) == len(sentences)


CLOSED = Situation(
    job(), "QueueNotOpen", "waits: queue {q} is Closing: it takes no work until it is Open.", "ueue {q} is Closing"
)
MISSING = Situation(job(), "QueueMissing", "waits: its queue {q} does not exist.", "")


async def test_a_queue_that_is_closed_and_then_deleted_under_its_job(shell: Shell, cluster: Cluster) -> None:
    name = queue_name(cluster)
    async with queues(cluster, queue(name, capability={"cpu": "1"})):
        await cluster.create(JOBS, job(queue=name, cpu="1")(cluster))
        await eventually(lambda: cluster.pod_group(JOB), bool, what="a PodGroup")
        await shell.ok("vcctl", "queue", "operate", "-n", name, "-a", "close")
        await told(CLOSED, cluster, shell)
        await cluster.delete(QUEUES, name)
        await told(MISSING, cluster, shell)
        await cluster.delete(JOBS, JOB)
        await cluster.gone(JOBS, JOB)


async def test_a_suspended_job_waits_to_be_resumed(shell: Shell, cluster: Cluster) -> None:
    await cluster.create(JOBS, vcjob(JOB, command=FOREVER))
    await cluster.phase_is(JOB, "Running")
    await shell.ok("vcctl", "job", "suspend", JOB, "-n", shell.namespace)
    await cluster.phase_is(JOB, "Aborted")
    found = await shell.explain(JOB)
    assert (found["reason"], found["sentence"]) == (
        "Suspended",
        f"{shell.namespace}/{JOB} waits: it is Aborted, and starts again when it is resumed.",
    )
    assert "vcctl job resume" in found["nextStep"]
    await shell.ok("vcctl", "job", "resume", JOB, "-n", shell.namespace)
    await cluster.phase_is(JOB, "Running")
    assert (await shell.explain(JOB))["sentence"] == f"{shell.namespace}/{JOB} runs: 2 of 2 pods have a node."


async def test_what_the_status_of_a_job_says_is_told(shell: Shell, cluster: Cluster) -> None:
    """A claim of the job is not there; a policy aborts; all retries are used up."""
    without = vcjob("without")
    without["spec"]["volumes"] = [{"mountPath": "/data", "volumeClaimName": "nothere"}]
    aborted = vcjob("aborted", replicas=1, command="exit 42", policies=[{"exitCode": 42, "action": "AbortJob"}])
    failed = vcjob("failed", replicas=1, command="exit 1")
    for made in (without, aborted, failed):
        await cluster.create(JOBS, made)
    wanted = {
        "without": ("PodGroupMissing", "PVCError: Failed to create PVC, err: pvc nothere is not found"),
        "aborted": ("Aborted", "AbortJob because of PodFailed of pod aborted-worker-0 with exit code 42"),
        "failed": ("", "waits for nothing; its status says: TooFewSucceeded: 0 pods succeeded, 1 failed."),
    }
    for name, (reason, said) in wanted.items():
        found = await eventually(partial(shell.explain, name), partial(_says, said), what=said)
        assert found["reason"] == reason
        assert "events" not in found["nextStep"]


def _says(said: str, found: Json) -> bool:
    return said in found["sentence"]


@pytest.mark.parametrize("cpu", ["8", "9"])
async def test_a_pod_that_finds_no_room_waits_for_others_or_in_vain(shell: Shell, cluster: Cluster, cpu: str) -> None:
    async with running(replicas=5, cpu="6")(cluster):
        await cluster.create(JOBS, job(replicas=1, cpu=cpu)(cluster))
        advice = "wait for running work to end, " if cpu == "8" else "waiting does not help"
        found = await eventually(
            lambda: shell.explain(JOB), lambda seen: advice in seen["nextStep"], what=f"advice {advice!r}"
        )
        assert found["reason"] in ("NodesRefuse", "ClusterOvercommitted")


async def test_a_gang_that_runs_says_why_the_rest_of_it_does_not(shell: Shell, cluster: Cluster) -> None:
    await cluster.create(JOBS, job(replicas=6, min_available=2, cpu="6")(cluster))
    await cluster.phase_is(JOB, "Running")
    want = (
        f"{shell.namespace}/{JOB} runs: 5 of 6 pods have a node; 1 more waits: no node takes a pod of role worker: "
        "5 Insufficient cpu; node-0 comes nearest and lacks cpu 4."
    )
    await eventually(lambda: shell.explain(JOB), lambda seen: seen["sentence"] == want, what=want)


async def test_a_task_that_waits_for_another_is_named_while_the_job_runs(shell: Shell, cluster: Cluster) -> None:
    made = two_tasks(cluster, dependsOn={"name": ["worker"], "iteration": "all"})
    worker, _ = made["spec"]["tasks"]
    made["spec"]["minAvailable"] = 1
    worker["template"] = {**worker["template"], "metadata": {"annotations": {START_DELAY: "600"}}}
    await cluster.create(JOBS, made)
    want = f"{shell.namespace}/{JOB} runs: 1 of 1 pod has a node; task server waits for task worker (dependsOn)."
    await eventually(lambda: shell.explain(JOB), lambda seen: seen["sentence"] == want, what=want)
