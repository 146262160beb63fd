"""What is broken does not get in, and whoever sent it learns what is wrong: the corpus in ``e2e/corpus``.

Everything is a dry run, so that hundreds of manifests take seconds; dry runs are judged like the real thing.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from e2e.cluster import Cluster, Json, eventually, fresh_namespace, vcjob
from e2e.corpus import Case, Topic, topics, world
from stromboli.api.kinds import JOBS, NAMESPACES, QUEUES
from stromboli.kube.client import Client
from stromboli.kube.errors import ApiError, BadRequest, Conflict

TOPICS = {topic.name: topic for topic in topics()}
CREATED = [name for name, topic in TOPICS.items() if topic.operation == "create"]
UPDATED = [name for name, topic in TOPICS.items() if topic.operation == "update"]
CLOSED = "refusals-closed"
ATTEMPTS = 5
AT_ONCE = 8
KUBECTL = shutil.which("kubectl")
DENIED = "admission webhook "


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def judged(client: Client) -> AsyncIterator[Cluster]:
    """A cluster with the queues that the corpus refers to, all of them known to the admission server."""
    cluster = Cluster(client, f"refusals-{os.getpid() % 10000}")
    await fresh_namespace(client, cluster.namespace)
    queues = list(world())
    for queue in queues:
        await eventually(partial(_created, cluster, queue), bool, what=f"{queue['metadata']['name']} created")
    await cluster.queue_is(CLOSED, "Open")
    await cluster.command("CloseQueue", QUEUES, CLOSED)
    await eventually(lambda: _answer_for(cluster, CLOSED), lambda seen: "`Closed`" in seen, what="a closed queue known")
    for queue in queues:
        name = queue["metadata"]["name"]
        await eventually(partial(_answer_for, cluster, name), _knows_a_state, what=f"{name} open")
    for name in UPDATED:
        await cluster.create(TOPICS[name].kind, TOPICS[name].manifest)
    yield cluster
    await client.delete(NAMESPACES, cluster.namespace)
    for queue in [TOPICS["queue-changes"].manifest, *reversed(queues)]:
        name = queue["metadata"]["name"]
        await eventually(partial(_deleted, cluster, name), bool, what=f"{name} deleted")


async def _created(cluster: Cluster, queue: Json) -> bool:
    """Whether the queue could be created; its parent must have come to the admission server's ears before."""
    try:
        await cluster.create(QUEUES, queue)
    except BadRequest:
        return False
    return True


async def _deleted(cluster: Cluster, name: str) -> bool:
    try:
        await cluster.delete(QUEUES, name)
    except BadRequest:
        return False
    return True


async def _answer_for(cluster: Cluster, queue: str) -> str:
    """What a Job for the queue is told, nothing if it is accepted."""
    try:
        await cluster.client.create(JOBS, vcjob("probe", queue=queue), cluster.namespace, dry_run=True)
    except ApiError as error:
        return error.message
    return ""


def _knows_a_state(answer: str) -> bool:
    return "not found" not in answer and "status is ``" not in answer


async def _told(cluster: Cluster, topic: Topic, case: Case) -> Json:
    """What the client is told about one broken manifest: message, and fields in the order of their causes."""
    try:
        await _send(cluster, topic, case)
    except ApiError as error:
        fields = [str(cause.get("field", "")) for cause in error.causes]
        return {"message": error.message, **({"fields": fields} if fields else {})}
    return {"message": "accepted"}


def _in_any_order(told: Json) -> Json:
    """What is told, with lists of the API server's own faults sorted: it finds them in no certain order."""
    head, several, faults = told["message"].partition(" is invalid: [")
    if not several:
        return told
    return {"message": [head, *sorted(faults.removesuffix("]").split(", "))], "fields": sorted(told["fields"])}


async def _send(cluster: Cluster, topic: Topic, case: Case) -> None:
    client, kind = cluster.client, topic.kind
    namespace = cluster.namespace if kind.namespaced else None
    name = case.stored or topic.manifest["metadata"]["name"]
    match case.operation:
        case "create":
            await client.create(kind, case.broken(topic.manifest), namespace, dry_run=True)
        case "update":
            await _put(cluster, topic, case, name)
        case _:
            await client.request("DELETE", kind.path(namespace, name), query={"dryRun": "All"})


async def _put(cluster: Cluster, topic: Topic, case: Case, name: str) -> None:
    """Put the changed object over the stored one; controllers write its status meanwhile."""
    for attempt in range(1, ATTEMPTS + 1):
        stored = await cluster.client.get(topic.kind, name, cluster.namespace if topic.kind.namespaced else None)
        try:
            await cluster.client.update(topic.kind, case.broken(stored), dry_run=True)
        except Conflict:
            if attempt == ATTEMPTS:
                raise
        else:
            return


@pytest.mark.parametrize("name", TOPICS)
async def test_every_broken_manifest_is_refused_with_message_and_fields(judged: Cluster, name: str) -> None:
    topic, slots = TOPICS[name], asyncio.Semaphore(AT_ONCE)

    async def told(case: Case) -> Json:
        async with slots:
            return await _told(judged, topic, case)

    seen = dict(zip((case.name for case in topic.cases), await asyncio.gather(*map(told, topic.cases)), strict=True))
    if os.environ.get("E2E_RECORD") == "1":
        topic.record(seen)
    assert [case for case, told in seen.items() if told["message"] == "accepted"] == []
    assert {case: _in_any_order(told) for case, told in seen.items()} == {
        case: _in_any_order(told) for case, told in topic.wanted().items()
    }


@pytest.mark.parametrize("name", TOPICS)
async def test_what_they_were_made_from_is_accepted(judged: Cluster, name: str) -> None:
    topic = TOPICS[name]
    assert await _told(judged, topic, Case("nothing broken", operation=topic.operation)) == {"message": "accepted"}


@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not on PATH")
@pytest.mark.parametrize("name", CREATED)
async def test_kubectl_shows_the_same_messages(judged: Cluster, name: str, kubeconfig: Path, tmp_path: Path) -> None:
    topic, wanted = TOPICS[name], TOPICS[name].wanted()
    denied = [case for case in topic.cases if wanted[case.name]["message"].startswith(DENIED)]
    documents = yaml.safe_dump_all(case.broken(topic.manifest) for case in denied)
    code, shown = await _kubectl_create(documents, kubeconfig, judged.namespace, tmp_path)
    assert code == 1
    assert [case.name for case in denied if wanted[case.name]["message"] not in shown] == []


async def _kubectl_create(documents: str, kubeconfig: Path, namespace: str, cache: Path) -> tuple[int, str]:
    """Exit code and standard error of ``kubectl create --dry-run=server`` with these documents.

    Without ``--validate=false`` the server would tell of unknown fields first, and of nothing else.
    """
    assert KUBECTL is not None
    process = await asyncio.create_subprocess_exec(
        KUBECTL, f"--kubeconfig={kubeconfig}", f"--namespace={namespace}", f"--cache-dir={cache}",
        "create", "--dry-run=server", "--validate=false", "-f", "-",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    _, shown = await asyncio.wait_for(process.communicate(documents.encode()), 60)
    return process.returncode or 0, shown.decode()


def test_the_corpus_breaks_every_kind_in_many_ways() -> None:
    assert sum(len(topic.cases) for topic in TOPICS.values()) >= 150
    assert {topic.kind.kind for topic in TOPICS.values()} == {
        "Job", "CronJob", "Queue", "PodGroup", "JobFlow", "HyperNode", "Pod",
    }  # fmt: skip
