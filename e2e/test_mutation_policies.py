"""The chart's mutation policies (``custom.map_enable``) instead of the webhooks: they fill in what those fill in.

On a control plane of its own, without any webhook, so that nobody else can have filled it in. The webhooks' own
functions say what is missing.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from functools import partial

import orjson
import pytest
import pytest_asyncio

from e2e.cluster import eventually
from e2e.corpus import BY_KIND, topics
from e2e.realcluster import binaries, installing
from e2e.realcluster.cluster import NEEDED, RealCluster
from e2e.realcluster.rendering import Release, of_kind, render
from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.kube.client import Client
from stromboli.kube.errors import ApiError
from stromboli.kube.json import JsonObject
from stromboli.webhooks import jobs, podgroups, queues
from stromboli.webhooks.context import Context, KnownCluster, Operation, Settings

pytestmark = pytest.mark.skipif(
    "E2E_KUBECONFIG" not in os.environ, reason="the embedded API server evaluates no admission policies"
)

GROUP = "admissionregistration.k8s.io"
POLICIES = tuple(
    Kind(GROUP, version, f"{verb.lower()}admissionpolic{ending}", f"{verb}AdmissionPolic{singular}", False)
    for verb, version in (("Mutating", "v1beta1"), ("Validating", "v1"))
    for ending, singular in (("ies", "y"), ("ybindings", "yBinding"))
)
NAMED, PLAIN = "with-a-queue", "without-a-queue"
SCHEDULERS = ["second", "volcano"]
NAMESPACES = {NAMED: {"scheduling.volcano.sh/queue-name": "research"}, PLAIN: {"scheduling.volcano.sh/queue-name": ""}}
POD = {"containers": [{"name": "main", "image": "busybox:1.36"}]}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def governed(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    """A cluster in which the policies act, and nothing else of ours."""
    found = await binaries.provide([*NEEDED, "helm"], print)
    values = {"map_enable": True, "vap_enable": True, "enabled_admissions": "", "scheduler_name": SCHEDULERS}
    objects = await render(found["helm"], Release(), {"custom": values})
    async with (
        RealCluster(tmp_path_factory.mktemp("governed"), found, nodes=0) as cluster,
        await Client.connect(kubeconfig=str(cluster.kubeconfig), qps=0) as client,
    ):
        await installing.create_definitions(client, objects)
        for name, annotations in NAMESPACES.items():
            await client.create(kinds.NAMESPACES, _named(kinds.NAMESPACES, name, annotations=annotations))
        for kind in POLICIES:
            for item in of_kind(objects, kind.kind):
                await client.create(kind, item)
        for topic in FILLED:
            await eventually(partial(_acts, client, topic), bool, what=f"the policy of {topic} acts")
        yield client


def _named(kind: Kind, name: str, **metadata: object) -> JsonObject:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name, **metadata}}


async def _filled(client: Client, kind: Kind, obj: JsonObject, namespace: str = NAMED) -> JsonObject:
    return await client.create(kind, obj, namespace if kind.namespaced else None, dry_run=True)


async def _acts(client: Client, topic: str) -> bool:
    kind, obj, want = FILLED[topic]
    try:
        return _picked(await _filled(client, kind, obj), want) == want
    except ApiError:  # The kind is not served yet, or only the other policies act.
        return False


def _picked(obj: JsonObject, shape: JsonObject) -> JsonObject:
    """What ``obj`` says about the members that ``shape`` has."""
    return {key: _picked(obj[key], item) if isinstance(item, dict) else obj.get(key) for key, item in shape.items()}


FILLED: dict[str, tuple[Kind, JsonObject, JsonObject]] = {
    "jobs": (
        kinds.JOBS,
        _named(kinds.JOBS, "train") | {"spec": {"tasks": [{"name": "a", "replicas": 2, "template": {"spec": POD}}]}},
        {"spec": {"queue": "default", "schedulerName": "second", "maxRetry": 3, "minAvailable": 2}},
    ),
    "queues": (
        kinds.QUEUES,
        _named(
            kinds.QUEUES,
            "team",
            annotations={"volcano.sh/hierarchy": "a/b", "volcano.sh/hierarchy-weights": "2/3"},
        ),
        {
            "metadata": {
                "annotations": {"volcano.sh/hierarchy": "root/a/b", "volcano.sh/hierarchy-weights": "1/2/3"},
            },
            "spec": {"reclaimable": True, "weight": 1},
        },
    ),
    "podgroups": (
        kinds.POD_GROUPS,
        _named(kinds.POD_GROUPS, "gang") | {"spec": {"minMember": 1, "queue": "default"}},
        {"spec": {"queue": "research"}},
    ),
}
"""Objects that leave everything open, and what they get, by topic."""


@pytest.mark.parametrize("topic", FILLED)
async def test_what_is_left_open_is_filled_in(governed: Client, topic: str) -> None:
    kind, obj, want = FILLED[topic]
    assert _picked(await _filled(governed, kind, obj), want) == want


TASK: JsonObject = {"replicas": 2, "template": {"spec": POD}}
ON_HOST: JsonObject = {"replicas": 1, "template": {"spec": {**POD, "hostNetwork": True}}}
JOBS: dict[str, JsonObject] = {
    "tasks without names": {"tasks": [TASK, {**TASK, "name": "b"}, TASK]},
    "a task on the host's network": {"tasks": [ON_HOST, TASK]},
    "a task on the host's network that says its DNS": {
        "tasks": [{**ON_HOST, "template": {"spec": {**POD, "hostNetwork": True, "dnsPolicy": "Default"}}}]
    },
    "a minimum of 0": {"tasks": [{**TASK, "minAvailable": 0}, TASK]},
    "partitions": {
        "tasks": [
            {
                **TASK,
                "replicas": 8,
                "partitionPolicy": {"totalPartitions": 4, "partitionSize": 2, "minPartitions": 3},
            }
        ]
    },
    "everything said": {
        "queue": "q", "schedulerName": "s", "maxRetry": 7, "minAvailable": 1, "plugins": {"env": []},
        "tasks": [{**TASK, "name": "a", "minAvailable": 1, "maxRetry": 2}],
    },
    "an empty queue and no retries": {"queue": "", "schedulerName": "", "maxRetry": 0, "tasks": [TASK]},
    "plugins that need svc": {"plugins": {"pytorch": ["--master=a"]}, "tasks": [TASK]},
    "ray": {"plugins": {"ray": []}, "tasks": [TASK]},
    "mpi, which needs ssh too": {"plugins": {"mpi": ["--master=default0"]}, "tasks": [TASK]},
    "svc with arguments": {"plugins": {"tensorflow": [], "svc": ["--disable-network-policy=true"]}, "tasks": [TASK]},
    "no plugins in particular": {"plugins": {}, "tasks": [TASK]},
}  # fmt: skip


@pytest.mark.parametrize("name", JOBS)
async def test_a_job_becomes_what_the_webhook_makes_of_it(governed: Client, name: str) -> None:
    obj = _named(kinds.JOBS, "train") | {"spec": JOBS[name]}
    await _same(governed, kinds.JOBS, obj, jobs.default)


ANNOTATIONS: dict[str, dict[str, str]] = {
    "no place in a hierarchy": {},
    "a path below root": {"volcano.sh/hierarchy": "root/a", "volcano.sh/hierarchy-weights": "1/2"},
    "a path of another root": {"volcano.sh/hierarchy": "a", "volcano.sh/hierarchy-weights": "2"},
}


@pytest.mark.parametrize("spec", [None, {}, {"weight": 4, "reclaimable": False}, {"weight": 0}], ids=str)
@pytest.mark.parametrize("place", ANNOTATIONS)
async def test_a_queue_becomes_what_the_webhook_makes_of_it(
    governed: Client, place: str, spec: JsonObject | None
) -> None:
    obj = _named(kinds.QUEUES, "team", **({"annotations": ANNOTATIONS[place]} if ANNOTATIONS[place] else {}))
    await _same(governed, kinds.QUEUES, obj if spec is None else obj | {"spec": spec}, queues.default)


@pytest.mark.parametrize("namespace", NAMESPACES)
@pytest.mark.parametrize("spec", [{}, {"queue": "default"}, {"queue": "mine"}], ids=str)
async def test_a_group_becomes_what_the_webhook_makes_of_it(governed: Client, namespace: str, spec: JsonObject) -> None:
    obj = _named(kinds.POD_GROUPS, "gang") | {"spec": {"minMember": 1, **spec}}
    await _same(governed, kinds.POD_GROUPS, obj, podgroups.default, namespace)


LARGE: dict[str, tuple[Kind, JsonObject]] = {
    "a job of 1,000 tasks without names": (kinds.JOBS, {"tasks": [TASK] * 1000}),
    "a job of 1,000 tasks in a row": (
        kinds.JOBS,
        {"tasks": [{**TASK, "name": f"t{i}", "dependsOn": {"name": [f"t{i - 1}"]} if i else {}} for i in range(1000)]},
    ),
    "a job of 140 tasks in a row": (
        kinds.JOBS,
        {"tasks": [{**TASK, "name": f"t{i}", "dependsOn": {"name": [f"t{i - 1}"]} if i else {}} for i in range(140)]},
    ),
    "a job of 200 tasks with long names": (kinds.JOBS, {"tasks": [{**TASK, "name": f"{i:063}"} for i in range(200)]}),
    "a flow of 200 steps": (kinds.JOB_FLOWS, {"flows": [{"name": f"{i:063}"} for i in range(200)]}),
    "a flow of 500 steps": (kinds.JOB_FLOWS, {"flows": [{"name": f"s{i}"} for i in range(500)]}),
}


@pytest.mark.parametrize("name", LARGE)
async def test_no_policy_refuses_an_object_for_its_size(governed: Client, name: str) -> None:
    # An expression that costs more than the API server allows would be a refusal.
    kind, spec = LARGE[name]
    assert await _refusal(governed, kind, _named(kind, "large") | {"spec": spec}) == ""


async def test_no_broken_manifest_breaks_a_policy(governed: Client) -> None:
    # Policies see objects before the schema is looked at; they leave what they cannot read to it.
    broken = [
        (BY_KIND[case.broken(topic.manifest)["kind"]], case.broken(topic.manifest))
        for topic in topics()
        if topic.operation == "create" and topic.name in {*FILLED, "job-templates"}
        for case in topic.cases
    ]
    answers = await asyncio.gather(*(_refusal(governed, kind, obj) for kind, obj in broken))
    assert [text for text in answers if "mutation-policy" in text] == []
    assert len(answers) > 100


async def _refusal(client: Client, kind: Kind, obj: JsonObject) -> str:
    try:
        await _filled(client, kind, obj)
    except ApiError as error:
        return error.message
    return ""


async def _same(
    client: Client,
    kind: Kind,
    obj: JsonObject,
    default: Callable[[JsonObject, Context], JsonObject],
    namespace: str = NAMED,
) -> None:
    """The server's answer is the webhook's, and leaves the webhook nothing to add."""
    settings = Settings(scheduler_names=tuple(SCHEDULERS))
    context = Context(Operation.CREATE, "", namespace, settings, KnownCluster(namespaces=NAMESPACES))
    obj = orjson.loads(orjson.dumps(obj))  # Tasks of the tables are shared, those of clients are not.
    got = await _filled(client, kind, obj, namespace)
    assert default(got, context) == got
    # Defaults of the schema are there before policies and webhooks look, so they are taken from the answer.
    before = {**obj, "spec": {"queue": "default", **obj.get("spec", {})}} if kind == kinds.POD_GROUPS else obj
    want = default(before, context)
    assert _within(want, got), f"want {want}\ngot {got}"


def _within(want: object, got: object) -> bool:
    """Whether ``got`` says everything that ``want`` says."""
    match want, got:
        case dict(), dict():
            return all(key in got and _within(item, got[key]) for key, item in want.items())
        case list(), list():
            return len(want) == len(got) and all(_within(*pair) for pair in zip(want, got, strict=True))
    return want == got
