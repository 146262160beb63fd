"""Clusters in which a job waits, each for one reason: nodes of 4 cpu and 8Gi, a gang of four pods of 2 cpu."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stromboli.api import core
from stromboli.cli.rehearsing import members
from stromboli.cli.rehearsing.facts import Facts
from stromboli.cli.rehearsing.snapshots import Snapshot
from stromboli.kube.json import JsonObject
from stromboli.scheduler.core.policy import DEFAULT_POLICY, PluginOption, Policy, Switches
from stromboli.testing import builders
from stromboli.testing.builders import hyper_node, node, pod, pod_group, queue

NOW = core.timestamp("2026-01-02T00:00:00Z")
CAPACITY = Policy(
    actions=("enqueue", "allocate", "backfill"),
    tiers=(
        (PluginOption("priority"), PluginOption("gang")),
        (PluginOption("predicates"), PluginOption("capacity"), PluginOption("nodeorder")),
    ),
)
HIERARCHY = Policy(
    CAPACITY.actions,
    (
        CAPACITY.tiers[0],
        (PluginOption("predicates"), PluginOption("capacity", Switches(hierarchy=True)), PluginOption("nodeorder")),
    ),
)
TOPOLOGICAL = Policy(
    actions=("enqueue", "allocate", "backfill"),
    tiers=((PluginOption("gang"),), (PluginOption("predicates"), PluginOption("network-topology-aware"))),
)


def vcjob(
    name: str = "train",
    *,
    queue: str = "default",
    replicas: int = 4,
    minimum: int | None = None,
    requests: Mapping[str, str] | None = None,
    phase: str = "Pending",
    pod_spec: JsonObject | None = None,
    **spec: object,
) -> JsonObject:
    """A vcjob with one role, ``worker``."""
    container = {"name": "c", "image": "busybox", "resources": {"requests": dict(requests or {"cpu": "2"})}}
    template = {"spec": {"containers": [container], **(pod_spec or {})}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}", "creationTimestamp": builders.BIRTH},
        "spec": {
            "schedulerName": "volcano",
            "queue": queue,
            "minAvailable": replicas if minimum is None else minimum,
            "tasks": [{"name": "worker", "replicas": replicas, "template": template}],
            **spec,
        },
        "status": {"state": {"phase": phase}},
    }


def nodes(count: int = 2) -> list[core.Object]:
    """Nodes of 4 cpu and 8Gi."""
    return [node(f"n{number}").offer(cpu=4, memory="8Gi", pods=110).build() for number in range(count)]


def filler(count: int, on: str = "n0", queue: str = "default") -> list[core.Object]:
    """Running pods of 2 cpu in a gang of their own."""
    group = pod_group(f"old-{on}").queue(queue).members(1).reserve(cpu=2 * count).phase("Running").build()
    return [group, *(pod(f"old-{on}-{at}").group(f"old-{on}").request(cpu=2).on(on).build() for at in range(count))]


def filled(queue: str) -> list[core.Object]:
    """Work that has all of two nodes."""
    return [*filler(2, "n0", queue), *filler(2, "n1", queue)]


@dataclass(frozen=True)
class Situation:
    """A waiting job and its cluster, with what is to be said about it."""

    job: JsonObject
    objects: Sequence[core.Object]
    want_reason: str
    want_sentence: str
    policy: Policy = DEFAULT_POLICY
    group_phase: str | None = "Pending"
    """None: the PodGroup has not been made."""
    pods: bool = False
    """Whether the job's pods exist already."""
    events: Sequence[JsonObject] = ()
    hopeless: bool = False
    """Whether the job would not start in the empty cluster either."""

    def facts(self) -> Facts:
        """What ``explain`` is given."""
        objects = list(self.objects)
        if self.group_phase is not None:
            group = members.pod_group(self.job, [], NOW)
            status = {"phase": self.group_phase}
            objects.append(core.from_builtins(core.PodGroup, {**core.to_builtins(group), "status": status}))
        if self.pods:
            objects.extend(members.pods(self.job, []))
        return Facts(self.job, Snapshot(NOW, tuple(objects)), self.policy, self.events)


ROOT = queue("root").build()
DEFAULT = queue("default").build()

