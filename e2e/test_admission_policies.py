"""The chart's admission policies (``custom.vap_enable``) beside the webhooks: what they refuse the webhooks refuse too.

Policies are evaluated by a real kube-apiserver only; the embedded one has none.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from functools import partial

import pytest
import pytest_asyncio

from e2e.cluster import Cluster, eventually, fresh_namespace
from e2e.corpus import Case, Topic, topics
from e2e.realcluster import binaries
from e2e.realcluster.rendering import Release, of_kind, render
from stromboli.api.kinds import NAMESPACES, Kind
from stromboli.kube.client import Client
from stromboli.kube.errors import ApiError

pytestmark = pytest.mark.skipif(
    "E2E_KUBECONFIG" not in os.environ, reason="the embedded API server evaluates no admission policies"
)

GROUP = "admissionregistration.k8s.io"
POLICIES = Kind(GROUP, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", False)
BINDINGS = Kind(GROUP, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", False)
TOPICS = {topic.name: topic for topic in topics() if topic.operation == "create"}
REFUSED = "ValidatingAdmissionPolicy"
LEAST = {"jobs": 29, "queues": 13, "podgroups": 4, "pods": 9, "hypernodes": 9, "jobflows": 2}
"""How many cases of each topic the policies refuse by themselves; a rule that never holds would refuse none."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def guarded(client: Client) -> AsyncIterator[Cluster]:
    """A cluster in which the policies act."""
    cluster = Cluster(client, f"policies-{os.getpid() % 10000}")
    await fresh_namespace(client, cluster.namespace)
    found = await binaries.provide(["helm"], print)
    objects = await render(found["helm"], Release(), {"custom": {"vap_enable": True}})
    made = [(kind, item) for kind in (POLICIES, BINDINGS) for item in of_kind(objects, kind.kind)]
    for kind, item in made:
        await client.create(kind, item)
    for name in LEAST:
        await eventually(partial(_refused, cluster, TOPICS[name]), bool, what=f"the policies of {name} act")
    yield cluster
    for kind, item in made:
        await client.delete(kind, item["metadata"]["name"])
    await client.delete(NAMESPACES, cluster.namespace)


async def _answer(cluster: Cluster, topic: Topic, case: Case) -> str:
    namespace = cluster.namespace if topic.kind.namespaced else None
    try:
        await cluster.client.create(topic.kind, case.broken(topic.manifest), namespace, dry_run=True)
    except ApiError as error:
        return error.message
    return ""


async def _refused(cluster: Cluster, topic: Topic) -> list[str]:
    """Cases that a policy refuses."""
    answers = await asyncio.gather(*(_answer(cluster, topic, case) for case in topic.cases))
    return [case.name for case, answer in zip(topic.cases, answers, strict=True) if REFUSED in answer]


@pytest.mark.parametrize("name", TOPICS)
async def test_policies_refuse_nothing_that_is_accepted(guarded: Cluster, name: str) -> None:
    assert await _answer(guarded, TOPICS[name], Case("nothing broken")) == ""


@pytest.mark.parametrize("name", LEAST)
async def test_policies_refuse_what_one_object_shows(guarded: Cluster, name: str) -> None:
    # Every case of the corpus is one that the webhooks or the schema refuse, so nothing else can be counted here.
    assert len(await _refused(guarded, TOPICS[name])) >= LEAST[name]


async def test_a_policy_says_what_is_wrong(guarded: Cluster) -> None:
    (case,) = [case for case in TOPICS["jobs"].cases if case.name == "a task name twice"]
    policy = "ValidatingAdmissionPolicy 'job-validation-policy' with binding 'job-validation-policy-binding'"
    assert f"{policy} denied request: duplicated task name found" in await _answer(guarded, TOPICS["jobs"], case)
