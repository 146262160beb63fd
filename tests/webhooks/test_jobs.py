"""Creation of jobs: defaults and refusals (spec 07 sections 7, 8 and 21)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.webhooks import jobs
from stromboli.webhooks.context import Context, Settings
from stromboli.webhooks.job_policies import ACTIONS, EVENTS
from stromboli.webhooks.mpi import master_name
from stromboli.webhooks.shapes import JsonObject
from tests.webhooks.building import cluster, container, decide, job, queue, task, template


def defaulted(obj: JsonObject, **settings: Any) -> JsonObject:
    return jobs.default(obj, Context("CREATE", settings=Settings(**settings)))


# Defaults


def test_a_bare_job_is_given_everything_it_needs() -> None:
    bare: JsonObject = {"spec": {"tasks": [{"template": template()}, {"replicas": 3, "template": template()}]}}
    spec = defaulted(bare)["spec"]
    assert (spec["queue"], spec["schedulerName"], spec["maxRetry"], spec["minAvailable"]) == (
        "default",
        "volcano",
        3,
        3,
    )
    assert [(t["name"], t["minAvailable"], t["maxRetry"]) for t in spec["tasks"]] == [
        ("default0", 0, 3),
        ("default1", 3, 3),
    ]
    assert "plugins" not in spec


def test_what_is_given_is_kept() -> None:
    given_job = job(task(minAvailable=1, maxRetry=5), schedulerName="mine", maxRetry=7, plugins={"env": []})
    assert defaulted(given_job) == given_job


def test_the_least_of_a_partitioned_task_is_whole_partitions() -> None:
    partitioned = task("a", 8, partitionPolicy={"totalPartitions": 4, "partitionSize": 2, "minPartitions": 3})
    spec = defaulted(job(partitioned, task("b", 1), minAvailable=0))["spec"]
    assert [t["minAvailable"] for t in spec["tasks"]] == [6, 1]
    assert spec["minAvailable"] == 7


def test_an_explicit_zero_stays_and_counts_as_zero() -> None:
    spec = defaulted(job(task("a", 4, minAvailable=0), task("b", 2), minAvailable=0))["spec"]
    assert [t["minAvailable"] for t in spec["tasks"]] == [0, 2]
    assert spec["minAvailable"] == 2


PLUGINS: dict[str, tuple[dict[str, list[str]], dict[str, list[str]]]] = {
    "env alone needs nothing": ({"env": []}, {"env": []}),
    "ray needs a service": ({"ray": []}, {"ray": [], "svc": []}),
    "mpi needs a service and keys": ({"mpi": ["--x"]}, {"mpi": ["--x"], "svc": [], "ssh": []}),
    "arguments given are kept": ({"mpi": [], "svc": ["--a"], "ssh": []}, {"mpi": [], "svc": ["--a"], "ssh": []}),
    "no plugins at all": ({}, {}),
}


@pytest.mark.parametrize("name", PLUGINS)
def test_plugins_bring_what_they_need(name: str) -> None:
    given_plugins, want = PLUGINS[name]
    assert defaulted(job(plugins=given_plugins))["spec"]["plugins"] == want


def test_host_network_without_dns_policy_keeps_cluster_names() -> None:
    spec = defaulted(job(task(template=template(hostNetwork=True))))["spec"]
    assert spec["tasks"][0]["template"]["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"


def test_the_first_configured_scheduler_is_used() -> None:
    assert defaulted(job(), scheduler_names=("one", "two"))["spec"]["schedulerName"] == "one"


def test_a_job_without_spec_is_left_to_validation() -> None:
    # The original's patch could not be applied and the client saw an internal error.
    assert defaulted({"metadata": {"name": "a"}}) == {"metadata": {"name": "a"}}
    verdict = decide("/jobs/validate", {"metadata": {"name": "a", "namespace": "team"}})
    assert verdict.message == "No task specified in job spec"


def test_defaulting_twice_changes_nothing_more() -> None:
    once = defaulted(job(task("", 4), plugins={"mpi": []}, minAvailable=0))
    assert defaulted(once) == once


def test_defaulting_leaves_its_argument_alone() -> None:
    bare = job(task(""), plugins={"mpi": []})
    before = repr(bare)
    defaulted(bare)
    assert repr(bare) == before


# Refusals

POLICY_LISTS = f" valid events are [{' '.join(EVENTS)}], valid actions are [{' '.join(ACTIONS)}];"
NOT_A_DAG = "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG);"
BOTH_TIERS = "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously"


def policy_block(*errors: str) -> str:
    count = "1 error" if len(errors) == 1 else f"{len(errors)} errors"
    return f"{count} occurred:\n" + "".join(f"\t* {error}\n" for error in errors) + "\n" + POLICY_LISTS


@dataclass
class Case:
    job: JsonObject
    want: str
    fields: list[str] = field(default_factory=list)


REFUSED = {
    "no tasks": Case({"spec": {"tasks": []}}, "No task specified in job spec", ["spec.tasks"]),
    "mpi without its master, whatever else is wrong": Case(
        job(plugins={"mpi": [], "nope": []}, queue="gone"), "The specified mpi master task was not found"
    ),
    "the highest tier given twice, once as zero": Case(
        job(networkTopology={"highestTierAllowed": 0, "highestTierName": "rack"}), BOTH_TIERS
    ),
    "a task that asks for more than it has": Case(
        job(task(minAvailable=2)),
        "'minAvailable' is greater than 'replicas' in task: worker, job: sample;",
        ["spec.tasks[0].minAvailable"],
    ),
    "a repeated task, and nothing after it counts": Case(
        job(task("a"), task("a"), task("b", 9, minAvailable=99), minAvailable=3),
        "duplicated task name a; job 'minAvailable' should not be greater than total replicas in tasks;",
        ["spec.tasks[1].name", "spec.minAvailable"],
    ),
    "an unknown event": Case(
        job(policies=[{"event": "Nope", "action": "AbortJob"}]),
        policy_block('spec.policies: Invalid value: "Nope": invalid policy event'),
        ["spec.policies[0]"],
    ),
    "an internal action": Case(
        job(task(policies=[{"event": "PodFailed", "action": "SyncJob"}])),
        policy_block('spec.tasks.policies: Invalid value: "SyncJob": invalid policy action'),
        ["spec.tasks[0].policies[0]"],
    ),
    "any event beside another": Case(
        job(policies=[{"event": "*", "action": "AbortJob"}, {"event": "PodFailed", "action": "AbortJob"}]),
        policy_block("if there's * here, no other policy should be here"),
    ),
    "the same exit code twice": Case(
        job(policies=[{"exitCode": 3, "action": "AbortJob"}, {"exitCode": 3, "action": "AbortJob"}]),
        policy_block("duplicate exitCode 3"),
    ),
    "a missing action is an invalid one": Case(
        job(policies=[{"event": "PodFailed"}]), policy_block('spec.policies: Invalid value: "": invalid policy action')
    ),
    "partitions that do not add up": Case(
        job(task("a", 5, partitionPolicy={"totalPartitions": 2, "partitionSize": 2})),
        "'Replicas' are not equal to TotalPartitions*PartitionSize in task: a, job: sample",
        ["spec.tasks[0].replicas"],
    ),
    "partitions of a least that does not add up": Case(
        job(
            task("a", 8, minAvailable=4, partitionPolicy={"totalPartitions": 4, "partitionSize": 2, "minPartitions": 1})
        ),
        "'MinAvailable' is not equal to MinPartitions*PartitionSize in task: a, job: sample",
    ),
    "unknown plugins, in order": Case(
        job(plugins={"zeta": [], "alpha": [], "env": []}),
        "unable to find job plugin: alpha; unable to find job plugin: zeta;",
        ["spec.plugins.alpha", "spec.plugins.zeta"],
    ),
    "a volume mounted nowhere": Case(
        job(volumes=[{"volumeClaimName": "v"}]), "mountPath is required;", ["spec.volumes[0]"]
    ),
    "only the first faulty volume is told": Case(
        job(volumes=[{"mountPath": "/var"}, {"mountPath": "/var"}]),
        "either VolumeClaim or VolumeClaimName must be specified;",
    ),
    "a queue that does not exist": Case(
        job(queue="gone"), 'unable to find job queue: queue.scheduling.volcano.sh "gone" not found;', ["spec.queue"]
    ),
    "a queue that is closing": Case(
        job(queue="closing"), "can only submit job to queue with state `Open`, queue `closing` status is `Closing`;"
    ),
    "the root queue": Case(job(queue="root"), "can not submit job to root queue;"),
    "a queue with children": Case(
        job(queue="parent"), "can only submit job to leaf queue, queue `parent` has 1 child queues;"
    ),
    "tasks that wait for each other": Case(
        job(task("a", dependsOn={"name": ["b"]}), task("b", dependsOn={"name": ["a"]})), NOT_A_DAG
    ),
    "a task that waits for nobody we know": Case(job(task("a", dependsOn={"name": ["z"]})), NOT_A_DAG),
    "a NUMA task with half a cpu": Case(
        job(
            task(
                topologyPolicy="best-effort",
                template=template(containers=[container(resources={"requests": {"cpu": "500m"}})]),
            )
        ),
        "the cpu request isn't  an integer in spec.task[0] container[0].",
        ["spec.tasks[0].topologyPolicy"],
    ),
    "a template without image": Case(
        job(task(template={"spec": {"containers": [{"name": "main"}, {"image": "x"}]}})),
        "spec.task[0].template.spec.containers[0].image: Required value. "
        "template.spec.containers[1].name: Required value.",
        ["spec.tasks[0].template.spec.containers[0].image", "spec.tasks[0].template.spec.containers[1].name"],
    ),
    "a number that is a text": Case(
        job({**task(), "replicas": "three"}),
        "spec.tasks[0].replicas: Invalid type: expected `int`, got `str`",
        ["spec.tasks[0].replicas"],
    ),
    "a number beyond 32 bits": Case(
        job(minAvailable=2**31), "spec.minAvailable: Invalid type: expected `int` <= 2147483647"
    ),
}

KNOWN = cluster(queue("root"), queue("parent"), queue("leaf", parent="parent"), queue("closing", state="Closing"))


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_a_job_is_refused(case: Case) -> None:
    verdict = decide("/jobs/validate", case.job, known=KNOWN)
    assert not verdict.allowed
    assert verdict.message == case.want
    if case.fields:
        assert [error.path for error in verdict.errors if error.said] == case.fields


ACCEPTED = {
    "a plain job": job(),
    "a leaf queue": job(queue="leaf"),
    "any event beside an exit code": job(
        policies=[{"event": "*", "action": "AbortJob"}, {"exitCode": 2, "action": "RestartJob"}]
    ),
    "an exit code with an action nobody knows": job(policies=[{"exitCode": 2, "action": "Nope"}]),
    "the same event for job and task": job(
        task(policies=[{"event": "PodFailed", "action": "RestartTask"}]),
        policies=[{"event": "PodFailed", "action": "AbortJob"}],
    ),
    "partitions without a least": job(
        task("a", 4, minAvailable=4, partitionPolicy={"totalPartitions": 2, "partitionSize": 2})
    ),
    "mpi with its master named": job(task("launcher"), plugins={"mpi": ["--master=launcher", "--worker=w"]}),
    "a diamond of tasks": job(
        task("a"),
        task("b", dependsOn={"name": ["a"]}),
        task("c", dependsOn={"name": ["a"]}),
        task("d", dependsOn={"name": ["b", "c"]}),
    ),
    "an empty dependency": job(task(dependsOn={"name": []})),
    # P39: a tier's name may be anything the CRD documents.
    "a tier named with a slash": job(networkTopology={"mode": "hard", "highestTierName": "volcano.sh/hyperNode"}),
    "a NUMA task with whole cpus by limit": job(
        task(
            topologyPolicy="restricted",
            template=template(containers=[container(resources={"limits": {"cpu": "2000m"}})]),
        )
    ),
    "nulls are the same as nothing": job(task(minAvailable=None, dependsOn=None, policies=None), plugins=None),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_job_is_accepted(name: str) -> None:
    verdict = decide("/jobs/validate", ACCEPTED[name], known=KNOWN)
    assert (verdict.allowed, verdict.message) == (True, "")


def test_the_name_of_the_last_replica_must_fit() -> None:
    # The original looked at the task's index only: pods from the eleventh on could then not be created.
    names = {"name": "j" * 40}
    fits = job(task("t" * 20, 10), name=names["name"])
    too_long = job(task("t" * 20, 11), name=names["name"])
    assert decide("/jobs/validate", fits).allowed
    verdict = decide("/jobs/validate", too_long)
    assert verdict.message == (
        f"create pod with name {'j' * 40}-{'t' * 20}-10 validate failed [name part must be no more than 63 bytes];"
    )


MILLION = 1_000_000
TOO_MANY: dict[str, tuple[list[int], str, int]] = {
    "in one task": ([MILLION + 1], "spec.tasks[0].replicas", MILLION + 1),
    "in all tasks": ([1, MILLION - 1, 1, 1], "spec.tasks[2].replicas", MILLION + 2),
}


def of_replicas(*numbers: int) -> JsonObject:
    return job(*(task(f"t{index}", number) for index, number in enumerate(numbers)))


@pytest.mark.parametrize("name", TOO_MANY)
def test_more_replicas_than_the_controller_takes_are_refused(name: str) -> None:
    numbers, field_name, total = TOO_MANY[name]
    for old in (None, of_replicas(*(1 for _ in numbers))):
        verdict = decide("/jobs/validate", of_replicas(*numbers), old)
        assert verdict.message == f"too many replicas: {total} in all tasks, must be at most 1000000"
        assert [error.field for error in verdict.errors] == [field_name]


def test_as_many_replicas_as_the_controller_takes_are_accepted() -> None:
    assert decide("/jobs/validate", of_replicas(MILLION - 1, 1)).allowed


def test_a_stored_job_of_too_many_replicas_can_be_changed_to_fewer() -> None:
    assert decide("/jobs/validate", of_replicas(MILLION + 1, 1), of_replicas(MILLION + 1, 2)).allowed


MPI = {
    "nothing given": ([], "master"),
    "with equals": (["--master=m"], "m"),
    "single dash": (["-master=m"], "m"),
    "two words": (["--worker", "w", "--master", "m"], "m"),
    "after an unknown flag nothing counts": (["--nope", "--master=m"], "master"),
    "before an unknown flag everything counts": (["--master=m", "--nope"], "m"),
    "a port that is no number ends it": (["--port=x", "--master=m"], "master"),
    "a flag without its value": (["--master"], "master"),
    "a word that is no flag ends it": (["m", "--master=m"], "master"),
}


@pytest.mark.parametrize("name", MPI)
def test_the_mpi_master_is_read_from_the_arguments(name: str) -> None:
    arguments, want = MPI[name]
    assert master_name(arguments) == want


EDGES = st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12)


@given(EDGES)
def test_tasks_are_accepted_exactly_when_they_can_be_started_one_after_the_other(edges: set[tuple[int, int]]) -> None:
    waits = {n: {str(to) for frm, to in edges if frm == n} for n in range(6)}
    tasks = [task(str(n), dependsOn={"name": sorted(names)}) for n, names in waits.items()]
    started: set[str] = set()
    while ready := {str(n) for n, names in waits.items() if names <= started} - started:
        started |= ready
    assert decide("/jobs/validate", job(*tasks)).allowed is (len(started) == 6)


def test_a_deep_chain_of_tasks_is_judged_in_linear_time() -> None:
    tasks = [task(f"t{n}", dependsOn={"name": [f"t{n - 1}"]} if n else None) for n in range(2000)]
    assert decide("/jobs/validate", job(*tasks)).allowed
