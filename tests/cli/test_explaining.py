"""Each canned situation has one reason, one sentence with numbers, a ladder and a next step (pain P64)."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from stromboli.api import core, kinds
from stromboli.api.reasons import NEXT_STEPS, WaitReason
from stromboli.cli.rehearsing import members
from stromboli.cli.rehearsing.emptying import HOPELESS, HOPELESS_REST, with_waiting, without_waiting
from stromboli.cli.rehearsing.explaining import explain, from_conditions
from stromboli.cli.rehearsing.rungs import Rung
from stromboli.kube.json import JsonObject
from stromboli.scheduler.core.policy import Policy
from stromboli.testing import builders
from stromboli.testing.apiserver import FakeApiServer
from tests.cli.driving import GUESSED, drive
from tests.cli.situations import CAPACITY, DEFAULT, SITUATIONS, Situation, filler, nodes, vcjob


@pytest.mark.parametrize("name", SITUATIONS)
def test_situations_are_explained(name: str) -> None:
    situation = SITUATIONS[name]
    found = explain(situation.facts())
    assert (found.reason, found.sentence) == (situation.want_reason, situation.want_sentence)
    step = NEXT_STEPS[WaitReason(situation.want_reason)]
    if found.reason == WaitReason.NODES_REFUSE:
        step = with_waiting(step)
    assert found.next_step == (without_waiting(step) + HOPELESS if situation.hopeless else step)


def test_every_reason_has_a_next_step() -> None:
    assert set(NEXT_STEPS) == set(WaitReason)


def rung(situation: Situation, title: str) -> tuple[str, ...]:
    """The lines of one rung."""
    return next(rung.lines for rung in explain(situation.facts()).rungs if rung.title == title)


HELD = (
    "nodes were found, but binds of its pods are refused: train-worker-0 on node n0: no. Never (403); "
    "they are tried again at 00:00:08 UTC"
)


@pytest.mark.parametrize("events", [[], [{"message": "failed to bind to node n0: no. Never (403)"}]])
def test_refused_binds_say_when_they_are_tried_again(events: list[JsonObject]) -> None:
    """Events are kept for an hour; the condition stays."""
    situation = replace(SITUATIONS["binds are refused"], events=events)
    facts = situation.facts()
    assert facts.group is not None
    step = NEXT_STEPS[WaitReason.BINDING_REFUSED]
    condition = core.PodGroupCondition(
        type="Fits", status="False", reason=WaitReason.BINDING_REFUSED, message=f"{HELD}; {step}"
    )
    group = msgspec.structs.replace(
        facts.group, status=msgspec.structs.replace(facts.group.status, conditions=(condition,))
    )
    found = explain(replace(facts, snapshot=facts.snapshot.with_objects(group)))
    messages = [event["message"] for event in events]
    assert (found.reason, found.sentence) == ("BindingRefused", f"ns/train waits: {(messages or [HELD])[-1]}.")
    assert found.rungs[-1] == Rung("Binding", (*messages, HELD))


def test_the_queue_rung_climbs_to_the_root() -> None:
    lines = rung(SITUATIONS["the queue above may not hold so much"], "Queue")
    assert [line.split(":")[0].strip() for line in lines if "weight" in line] == ["leaf", "dept", "root"]
    assert "    cpu: 0 in use, 8 wanted, deserved 0, guaranteed -, at most 6, 6 left" in lines


def test_the_nodes_rung_names_the_nearest_misses_first() -> None:
    small = builders.node("small").offer(cpu=1, memory="8Gi", pods=110).build()
    situation = Situation(vcjob(replicas=1), [small, *nodes(1), builders.queue().build(), *filler(2)], "", "")
    nearest = [line for line in rung(situation, "Nodes") if "nearest" in line]
    assert nearest == ["  nearest: small lacks cpu 1", "  nearest: n0 lacks cpu 2"]


EVICTING = Policy(("enqueue", "allocate", "preempt", "reclaim"), CAPACITY.tiers)


def test_the_eviction_rung_counts_who_could_go() -> None:
    high = [builders.priority_class("high", 100)]
    situation = Situation(
        vcjob(replicas=1, priorityClassName="high"),
        [*nodes(1), *high, builders.queue().build(), *filler(2)],
        "",
        "",
        policy=EVICTING,
        group_phase="Inqueue",
        pods=True,
    )
    preempt, keeps, reclaim = rung(situation, "Eviction")
    assert preempt == (
        "preempt: 2 running pods of the queue could go, the plugins let 1; that makes room for a pod on 1 node"
    )
    assert keeps == "  gang keeps 1"
    assert reclaim == "reclaim: queue default has what it deserves and may take nothing from others"


def test_the_numbers_are_those_of_now_even_if_the_scheduler_has_just_written_others() -> None:
    name = next(name for name, one in SITUATIONS.items() if one.want_reason == WaitReason.CLUSTER_OVERCOMMITTED)
    situation = SITUATIONS[name]
    facts = situation.facts()
    assert facts.group is not None
    written = core.PodGroupCondition(
        type="Admitted",
        status="False",
        reason=WaitReason.CLUSTER_OVERCOMMITTED,
        message="The group needs cpu 1000. Wait for running work to end, add nodes, or ask for less.",
        last_transition_time="2026-01-02T00:00:00Z",
    )
    status = msgspec.structs.replace(facts.group.status, conditions=(written,))
    group = msgspec.structs.replace(facts.group, status=status)
    found = explain(replace(facts, snapshot=facts.snapshot.with_objects(group)))
    assert (found.reason, found.sentence) == (situation.want_reason, situation.want_sentence)


def test_where_no_queue_is_to_blame_the_cluster_is() -> None:
    situation = Situation(vcjob(replicas=5), [*nodes(), builders.queue().build()], "", "", policy=CAPACITY)
    found = explain(situation.facts())
    assert found.reason == WaitReason.QUEUE_QUOTA_INSUFFICIENT
    assert found.sentence.endswith("it is what the cluster has, less what other queues are guaranteed.")
    assert found.next_step == f"add nodes, or ask for less{HOPELESS}"


def test_waiting_is_no_advice_for_a_gang_that_the_empty_cluster_has_no_room_for() -> None:
    situation = Situation(vcjob(replicas=3), [*nodes(1), DEFAULT], "", "", group_phase="Inqueue", pods=True)
    found = explain(situation.facts())
    assert found.reason == WaitReason.GANG_INCOMPLETE
    assert found.next_step == f"lower minAvailable, or ask for less{HOPELESS}"
    assert "waiting does not help" in found.next_step


def test_those_who_have_what_a_job_waits_for_are_named() -> None:
    """The largest first: who runs, who was only admitted, whose pods are in no job."""
    promised = builders.pod_group("promised").members(1).reserve(cpu=3).phase("Inqueue").build()
    owner = core.OwnerReference(kind="Job", name="sweep", uid="u", controller=True)
    owned = msgspec.structs.replace(
        promised, metadata=msgspec.structs.replace(promised.metadata, owner_references=(owner,))
    )
    stray = builders.pod("stray").request(cpu=1, memory="1Gi").on("n1").build()
    situation = Situation(vcjob(), [*nodes(), DEFAULT, *filler(2, "n0"), owned, stray], "", "")
    assert rung(situation, "Taken") == (
        "ns/old-n0: cpu 4",
        "ns/sweep: cpu 3 (admitted, and waits itself)",
        "pods of no job: cpu 1",
    )


def test_only_the_largest_holders_are_named() -> None:
    situation = Situation(
        vcjob(), [*nodes(5), DEFAULT, *(each for at in range(5) for each in filler(1, f"n{at}"))], "", ""
    )
    assert rung(situation, "Taken") == (*(f"ns/old-n{at}: cpu 2" for at in range(3)), "and 2 more")


def test_a_job_that_is_over_waits_for_nothing() -> None:
    situation = Situation(vcjob(phase="Completed"), nodes(), "", "")
    found = explain(situation.facts())
    assert (found.reason, found.sentence) == ("", "ns/train is Completed: it waits for nothing.")


STATES: dict[str, tuple[JsonObject, str, str, str]] = {
    "failed for good": (
        {"phase": "Failed", "reason": "MaxRetryReached", "message": "restarted 3 times, which is all"},
        "",
        "ns/train is Failed: it waits for nothing; its status says: MaxRetryReached: restarted 3 times, which is all.",
        "",
    ),
    "terminated by a policy": (
        {"phase": "Terminated", "reason": "TerminateJob", "message": "TerminateJob because of PodFailed of pod p"},
        "",
        "ns/train is Terminated: it waits for nothing; its status says: TerminateJob because of PodFailed of pod p.",
        "",
    ),
    "suspended by somebody": (
        {"phase": "Aborted", "reason": "AbortJob", "message": "AbortJob because of CommandIssued"},
        "Suspended",
        "ns/train waits: it is Aborted, and starts again when it is resumed.",
        "resume it with 'vcctl job resume'",
    ),
    "suspended, and nothing is written": (
        {"phase": "Aborted"},
        "Suspended",
        "ns/train waits: it is Aborted, and starts again when it is resumed.",
        "resume it with 'vcctl job resume'",
    ),
    "aborted by a policy": (
        {
            "phase": "Aborted",
            "reason": "AbortJob",
            "message": "AbortJob because of PodFailed of pod train-w-0 with exit code 42",
        },
        "Aborted",
        "ns/train waits: it is Aborted (AbortJob because of PodFailed of pod train-w-0 with exit code 42), "
        "and starts again when it is resumed.",
        "mend what it was aborted for, then resume it with 'vcctl job resume'",
    ),
    "its claim is not there": (
        {"phase": "Pending", "reason": "PVCError", "message": "Failed to create PVC, err: pvc nothere is not found"},
        "PodGroupMissing",
        "ns/train waits: its PodGroup has not been made yet; the job's status says: "
        "PVCError: Failed to create PVC, err: pvc nothere is not found.",
        "mend what the status says; the job goes on by itself then",
    ),
    "its pods go before it restarts": (
        {"phase": "Restarting", "reason": "RestartJob", "message": "RestartJob because of PodFailed of pod p"},
        "PodGroupMissing",
        "ns/train waits: its PodGroup has not been made yet; the job's status says: "
        "RestartJob because of PodFailed of pod p.",
        NEXT_STEPS[WaitReason.POD_GROUP_MISSING],
    ),
}


@pytest.mark.parametrize("name", STATES)
def test_what_the_job_s_own_status_says_is_quoted(name: str) -> None:
    state, *want = STATES[name]
    situation = Situation({**vcjob(), "status": {"state": state}}, [*nodes(), DEFAULT], "", "", group_phase=None)
    found = explain(situation.facts())
    assert [found.reason, found.sentence, found.next_step] == want


NODES_REFUSE = NEXT_STEPS[WaitReason.NODES_REFUSE]


@pytest.mark.parametrize(
    ("cpu", "others", "want"),
    [(4, filler(2, "n1"), with_waiting(NODES_REFUSE)), (4, [], NODES_REFUSE + HOPELESS_REST)],
    ids=["others have the room for the rest", "there is no room for the rest"],
)
def test_the_rest_of_a_job_that_runs_is_told_to_wait_only_if_that_helps(
    cpu: int, others: list[core.Object], want: str
) -> None:
    """One of its pods runs and fills a node; one or two wait."""
    job = vcjob(replicas=2 if others else 3, minimum=1, requests={"cpu": str(cpu)})
    pods = [*members.pods(job, [])]
    places = ["n0", "", ""] if others else ["n0", "n1", ""]
    placed = [
        msgspec.structs.replace(
            pod,
            spec=msgspec.structs.replace(pod.spec, node_name=place),
            status=core.PodStatus(phase="Running" if place else "Pending"),
        )
        for pod, place in zip(pods, places, strict=False)
    ]
    found = explain(Situation(job, [*nodes(), DEFAULT, *others, *placed], "", "", group_phase="Running").facts())
    assert (found.reason, found.next_step) == ("NodesRefuse", want)


def test_a_job_that_runs_says_so() -> None:
    job = vcjob(replicas=2)
    running = [
        msgspec.structs.replace(
            pod,
            spec=msgspec.structs.replace(pod.spec, node_name="n0"),
            status=core.PodStatus(phase="Running"),
        )
        for pod in members.pods(job, [])
    ]
    situation = Situation(job, [*nodes(), builders.queue().build(), *running], "", "", group_phase="Running")
    assert explain(situation.facts()).sentence == "ns/train runs: 2 of 2 pods have a node."


async def test_the_command_prints_the_ladder(server: FakeApiServer) -> None:
    facts = SITUATIONS["the queue may not hold so much"].facts()
    server.put(kinds.JOBS, facts.job)
    for obj in facts.snapshot.objects:
        kind = {core.Node: kinds.NODES, core.Queue: kinds.QUEUES, core.PodGroup: kinds.POD_GROUPS}[type(obj)]
        server.put(kind, core.to_builtins(obj, kind))
    group = server.objects(kinds.POD_GROUPS)[0]
    uid = server.get(kinds.JOBS, "train", "ns")["metadata"]["uid"]
    server.remove(kinds.POD_GROUPS, group["metadata"]["name"], "ns")
    server.put(kinds.POD_GROUPS, {**group, "metadata": {"name": f"train-{uid}", "namespace": "ns"}})
    done = await drive("vcctl job explain train -n ns", server)
    assert (done.code, done.err) == (0, GUESSED)
    assert done.out == LADDER


LADDER = """\
ns/train waits: the group needs cpu 8; queue small may hold cpu 4, of which cpu 0 is taken: short by cpu 4.
Reason:   QueueQuotaInsufficient
Next:     raise spec.capability, use another queue, or ask for less; \
waiting does not help: it would not start in the empty cluster either

