"""A preview says which of four things would become of a job, and why."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest
import yaml

from stromboli.api import core, kinds, names
from stromboli.api.reasons import NEXT_STEPS, WaitReason
from stromboli.cli.rehearsing import members
from stromboli.cli.rehearsing.emptying import without_waiting
from stromboli.cli.rehearsing.previewing import Preview, Verdict, preview
from stromboli.cli.rehearsing.snapshots import Snapshot
from stromboli.kube.json import JsonObject
from stromboli.scheduler.core.policy import DEFAULT_POLICY, PluginOption, Policy
from stromboli.scheduler.core.policy_file import render
from stromboli.testing import builders
from stromboli.testing.apiserver import FakeApiServer
from stromboli.testing.builders import queue
from tests.cli.driving import GUESSED, drive
from tests.cli.situations import CAPACITY, DEFAULT, NOW, filler, nodes, vcjob

PREEMPTING = Policy(
    ("enqueue", "allocate", "preempt"),
    ((PluginOption("priority"), PluginOption("gang")), (PluginOption("predicates"), PluginOption("nodeorder"))),
)


@dataclass
class Case:
    """A job, its cluster, and what the preview must say."""

    job: JsonObject
    objects: Sequence[core.Object]
    want: Verdict
    want_text: str
    want_nodes: dict[str, int] = field(default_factory=dict)
    policy: Policy = DEFAULT_POLICY


CASES = {
    "there is room": Case(
        vcjob(), [*nodes(), DEFAULT], Verdict.FITS_NOW, "ns/train fits now: 4 of its pods start.", {"n0": 2, "n1": 2}
    ),
    "there is room for the minimum of an elastic gang": Case(
        vcjob(replicas=6, minimum=2), [*nodes(1), DEFAULT], Verdict.FITS_NOW, "2 of its pods start", {"n0": 2}
    ),
    "somebody less important is in the way": Case(
        vcjob(replicas=1, priorityClassName="high"),
        [*nodes(1), builders.priority_class("high", 100), DEFAULT, *filler(2)],
        Verdict.FITS_AFTER_EVICTING,
        "fits after evicting 1 pod: 1 of its pods starts.",
        {"n0": 1},
        PREEMPTING,
    ),
    "the cluster is full": Case(
        vcjob(), [*nodes(), DEFAULT, *filler(2, "n0"), *filler(2, "n1")], Verdict.WAITS, "short by cpu 6400m"
    ),
    "the queue is full": Case(
        vcjob(queue="small", replicas=2),
        [*nodes(), queue("small").cap(cpu=4).build(), *filler(2, queue="small")],
        Verdict.WAITS,
        "queue small may hold cpu 4, of which cpu 4 is taken: short by cpu 4",
        policy=CAPACITY,
    ),
    "the queue can never hold it": Case(
        vcjob(queue="small"),
        [*nodes(), queue("small").cap(cpu=4).build()],
        Verdict.NEVER_FITS,
        "never fits, even in the empty cluster: the group needs cpu 8; queue small may hold cpu 4: short by cpu 4.",
        policy=CAPACITY,
    ),
    "a pod is larger than any node": Case(
        vcjob(replicas=1, requests={"cpu": "5"}), [*nodes(), DEFAULT], Verdict.NEVER_FITS, "2 Insufficient cpu"
    ),
    "the queue does not exist": Case(vcjob(queue="ghost"), nodes(), Verdict.NEVER_FITS, "queue ghost does not exist"),
    "the queue is closed": Case(
        vcjob(queue="shut"),
        [*nodes(), queue("shut").state("Closed").build()],
        Verdict.NEVER_FITS,
        "queue shut is Closed",
    ),
}


def ask(case: Case) -> Preview:
    return preview(Snapshot(NOW, tuple(case.objects)), case.policy, case.job)


@pytest.mark.parametrize("name", CASES)
def test_previews(name: str) -> None:
    case = CASES[name]
    found = ask(case)
    assert found.verdict == case.want
    assert case.want_text in found.sentence
    assert dict(found.placements) == case.want_nodes


def test_what_never_fits_is_not_told_to_wait() -> None:
    why = ask(CASES["the queue can never hold it"]).why
    assert why is not None
    assert why.next_step == "raise spec.capability, use another queue, or ask for less"


@pytest.mark.parametrize("reason", sorted(set(NEXT_STEPS) - {WaitReason.ABOUT_TO_START}))
def test_there_is_always_something_to_do_but_wait(reason: WaitReason) -> None:
    step = without_waiting(NEXT_STEPS[reason])
    assert step
    assert not step.startswith(("wait", "or "))


def test_evictions_are_named() -> None:
    (eviction,) = ask(CASES["somebody less important is in the way"]).evictions
    assert (eviction.reason, eviction.pod.startswith("ns/old-n0-")) == ("preempt", True)


def test_the_snapshot_is_not_changed_by_a_preview() -> None:
    case = CASES["somebody less important is in the way"]
    snapshot = Snapshot(NOW, tuple(case.objects))
    before = snapshot.encode()
    preview(snapshot, case.policy, case.job)
    assert snapshot.encode() == before


# -- the members of a job ----------------------------------------------------------------------------------------------


def test_members_carry_what_scheduling_reads() -> None:
    job = vcjob(queue="q", replicas=2, priorityClassName="high")
    job["metadata"]["annotations"] = {names.PREEMPTABLE: "true", "private": "x"}
    first, second = members.pods(job, [builders.priority_class("high", 7)])
    assert (first.name, second.name, first.namespace) == ("train-worker-0", "train-worker-1", "ns")
    assert (first.spec.priority, first.spec.scheduler_name) == (7, "volcano")
    notes = first.metadata.annotations
    assert (notes[names.GROUP_NAME], notes[names.TASK_SPEC]) == ("train-uid-train", "worker")
    assert (notes[names.PREEMPTABLE], "private" in notes) == ("true", False)


def test_the_gang_of_a_group_takes_important_tasks_first() -> None:
    job = vcjob(minimum=2)
    important = {**job["spec"]["tasks"][0], "name": "master", "replicas": 1}
    spec = {"priorityClassName": "high", "containers": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]}
    job["spec"]["tasks"].append({**important, "template": {"spec": spec}})
    group = members.pod_group(job, [builders.priority_class("high", 7)], NOW)
    assert group.spec.min_task_member == {"worker": 4, "master": 1}
    assert group.spec.min_resources is not None
    assert (group.spec.min_resources["cpu"], group.spec.min_resources["pods"]) == ("5", "2")


# -- the command -------------------------------------------------------------------------------------------------------


def put(server: FakeApiServer, *objects: core.Object) -> None:
    by_struct = {
        core.Node: kinds.NODES,
        core.Queue: kinds.QUEUES,
        core.Pod: kinds.PODS,
        core.PodGroup: kinds.POD_GROUPS,
        core.PriorityClass: kinds.PRIORITY_CLASSES,
    }
    for obj in objects:
        kind = by_struct[type(obj)]
        server.put(kind, core.to_builtins(obj, kind))


async def test_the_command_keeps_nothing(server: FakeApiServer, tmp_path: Path) -> None:
    put(server, *nodes(), DEFAULT)
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(vcjob()))
    done = await drive(f"vcctl job preview -f {file}", server)
    assert (done.code, done.err) == (0, GUESSED)
    assert done.out == (
        "ns/train fits now: 4 of its pods start.\n  n0: 2 pods\n  n1: 2 pods\nWorked out with the built-in policy.\n"
    )
    assert server.objects(kinds.JOBS) == []
    told = json.loads((await drive(f"vcctl job preview -f {file} -o json", server)).out)
    assert (told["verdict"], told["placements"]) == ("FitsNow", {"n0": 2, "n1": 2})


async def test_the_command_names_who_has_what_the_job_waits_for(server: FakeApiServer, tmp_path: Path) -> None:
    put(server, *nodes(), DEFAULT, *filler(2, "n0"), *filler(1, "n1"))
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(vcjob()))
    lines = (await drive(f"vcctl job preview -f {file}", server)).out.splitlines()
    assert lines[2:] == [
        "Next:   wait for running work to end, add nodes, or ask for less",
        "Taken:  ns/old-n0: cpu 4",
        "        ns/old-n1: cpu 2",
        "Worked out with the built-in policy.",
    ]
    told = json.loads((await drive(f"vcctl job preview -f {file} -o json", server)).out)
    assert (told["verdict"], told["taken"]) == ("Waits", ["ns/old-n0: cpu 4", "ns/old-n1: cpu 2"])


def configure(server: FakeApiServer, content: str, release: str = "volcano") -> None:
    """Put a policy where the chart puts it."""
    meta = {"name": f"{release}-scheduler-configmap", "namespace": "volcano-system"}
    server.put(kinds.CONFIG_MAPS, {"metadata": meta, "data": {"volcano-scheduler.conf": content}})


async def test_the_policy_of_the_cluster_is_used(server: FakeApiServer, tmp_path: Path) -> None:
    configure(server, render(PREEMPTING))
    put(server, *CASES["somebody less important is in the way"].objects)
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(CASES["somebody less important is in the way"].job))
    done = await drive(f"vcctl job preview -f {file}", server)
    first, *lines = done.out.splitlines()
    assert done.err == ""
    assert first == "ns/train fits after evicting 1 pod: 1 of its pods starts."
    assert lines[1] == "Evicted:"
    assert lines[2].endswith(" (preempt)")
    assert lines[-1] == "Worked out with the policy in ConfigMap volcano-system/volcano-scheduler-configmap."


@pytest.mark.parametrize(
    ("releases", "used"),
    [
        (["stromboli"], "the policy in ConfigMap volcano-system/stromboli-scheduler-configmap"),
        (["stromboli", "volcano"], "the policy in ConfigMap volcano-system/volcano-scheduler-configmap"),
        (["one", "two"], "the built-in policy"),
    ],
)
async def test_the_policy_of_a_release_of_any_name_is_found(
    server: FakeApiServer, tmp_path: Path, releases: list[str], used: str
) -> None:
    for release in releases:
        configure(server, render(PREEMPTING), release)
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(vcjob()))
    done = await drive(f"vcctl job preview -f {file}", server)
    assert done.out.splitlines()[-1] == f"Worked out with {used}."


async def test_a_policy_that_cannot_be_read_is_named(server: FakeApiServer, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(vcjob()))
    configure(server, "actions: enque")
    done = await drive(f"vcctl job preview -f {file}", server)
    assert done.err.startswith(
        "Failed to preview job: the policy in ConfigMap volcano-system/volcano-scheduler-configmap: "
        "failed to find Action enque"
    )
    done = await drive(f"vcctl job preview -f {file} -p /none", server)
    assert done.err.startswith("Failed to preview job: policy /none: cannot be read: ")


async def test_a_job_that_admission_refuses_is_refused_here_too(server: FakeApiServer, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(vcjob()))
    server.faults.fail(403, verb="create", kind=kinds.JOBS, message="admission webhook denied the request")
    done = await drive(f"vcctl job preview -f {file}", server)
    assert (done.code, done.out) == (255, "")
    assert done.err.startswith("Failed to preview job: admission webhook denied the request")


async def test_pods_of_jobs_that_wait_already_are_in_the_snapshot(server: FakeApiServer, tmp_path: Path) -> None:
    """A waiting vcjob has a PodGroup and no pods; it was there first and takes the room."""
    put(server, *nodes(), DEFAULT)
    first = server.put(kinds.JOBS, vcjob("first"))
    group = members.pod_group(first, [], NOW)
    put(server, msgspec.structs.replace(group, metadata=msgspec.structs.replace(group.metadata, uid="")))
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump({**vcjob("second"), "metadata": {"name": "second", "namespace": "ns"}}))
    done = await drive(f"vcctl job preview -f {file}", server)
    assert done.out.startswith("ns/second waits: ")


async def test_a_job_that_exists_is_a_case_for_explain(server: FakeApiServer, tmp_path: Path) -> None:
    server.put(kinds.JOBS, vcjob())
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(vcjob()))
    done = await drive(f"vcctl job preview -f {file}", server)
    assert (done.code, done.out) == (255, "")
    assert done.err.startswith("Failed to preview job: ")
    assert done.err.endswith(
        "\"train\" already exists: see what it waits for with 'vcctl job explain train -n ns', "
        "or preview it under another name\n"
    )


async def test_of_several_jobs_the_first_or_the_named_is_previewed(server: FakeApiServer, tmp_path: Path) -> None:
    put(server, *nodes(), DEFAULT)
    file = tmp_path / "jobs.yaml"
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    listed = {"apiVersion": "v1", "kind": "List", "items": [vcjob("b")]}
    file.write_text(yaml.safe_dump_all([deployment, vcjob("a"), listed]))
    first = await drive(f"vcctl job preview -f {file}", server)
    assert first.out.startswith("ns/a fits now: ")
    assert first.err == f"{file} has 2 jobs; this is about the first, a (name another: preview NAME)\n{GUESSED}"
    named = await drive(f"vcctl job preview b -f {file}", server)
    assert (named.out[:14], named.err) == ("ns/b fits now:", GUESSED)


DEPLOYMENT = "{kind: Deployment, apiVersion: apps/v1}"
UNUSABLE = {
    "no vcjob in it": (DEPLOYMENT, "expected a Job of batch.volcano.sh/v1alpha1, found Deployment of apps/v1"),
    "empty": ("", "expected a Job of batch.volcano.sh/v1alpha1, found nothing"),
    "a list": ("[1]", "expected a Job of batch.volcano.sh/v1alpha1, found a list"),
    "not YAML": ("{", "not YAML: "),
    "a job of another name": (yaml.safe_dump_all([vcjob("a"), vcjob("b")]), "no Job 'c' in it; choose one of a, b"),
    "no name": ("{kind: Job, apiVersion: batch.volcano.sh/v1alpha1}", "metadata.name of a Job is missing"),
}


@pytest.mark.parametrize("name", UNUSABLE)
async def test_a_file_that_cannot_be_previewed_says_what_is_wrong(
    server: FakeApiServer, tmp_path: Path, name: str
) -> None:
    content, want = UNUSABLE[name]
    file = tmp_path / "job.json"
    file.write_text(content)
    done = await drive(f"vcctl job preview c -f {file}", server)
    assert (done.code, done.out) == (255, "")
    assert done.err.startswith(f"Failed to preview job: {file}: {want}")
