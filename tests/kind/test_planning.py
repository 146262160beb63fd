"""Command lines, the cluster's configuration and which image is loaded."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import pytest
import yaml
from e2e.kind import planning
from e2e.kind.planning import Plan
from e2e.realcluster import binaries
from e2e.realcluster.rendering import render

from images import build
from stromboli.webhooks.endpoints import ENDPOINTS

PLAN = Plan("stromboli-7", Path("/run/seven"), "docker.io/stromboli/stromboli:0.1.0")


def test_the_cluster_is_made_and_taken_away_by_name_and_touches_no_other_kubeconfig() -> None:
    mine = ("--name=stromboli-7", "--kubeconfig=/run/seven/kubeconfig")
    assert PLAN.create == ("kind", "create", "cluster", *mine, "--config=-", "--wait=180s")
    assert PLAN.delete == ("kind", "delete", "cluster", *mine)
    assert PLAN.export_logs == ("kind", "export", "logs", "/run/seven/logs", "--name=stromboli-7")


def test_the_configuration_has_a_control_plane_and_workers() -> None:
    config = yaml.safe_load(PLAN.create_input)
    assert (config["kind"], config["apiVersion"]) == ("Cluster", "kind.x-k8s.io/v1alpha4")
    assert [node["role"] for node in config["nodes"]] == ["control-plane", "worker", "worker", "worker"]


def test_an_archive_is_loaded_as_it_is() -> None:
    first, *workload = PLAN.load(Path("/image.tar"))
    assert first == ("kind", "load", "image-archive", "/image.tar", "--name=stromboli-7")
    assert workload == [
        ("docker", "pull", "busybox:latest"),
        ("kind", "load", "docker-image", "busybox:latest", "--name=stromboli-7"),
    ]


def test_without_an_archive_docker_builds_the_image_under_the_name_that_the_chart_asks_for() -> None:
    first, second, *_ = PLAN.load(None)
    assert first == ("docker", "build", "--tag=docker.io/stromboli/stromboli:0.1.0", str(build.PROJECT))
    assert second == ("kind", "load", "docker-image", PLAN.image, "--name=stromboli-7")


def test_the_suite_is_told_of_the_cluster_and_starts_no_processes() -> None:
    environment = PLAN.environment({"PATH": "/bin", "E2E_KUBECONFIG": "another"})
    assert environment == {"PATH": "/bin", "E2E_KUBECONFIG": "/run/seven/kubeconfig", "E2E_RUNNING": "1"}


async def test_the_chart_takes_the_values_and_registers_every_webhook() -> None:
    helm = binaries.helm()
    if helm is None:
        pytest.skip("helm is neither built nor on PATH: python -m e2e.realcluster --build")
    objects = await render(helm, planning.RELEASE, planning.values(), crds=False)
    names = {item["metadata"]["name"] for item in objects if item["kind"].endswith("WebhookConfiguration")}
    assert names == {endpoint.configuration for endpoint in ENDPOINTS}


@pytest.mark.parametrize(("age", "want"), [(-1, False), (1, True)], ids=["older than a source", "newer than all"])
def test_an_archive_counts_only_if_it_is_newer_than_what_it_was_made_of(tmp_path: Path, age: int, want: bool) -> None:
    source = tmp_path / "src" / "module.py"
    source.parent.mkdir()
    source.touch()
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    image = tmp_path / f"stromboli-0.1.0-{architecture}.tar"
    image.touch()
    foreign = tmp_path / "stromboli-0.1.0-s390.tar"
    foreign.touch()
    now = source.stat().st_mtime
    os.utime(source.parent, (now, now))
    for path in (image, foreign):
        os.utime(path, (now + age, now + age))
    assert planning.archive(tmp_path, [source.parent]) == (image if want else None)