Queue:    small: Open, weight 1, share 0.00
            cpu: 0 in use, 8 wanted, deserved 4, guaranteed -, at most 4, 4 left
            root: Open, weight 1
              cpu: 0 in use, 8 wanted, deserved -, guaranteed -, at most 8, 8 left

Gang:     needs 4 pods at once, 0 have a place: short by 4 (4 Pending)

Nodes:    worker (4 waiting, each cpu 2): 2 of 2 nodes take one now
            room for all 4

Taken:    nothing: no other job holds what it asks for

Eviction: none: no action of the policy evicts (actions: enqueue, allocate, backfill)

Worked out with the built-in policy.
"""


def test_those_who_may_not_look_at_the_cluster_are_told_what_the_status_says() -> None:
    said = {}
    for name, (state, *_) in STATES.items():
        said[name] = from_conditions({**vcjob(), "status": {"state": state}}, None).sentence
    want = {name: STATES[name][2] for name in STATES if STATES[name][1] != "PodGroupMissing"}
    assert {name: said[name] for name in want} == want
    assert said["its claim is not there"] == (
        "ns/train is Pending: PVCError: Failed to create PVC, err: pvc nothere is not found."
    )


@pytest.mark.parametrize("written", [True, False])
async def test_without_the_right_to_list_nodes_the_conditions_must_do(server: FakeApiServer, written: bool) -> None:
    uid = server.put(kinds.JOBS, vcjob())["metadata"]["uid"]
    refused = {
        "type": "Admitted",
        "status": "False",
        "reason": "QueueNotOpen",
        "message": "queue shut is Closed: it takes no work until it is Open.",
    }
    waiting = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "2/2 wait"}
    told = [refused, waiting] if written else []
    group = {"metadata": {"name": f"train-{uid}", "namespace": "ns"}, "status": {"conditions": told}}
    server.put(kinds.POD_GROUPS, group)
    server.faults.fail(403, verb="list", kind=kinds.NODES, message="nodes is forbidden")
    done = await drive("vcctl job explain train -n ns", server)
    first, *rest = done.out.splitlines()
    assert done.code == 0
    assert rest[-1] == "Not looked at: what the cluster would do cannot be worked out: nodes is forbidden"
    if written:
        assert first == "ns/train waits: queue shut is Closed: it takes no work until it is Open."
        assert rest[0] == "Reason:   QueueNotOpen"
    else:
        assert first == "ns/train is Pending, and nothing is written down about why."
