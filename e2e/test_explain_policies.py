"""Why a job waits under a policy with a queue hierarchy, evictions and topology: rungs that the default one lacks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio

from e2e.cluster import Cluster, Json, queue, vcjob
from e2e.shell import Shell
from e2e.situations import FOREVER, Around, Situation, check, job, queue_name, queues
from stromboli.api.kinds import HYPER_NODES, JOBS, PRIORITY_CLASSES
from stromboli.cli.stack import SCHEDULER, Stack

POLICY = """\
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
  - name: capacity
    enableHierarchy: true
- plugins:
  - name: predicates
  - name: nodeorder
  - name: network-topology-aware
"""
pytestmark = pytest.mark.usefixtures("policy")


@pytest.fixture(scope="module")
def policy_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("policy") / "policy.yaml"
    file.write_text(POLICY)
    return file


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def policy(stack: Stack, policy_file: Path) -> AsyncIterator[None]:
    """The scheduler runs under the policy; afterwards it runs as before."""
    if not stack.options.with_processes:
        pytest.skip("the scheduler is somebody else's")
    before = stack.options
    arguments = {name: list(words) for name, words in before.process_arguments.items()}
    if SCHEDULER in arguments:
        arguments[SCHEDULER].append(f"--scheduler-conf={policy_file}")
    await _restart(stack, replace(before, scheduler_conf=policy_file, process_arguments=arguments))
    yield
    await _restart(stack, before)


async def _restart(stack: Stack, options: object) -> None:
    await stack.stop(SCHEDULER)
    stack.options = options  # type: ignore[assignment]
    await stack.start(SCHEDULER)


@pytest.fixture
def shell(kubeconfig: Path, cluster: Cluster) -> Shell:
    return Shell(kubeconfig, cluster.namespace)


def family(parent: Json, child: Json) -> Around:
    """A queue below another one."""

    def around(cluster: Cluster) -> AbstractAsyncContextManager[None]:
        top = queue_name(cluster, "top")
        return queues(cluster, queue(top, **parent), queue(queue_name(cluster), parent=top, **child))

    return around


@asynccontextmanager
async def hyper_nodes(cluster: Cluster) -> AsyncIterator[None]:
    """Two switches, of two and three nodes, under one spine."""
    switches = {f"{cluster.namespace}-s{at}": numbers for at, numbers in enumerate(((0, 1), (2, 3, 4)))}
    spine = f"{cluster.namespace}-spine"
    made = [
        _hyper_node(name, 1, "Node", [f"node-{number}" for number in numbers]) for name, numbers in switches.items()
    ]
    for body in (*made, _hyper_node(spine, 2, "HyperNode", list(switches))):
        await cluster.create(HYPER_NODES, body)
    try:
        yield
    finally:
        for name in (spine, *switches):
            await cluster.delete(HYPER_NODES, name)


def _hyper_node(name: str, tier: int, member: str, members: list[str]) -> Json:
    listed = [{"type": member, "selector": {"exactMatch": {"name": one}}} for one in members]
    body = {"apiVersion": HYPER_NODES.api_version, "kind": HYPER_NODES.kind, "metadata": {"name": name}}
    return {**body, "spec": {"tier": tier, "members": listed}}


@asynccontextmanager
async def priorities(cluster: Cluster) -> AsyncIterator[None]:
    """``{ns}-low`` and ``{ns}-high``."""
    names = {f"{cluster.namespace}-low": 10, f"{cluster.namespace}-high": 1000}
    for name, value in names.items():
        body = {"apiVersion": PRIORITY_CLASSES.api_version, "kind": PRIORITY_CLASSES.kind, "metadata": {"name": name}}
        await cluster.create(PRIORITY_CLASSES, {**body, "value": value})
    yield
    for name in names:
        await cluster.delete(PRIORITY_CLASSES, name)


@asynccontextmanager
async def full_of_important_work(cluster: Cluster) -> AsyncIterator[None]:
    """Five pods of high priority that fill the nodes but for a cpu each."""
    async with priorities(cluster):
        hog = vcjob("hog", replicas=5, cpu="7", command=FOREVER, priorityClassName=f"{cluster.namespace}-high")
        await cluster.create(JOBS, hog)
        await cluster.phase_is("hog", "Running")
        yield
        await cluster.delete(JOBS, "hog")
        await cluster.gone(JOBS, "hog")


@asynccontextmanager
async def full_of_another_queue(cluster: Cluster, *, reclaimable: bool, deserved: str) -> AsyncIterator[None]:
    """Another queue's pods fill the nodes but for a cpu each; the job's queue deserves 8."""
    other = queue(queue_name(cluster, "other"), reclaimable=reclaimable, deserved={"cpu": deserved})
    async with queues(cluster, queue(queue_name(cluster), deserved={"cpu": "4"}), other):
        hog = vcjob("hog", replicas=5, min_available=1, cpu="7", command=FOREVER, queue=other["metadata"]["name"])
        await cluster.create(JOBS, hog)
        await cluster.phase_is("hog", "Running")
        yield
        await cluster.delete(JOBS, "hog")
        await cluster.gone(JOBS, "hog")


NO_ROOM = (
    "waits: no node takes a pod of role worker: 5 Insufficient cpu; node-0 comes nearest and lacks cpu 3.",
    "5 Insufficient cpu",
)
SITUATIONS: dict[str, Situation] = {
    "the parent queue may not hold so much": Situation(
        job(queue="{q}", cpu="2"),
        "QueueQuotaInsufficient",
        "waits: the group needs cpu 4; queue {top} may hold cpu 3, of which cpu 0 is taken: short by cpu 1.",
        "queue {top} may hold cpu 3, of which cpu 0 is taken: short by cpu 1",
        around=family({"capability": {"cpu": "3"}}, {}),
        want_lines=[
            "{q}: Open, weight 1, share 1.00",
            "cpu: 0 in use, 4 wanted, deserved 0, guaranteed -, at most 3, 3 left",
            "cpu: 0 in use, 4 wanted, deserved 0, guaranteed -, at most 40, 40 left",
        ],
    ),
    "no switch is large enough": Situation(
        job(replicas=4, cpu="8", networkTopology={"mode": "hard", "highestTierAllowed": 1}),
        "TopologyTooSmall",
        "waits: no HyperNode that it may use has room for the gang: "
        "tier 1: {ns}-s1 has room for 3 of the 4 pods needed.",
        "",
        around=hyper_nodes,
    ),
    "nobody of lower priority runs": Situation(
        job(replicas=1, cpu="4", priorityClassName="{ns}-low"),
        "NodesRefuse",
        *NO_ROOM,
        want_event="waits-worker-0 asks for 4 cpu, and 1 is left on node-0, which comes closest",
        around=full_of_important_work,
        want_lines=["preempt: none of the 5 running pods of the queue may go: 5 are not of lower priority"],
    ),
    "what could be reclaimed is of a queue that gives nothing back": Situation(
        job(queue="{q}", replicas=1, cpu="4"),
        "NodesRefuse",
        *NO_ROOM,
        want_event="waits-worker-0 asks for 4 cpu, and 1 is left on node-0, which comes closest",
        around=partial(full_of_another_queue, reclaimable=False, deserved="8"),
        want_lines=[
            "reclaim: none of the 5 running pods of other queues may go: 5 are of a queue that is not reclaimable"
        ],
    ),
    "the other queue has no more than it deserves": Situation(
        job(queue="{q}", replicas=1, cpu="4"),
        "NodesRefuse",
        *NO_ROOM,
        want_event="waits-worker-0 asks for 4 cpu, and 1 is left on node-0, which comes closest",
        around=partial(full_of_another_queue, reclaimable=True, deserved="36"),
        want_lines=[
            "reclaim: 5 running pods of other queues could go, the plugins let 0; that makes room for a pod on 0 nodes",
            "capacity keeps 5",
        ],
    ),
}


@pytest.mark.parametrize("name", SITUATIONS)
async def test_the_cause_is_told(shell: Shell, cluster: Cluster, name: str, policy_file: Path) -> None:
    await check(SITUATIONS[name], cluster, shell, "--policy", str(policy_file))
