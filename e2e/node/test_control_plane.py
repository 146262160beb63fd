"""The installed control plane: Available, shut in as the chart promises, and reached through its Services."""

from __future__ import annotations

import json

import pytest

from e2e.cluster import COMPLETE, Cluster
from e2e.node.kubectl import Kubectl
from e2e.node.workloads import Workloads
from e2e.realnode.releasing import Helm
from stromboli.api.kinds import DEPLOYMENTS, JOBS
from stromboli.kube.errors import BadRequest

DEPLOYED = ("admission", "controllers", "scheduler")
STATUS = "import json, os; print(json.dumps(dict(line.split(':', 1) for line in open('/proc/1/status'))))"
WRITE = "open('/usr/written', 'w')"


def in_python(kubectl: Kubectl, helm: Helm, component: str) -> tuple[str, ...]:
    """The arguments of kubectl that run a line of Python in a component's container."""
    namespace = helm.release.namespace
    return ("exec", f"--namespace={namespace}", f"deployment/{helm.release.name}-{component}", "--", "python3", "-c")


@pytest.mark.parametrize("component", DEPLOYED)
async def test_a_process_is_available_as_nobody_in_particular(
    cluster: Cluster, helm: Helm, kubectl: Kubectl, component: str
) -> None:
    name, namespace = f"{helm.release.name}-{component}", helm.release.namespace
    deployment = await cluster.client.get(DEPLOYMENTS, name, namespace)
    assert deployment["status"]["availableReplicas"] == deployment["spec"]["replicas"] == 1

    enter = in_python(kubectl, helm, component)
    status = {key: value.split() for key, value in json.loads(await kubectl(*enter, STATUS)).items()}
    assert set(status["Uid"]) == {"1000"}
    assert status["CapEff"] == status["CapBnd"] == ["0000000000000000"]
    assert status["NoNewPrivs"] == ["1"]
    assert status["Seccomp"] == ["2"], "a filter"
    said = await kubectl(*enter, f"try:\n {WRITE}\nexcept OSError as error:\n print(error.strerror)")
    assert said == "Read-only file system\n"


async def test_a_refusal_arrives_through_the_service(cluster: Cluster, workloads: Workloads) -> None:
    with pytest.raises(BadRequest) as refused:
        await cluster.create(JOBS, workloads.job("gang", replicas=2, min_available=3))
    assert 'admission webhook "validatejob.volcano.sh" denied the request' in str(refused.value)
    assert await cluster.pods() == []


async def test_defaults_arrive_through_the_service(cluster: Cluster, workloads: Workloads) -> None:
    job = workloads.job("gang")
    del job["spec"]["queue"], job["spec"]["minAvailable"]
    created = await cluster.create(JOBS, job)
    assert created["spec"]["queue"] == "default"
    assert created["spec"]["minAvailable"] == 2


async def test_metrics_are_scraped_by_the_services_names(cluster: Cluster, helm: Helm, workloads: Workloads) -> None:
    """A job's container is the scraper: name, virtual address and endpoint must all be right."""
    ports = {"controllers": 8081, "scheduler": 8080, "admission": 8082}
    where = f"service.{helm.release.namespace}"
    scrapes = [
        f"wget -q -O - http://{helm.release.name}-{name}-{where}:{port}/metrics | grep '^# HELP volcano_'"
        for name, port in ports.items()
    ]
    job = workloads.job("scrape", replicas=1, command=" && ".join(scrapes), task_policies=[COMPLETE])
    await cluster.create(JOBS, job)
    await cluster.phase_is("scrape", "Completed")
