"""``examples/jobs``: each is accepted and understood, and listed. ``e2e/test_examples.py`` runs them to the end."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from stromboli.api.batch import Job
from stromboli.controllers.job import policies, precedence
from tests.controllers.building import JobBuilder
from tests.controllers.stage import stage
from tests.docs.test_job_lifecycle import admitted

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted((EXAMPLES / "jobs").glob("*.yaml"))


def job_of(name: str) -> dict[str, Any]:
    """The one Job of the file."""
    [job] = [
        one for one in yaml.safe_load_all((EXAMPLES / "jobs" / f"{name}.yaml").read_text()) if one["kind"] == "Job"
    ]
    return dict(job)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_example_is_accepted_and_every_field_and_policy_of_it_does_something(path: Path) -> None:
    job = Job.from_wire(admitted(job_of(path.stem)))
    policies.check(job)
    assert not job.model_extra and not job.spec.model_extra
    assert not any(task.model_extra for task in job.spec.tasks), "a field that nobody reads"
    assert list(precedence.notes(job)) == []


def test_the_readme_has_every_example() -> None:
    listed = re.findall(r"\]\((jobs/[\w.]+)\)", (EXAMPLES / "README.md").read_text())
    assert [EXAMPLES / one for one in listed] and {EXAMPLES / one for one in listed} == set(FILES)


def environment(pod: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one.get("value", "") for one in pod["spec"]["containers"][0].get("env", [])}


async def made(name: str) -> dict[str, dict[str, Any]]:
    """The pods that the job controller makes of an example, by name."""
    job = job_of(name)
    builder = JobBuilder(job["metadata"]["name"])
    builder.wire["spec"] = job["spec"]
    async with stage() as scene:
        scene.submit(builder)
        await scene.admit(job["metadata"]["name"])
        count = sum(task["replicas"] for task in job["spec"]["tasks"])
        await scene.until(lambda: len(scene.pods(job["metadata"]["name"])) == count)
        return dict(scene.pods(job["metadata"]["name"]))


async def test_the_launcher_of_mpi_knows_its_workers_and_all_have_keys() -> None:
    pods = await made("mpi")
    assert environment(pods["mpi-launcher-0"])["MPI_HOST"] == "mpi-worker-0.mpi,mpi-worker-1.mpi"
    for pod in pods.values():
        assert "/root/.ssh" in {mount["mountPath"] for mount in pod["spec"]["containers"][0]["volumeMounts"]}


async def test_the_processes_of_pytorch_know_their_ranks() -> None:
    pods = await made("pytorch")
    assert {name: environment(pod)["RANK"] for name, pod in pods.items()} == {
        "pytorch-master-0": "0",
        "pytorch-worker-0": "1",
        "pytorch-worker-1": "2",
    }
    assert {environment(pod)["WORLD_SIZE"] for pod in pods.values()} == {"3"}


async def test_the_workers_of_tensorflow_know_each_other() -> None:
    pods = await made("tensorflow")
    hosts = ", ".join(f'"tensorflow-worker-{index}.tensorflow:2222"' for index in range(3))
    for index in range(3):
        config = yaml.safe_load(environment(pods[f"tensorflow-worker-{index}"])["TF_CONFIG"])
        assert config == {
            "cluster": {"worker": yaml.safe_load(f"[{hosts}]")},
            "task": {"type": "worker", "index": index},
        }


async def test_head_and_workers_of_ray_are_started_and_the_driver_asks_the_service_of_its_head() -> None:
    pods = await made("ray")
    commands = {name: pod["spec"]["containers"][0]["command"][-1] for name, pod in pods.items()}
    assert commands["squares-head-0"].startswith("ray start --head")
    assert commands["squares-worker-1"].endswith("--address=squares-head-0.squares:6379")
    assert "http://squares-head-svc:8265" in commands["squares-driver-0"]


async def test_the_pods_of_the_array_are_numbered() -> None:
    pods = await made("array")
    assert {name: environment(pod)["VC_TASK_INDEX"] for name, pod in pods.items()} == {
        f"array-item-{index}": str(index) for index in range(8)
    }


def test_the_array_has_a_line_for_every_pod() -> None:
    items, job = yaml.safe_load_all((EXAMPLES / "jobs" / "array.yaml").read_text())
    assert len(items["data"]["items"].split()) == job["spec"]["tasks"][0]["replicas"]
