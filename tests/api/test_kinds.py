"""URL paths and names of kinds."""

from __future__ import annotations

import pytest

from stromboli.api import kinds

PATHS: dict[str, str] = {
    kinds.PODS.path(): "/api/v1/pods",
    kinds.PODS.path("ns"): "/api/v1/namespaces/ns/pods",
    kinds.PODS.path("ns", "p"): "/api/v1/namespaces/ns/pods/p",
    kinds.PODS.path("ns", "p", "binding"): "/api/v1/namespaces/ns/pods/p/binding",
    kinds.NODES.path("ignored", "n"): "/api/v1/nodes/n",
    kinds.JOBS.path("ns", "j", "status"): "/apis/batch.volcano.sh/v1alpha1/namespaces/ns/jobs/j/status",
    kinds.QUEUES.path(None, "q"): "/apis/scheduling.volcano.sh/v1beta1/queues/q",
}


@pytest.mark.parametrize("found", PATHS)
def test_path(found: str) -> None:
    assert found == PATHS[found]


def test_kinds_are_told_apart_by_group() -> None:
    assert kinds.JOBS.resource == "jobs.batch.volcano.sh"
    assert kinds.BATCH_JOBS.resource == "jobs.batch"
    assert kinds.PODS.resource == "pods"
    assert (kinds.JOBS.api_version, kinds.PODS.api_version) == ("batch.volcano.sh/v1alpha1", "v1")
    assert kinds.JOBS.list_kind == "JobList"
    assert len({kind.resource for kind in kinds.ALL}) == len(kinds.ALL)


def test_the_system_s_own_kinds() -> None:
    assert {kind.kind for kind in kinds.OWN} == {
        "Job",
        "CronJob",
        "Command",
        "PodGroup",
        "Queue",
        "JobFlow",
        "JobTemplate",
        "HyperNode",
        "Numatopology",
        "NodeShard",
        "ColocationConfiguration",
    }
