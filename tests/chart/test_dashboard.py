"""The dashboard in the chart: off unless asked for, reachable by nobody unless said so, and allowed to read only."""

from __future__ import annotations

import pytest
from e2e.realcluster.rendering import container_arguments, named, of_kind

from stromboli.kube.json import JsonObject
from tests.chart.conftest import Render
from tests.dashboard.conftest import BY_NAME


def names(objects: list[JsonObject], kind: str) -> set[str]:
    return {item["metadata"]["name"] for item in of_kind(objects, kind)}


async def test_it_is_off_by_default(rendered: Render) -> None:
    assert not [item for item in await rendered() if "dashboard" in item["metadata"]["name"]]


async def test_without_a_service_only_the_pod_itself_reaches_the_page(rendered: Render) -> None:
    objects = await rendered(dashboard_enable=True, dashboard_metrics_enable=False)
    assert "--listen-address=127.0.0.1:8090" in container_arguments(named(objects, "Deployment", "volcano-dashboard"))
    assert "volcano-dashboard-service" not in names(objects, "Service")


async def test_its_metrics_alone_open_no_way_to_the_page(rendered: Render) -> None:
    objects = await rendered(dashboard_enable=True)
    assert "--listen-address=127.0.0.1:8090" in container_arguments(named(objects, "Deployment", "volcano-dashboard"))
    ports = named(objects, "Service", "volcano-dashboard-service")["spec"]["ports"]
    assert [port["name"] for port in ports] == ["metrics"]


async def test_with_a_service_it_is_a_cluster_ip_and_knows_the_proxys_names(rendered: Render) -> None:
    objects = await rendered(
        dashboard_enable=True, dashboard_service_enable=True, dashboard_allowed_hosts=["a.example", "b.example"]
    )
    arguments = container_arguments(named(objects, "Deployment", "volcano-dashboard"))
    assert "--listen-address=:8090" in arguments
    assert "--allowed-hosts=a.example,b.example" in arguments
    spec = named(objects, "Service", "volcano-dashboard-service")["spec"]
    assert spec.get("type", "ClusterIP") == "ClusterIP"
    assert {"name": "page", "port": 80, "targetPort": "page"} in spec["ports"]


async def test_it_may_list_and_watch_what_it_shows_and_nothing_else(rendered: Render) -> None:
    objects = await rendered(dashboard_enable=True)
    rules = named(objects, "ClusterRole", "volcano-dashboard")["rules"]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"list", "watch"}
    granted = {(group, resource) for rule in rules for group in rule["apiGroups"] for resource in rule["resources"]}
    assert granted == {(kind.group, kind.plural) for kind in BY_NAME.values()}
    assert "volcano-dashboard" not in names(objects, "Role")


@pytest.mark.parametrize("enabled", [True, False])
async def test_the_other_processes_are_as_they_are_without_it(rendered: Render, enabled: bool) -> None:
    with_it = await rendered(dashboard_enable=enabled)
    assert [item for item in with_it if "dashboard" not in item["metadata"]["name"]] == await rendered()