SITUATIONS: dict[str, Situation] = {
    "the queue may not hold so much": Situation(
        vcjob(queue="small"),
        [*nodes(), ROOT, queue("small").cap(cpu=4).build()],
        "QueueQuotaInsufficient",
        "ns/train waits: the group needs cpu 8; queue small may hold cpu 4, of which cpu 0 is taken: short by cpu 4.",
        policy=CAPACITY,
        hopeless=True,
    ),
    "the queue above may not hold so much": Situation(
        vcjob(queue="leaf"),
        [*nodes(4), ROOT, queue("dept").cap(cpu=6).build(), queue("leaf").parent("dept").build()],
        "QueueQuotaInsufficient",
        "ns/train waits: the group needs cpu 8; queue dept may hold cpu 6, of which cpu 0 is taken: short by cpu 2.",
        policy=HIERARCHY,
        hopeless=True,
    ),
    "the cluster is full": Situation(
        vcjob(),
        [*nodes(), DEFAULT, *filler(2, "n0"), *filler(2, "n1")],
        "ClusterOvercommitted",
        "ns/train waits: the group needs cpu 8; the cluster admits cpu 9600m (1.2 times its "
        "size), of which cpu 8 is taken: short by cpu 6400m.",
    ),
    "nodes are tainted": Situation(
        vcjob(),
        [*(node(f"n{at}").offer(cpu=4, memory="8Gi", pods=110).taint("team", "a").build() for at in range(3)), DEFAULT],
        "NodesRefuse",
        "ns/train waits: no node takes a pod of role worker: 3 node(s) had untolerated taint(s).",
        group_phase="Inqueue",
        pods=True,
        hopeless=True,
    ),
    "no HyperNode is large enough": Situation(
        vcjob(networkTopology={"mode": "hard", "highestTierAllowed": 1}),
        [*nodes(4), *(hyper_node(f"s{at}", 1, (f"n{at}",)) for at in range(4)), DEFAULT],
        "TopologyTooSmall",
        "ns/train waits: no HyperNode that it may use has room for the gang: tier 1: s0 has room "
        "for 2 of the 4 pods needed.",
        policy=TOPOLOGICAL,
        group_phase="Inqueue",
        pods=True,
    ),
    "the queue does not exist": Situation(
        vcjob(queue="ghost"), [*nodes(), DEFAULT], "QueueMissing", "ns/train waits: its queue ghost does not exist."
    ),
    "the queue is closed": Situation(
        vcjob(queue="shut"),
        [*nodes(), queue("shut").state("Closed").build()],
        "QueueNotOpen",
        "ns/train waits: queue shut is Closed: it takes no work until it is Open.",
    ),
    "there is room for a part of the gang": Situation(
        vcjob(),
        [*nodes(), DEFAULT, *filler(1, "n0")],
        "GangIncomplete",
        "ns/train waits: there is room for 3 of the 4 pods that it lacks (worker cpu 2).",
        group_phase="Inqueue",
        pods=True,
    ),
    "a pod is larger than any node": Situation(
        vcjob(requests={"cpu": "5"}, replicas=1),
        [*nodes(), DEFAULT],
        "NodesRefuse",
        "ns/train waits: no node takes a pod of role worker: 2 Insufficient cpu; n0 comes nearest and lacks cpu 1.",
        group_phase="Inqueue",
        pods=True,
        hopeless=True,
    ),
    "no node has the label": Situation(
        vcjob(pod_spec={"nodeSelector": {"disk": "fast"}}),
        [*nodes(), DEFAULT],
        "NodesRefuse",
        "ns/train waits: no node takes a pod of role worker: 2 node(s) didn't match Pod's node affinity/selector.",
        group_phase="Inqueue",
        pods=True,
        hopeless=True,
    ),
    "a full node takes it later": Situation(
        vcjob(replicas=1, requests={"cpu": "3"}),
        [*nodes(1), DEFAULT, *filler(1, "n0")],
        "NodesRefuse",
        "ns/train waits: no node takes a pod of role worker: 1 Insufficient cpu; n0 comes nearest and lacks cpu 1.",
        group_phase="Inqueue",
        pods=True,
    ),
    "the cluster is full, and the queue may not hold so much": Situation(
        vcjob(queue="small"),
        [*nodes(), ROOT, queue("small").cap(cpu=4).build(), queue("q").build(), *filled("q")],
        "QueueQuotaInsufficient",
        "ns/train waits: even in the empty cluster, the group needs cpu 8; queue small may hold cpu 4: short by cpu 4.",
        hopeless=True,
    ),
    "the cluster is full, and a pod is larger than any node": Situation(
        vcjob(requests={"cpu": "5"}, replicas=1),
        [*nodes(), DEFAULT, *filled("default")],
        "NodesRefuse",
        "ns/train waits: even in the empty cluster, no node takes a pod of role worker: 2 Insufficient cpu; "
        "n0 comes nearest and lacks cpu 1.",
        hopeless=True,
    ),
    "the PodGroup has not been made": Situation(
        vcjob(),
        [*nodes(), DEFAULT],
        "PodGroupMissing",
        "ns/train waits: its PodGroup has not been made yet.",
        group_phase=None,
    ),
    "the pods have not been made": Situation(
        vcjob(),
        [*nodes(), DEFAULT],
        "PodsMissing",
        "ns/train waits: it needs 4 pods at once, of which 0 exist.",
        group_phase="Inqueue",
    ),
    "the pods are gated": Situation(
        vcjob(pod_spec={"schedulingGates": [{"name": "example.com/wait"}]}),
        [*nodes(), DEFAULT],
        "PodsGated",
        "ns/train waits: 4 of its 4 pods have scheduling gates.",
        group_phase="Inqueue",
        pods=True,
    ),
    "binds are refused": Situation(
        vcjob(),
        [*nodes(), DEFAULT],
        "BindingRefused",
        "ns/train waits: failed to bind to node n0: denied by policy.example.com.",
        group_phase="Inqueue",
        pods=True,
        events=[{"message": "failed to bind to node n0: denied by policy.example.com"}],
    ),
    "the queue holds what it deserves": Situation(
        vcjob(replicas=2),
        [
            *nodes(3),
            queue("default").build(),
            queue("other").build(),
            *filler(2, "n0"),
            *filler(1, "n1", queue="other"),
            pod_group("more").queue("other").members(4).reserve(cpu=8).phase("Inqueue").build(),
            *(pod(f"more-{at}").group("more").request(cpu=2).build() for at in range(4)),
        ],
        "QueueExhausted",
        "ns/train waits: queue default deserves cpu 6, of which cpu 6 is taken: short by cpu 2 for a pod that needs "
        "cpu 2.",
        group_phase="Inqueue",
        pods=True,
    ),
    "nothing is in its way": Situation(
        vcjob(),
        [*nodes(), DEFAULT],
        "AboutToStart",
        "ns/train waits: there is room for it; its pods are being placed.",
        group_phase="Inqueue",
        pods=True,
    ),
}
