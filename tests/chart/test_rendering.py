"""What the chart renders: goldens over a matrix of values, and rules that every rendering keeps."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from e2e.realcluster.rendering import CHART, container_arguments, helm_says, named, of_kind, render

from stromboli.api.crds import DEFINITIONS, custom_resource_definitions
from stromboli.controllers.options import Options as ControllersOptions
from stromboli.dashboard.options import Options as DashboardOptions
from stromboli.kube.json import JsonObject
from stromboli.process import flags
from stromboli.scheduler.core.policy_file import parse
from stromboli.scheduler.options import Options as SchedulerOptions
from stromboli.scheduler.registering import load
from stromboli.webhooks import registration
from stromboli.webhooks.endpoints import ENDPOINTS
from stromboli.webhooks.options import Options as WebhooksOptions
from tests.chart import matrix
from tests.chart.conftest import Render

ALL_PATHS = ",".join(endpoint.path for endpoint in ENDPOINTS)
COMPONENT = "app.kubernetes.io/component"


def processes(objects: list[JsonObject]) -> list[JsonObject]:
    """Deployments of the system itself; add-ons are looked at elsewhere."""
    components = ("controller", "scheduler", "admission")
    return [item for item in of_kind(objects, "Deployment") if item["metadata"]["labels"][COMPONENT] in components]


async def test_the_chart_passes_lint(helm: Path) -> None:
    assert "0 chart(s) failed" in await helm_says(helm, ["lint", "--strict", str(CHART)])


@pytest.mark.parametrize("name", matrix.MATRIX)
async def test_a_rendering_is_the_golden_one(helm: Path, name: str) -> None:
    want = (matrix.GOLDENS / f"{name}.yaml").read_text()
    got = await matrix.golden(helm, name)
    assert got == want, "if this change is meant: python -m tests.chart.matrix"


def test_every_golden_belongs_to_the_matrix() -> None:
    assert {path.stem for path in matrix.GOLDENS.glob("*.yaml")} == set(matrix.MATRIX)


@pytest.mark.parametrize("name", matrix.MATRIX)
async def test_every_object_is_named_once_and_says_whose_it_is(rendered: Render, name: str) -> None:
    objects = await rendered(matrix.MATRIX[name])
    identities = [(item["kind"], item["metadata"]["name"]) for item in objects]
    assert len(set(identities)) == len(identities)
    assert all(item["metadata"]["labels"]["app.kubernetes.io/instance"] == "volcano" for item in objects)


@pytest.mark.parametrize("name", matrix.MATRIX)
async def test_containers_are_not_root_cannot_write_are_probed_and_ask_for_resources(
    rendered: Render, name: str
) -> None:
    for deployment in processes(await rendered(matrix.MATRIX[name])):
        pod = deployment["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        security = container["securityContext"]
        assert security["runAsNonRoot"] is True
        assert security["readOnlyRootFilesystem"] is True
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["resources"]["requests"]
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            assert container[probe]["httpGet"]["port"] == "health"
        assert {"name": "tmp", "mountPath": "/tmp"} in container["volumeMounts"]


@pytest.mark.parametrize("name", matrix.MATRIX)
async def test_the_processes_take_the_arguments_that_the_chart_gives_them(rendered: Render, name: str) -> None:
    for deployment in processes(await rendered(matrix.MATRIX[name])):
        arguments = container_arguments(deployment)
        match deployment["metadata"]["labels"][COMPONENT]:
            case "controller":
                flags.parse(ControllersOptions, arguments, program="controllers").check()
            case "scheduler":
                flags.parse(SchedulerOptions, arguments, program="scheduler").check()
            case "admission":
                flags.parse(WebhooksOptions, arguments, program="webhooks").check()
            case "dashboard":
                flags.parse(DashboardOptions, arguments, program="dashboard").check()
            case other:
                pytest.fail(f"a Deployment of an unknown component: {other}")


async def test_webhook_configurations_are_those_that_the_admission_server_would_make(rendered: Render) -> None:
    objects = await rendered(enabled_admissions=ALL_PATHS)
    address = registration.Address(namespace="volcano-system", service="volcano-admission-service")
    for endpoint in ENDPOINTS:
        made = registration.configuration(
            endpoint, address.client_config(endpoint.path, "-"), ["volcano-system", "kube-system"], ["volcano"]
        )
        want = {**made["webhooks"][0], "clientConfig": {"service": made["webhooks"][0]["clientConfig"]["service"]}}
        assert named(objects, made["kind"], endpoint.configuration)["webhooks"] == [want]


async def test_roles_grant_nothing_with_a_star(rendered: Render) -> None:
    for name in matrix.MATRIX:
        for role in of_kind(await rendered(matrix.MATRIX[name]), "ClusterRole", "Role"):
            for rule in role["rules"]:
                words = [word for listed in rule.values() for word in listed]
                assert not [word for word in words if "*" in word], role["metadata"]["name"]


@pytest.mark.parametrize("gate", [True, False])
async def test_the_scheduler_may_change_pods_only_to_remove_gates(rendered: Render, gate: bool) -> None:
    objects = await rendered(
        scheduler_feature_gates=f"CSIStorage=true,SchedulingGatesQueueAdmission={str(gate).lower()}"
    )
    rules = named(objects, "ClusterRole", "volcano-scheduler")["rules"]
    verbs = {verb for rule in rules if rule["resources"] == ["pods"] for verb in rule["verbs"]}
    assert verbs == {"get", "list", "watch", "delete", *(["patch"] if gate else [])}


async def test_the_admission_server_may_change_exactly_the_configurations_of_its_paths(rendered: Render) -> None:
    objects = await rendered()
    kinds = {
        "mutatingwebhookconfigurations": "MutatingWebhookConfiguration",
        "validatingwebhookconfigurations": "ValidatingWebhookConfiguration",
    }
    rules = named(objects, "ClusterRole", "volcano-admission")["rules"]
    for resource, kind in kinds.items():
        (rule,) = [rule for rule in rules if rule["resources"] == [resource]]
        assert sorted(rule["resourceNames"]) == sorted(item["metadata"]["name"] for item in of_kind(objects, kind))


@pytest.mark.parametrize(
    ("custom", "want_elects", "want_strategy"),
    [
        ({}, "false", {"type": "Recreate"}),
        ({"leader_elect_enable": True}, "true", None),
        ({"scheduler_replicas": 2, "controller_replicas": 2}, "true", None),
    ],
    ids=["one replica", "one replica that elects", "two replicas always elect"],
)
async def test_two_leaders_never_work_at_once(
    rendered: Render, custom: JsonObject, want_elects: str, want_strategy: JsonObject | None
) -> None:
    objects = await rendered(**custom)
    for name in ("volcano-scheduler", "volcano-controllers"):
        deployment = named(objects, "Deployment", name)
        assert f"--leader-elect={want_elects}" in container_arguments(deployment)
        assert deployment["spec"].get("strategy") == want_strategy


async def test_the_scheduler_reads_the_policy_of_its_config_map(rendered: Render) -> None:
    objects = await rendered()
    config = named(objects, "ConfigMap", "volcano-scheduler-configmap")["data"]["volcano-scheduler.conf"]
    assert yaml.safe_load(config)["actions"] == "enqueue, allocate, backfill"
    (pod,) = [named(objects, "Deployment", "volcano-scheduler")["spec"]["template"]["spec"]]
    assert {"name": "scheduler-config", "configMap": {"name": "volcano-scheduler-configmap"}} in pod["volumes"]
    # A directory mount is what makes changes of the ConfigMap arrive; subPath mounts are never updated.
    (mount,) = [item for item in pod["containers"][0]["volumeMounts"] if item["name"] == "scheduler-config"]
    assert mount == {"name": "scheduler-config", "mountPath": "/volcano.scheduler", "readOnly": True}


@pytest.mark.parametrize("override", ["a: 1\nb: [2]\n", {"a": 1, "b": [2]}], ids=["text", "map"])
async def test_the_controllers_configuration_may_be_text_or_a_map(rendered: Render, override: object) -> None:
    objects = await rendered(controller_config_override=override)
    data = named(objects, "ConfigMap", "volcano-controller-configmap")["data"]["volcano-controller.conf"]
    assert yaml.safe_load(data) == {"a": 1, "b": [2]}


async def test_rules_for_queues_are_values(rendered: Render) -> None:
    said = {
        "admission_max_queue_depth": 7,
        "admission_queue_allocated_pods_check_enable": True,
        "admission_root_queue_protection_enable": False,
    }
    defaults, options = [
        flags.parse(WebhooksOptions, container_arguments(deployment), program="webhooks")
        for objects in (await rendered(), await rendered(**said))
        for deployment in [named(objects, "Deployment", "volcano-admission")]
    ]
    own = WebhooksOptions()
    assert (defaults.max_queue_depth, defaults.enable_queue_allocated_pods_check) == (
        own.max_queue_depth,
        own.enable_queue_allocated_pods_check,
    )
    assert defaults.enable_root_queue_protection == own.enable_root_queue_protection
    assert options.max_queue_depth == 7
    assert options.enable_queue_allocated_pods_check
    assert not options.enable_root_queue_protection


async def test_definitions_come_as_they_were_generated_and_helm_never_deletes_them(helm: Path) -> None:
    found = of_kind(await render(helm, matrix.RELEASE, {}), "CustomResourceDefinition")
    assert {crd["metadata"]["name"]: crd for crd in found} == {
        definition.resource.KIND.resource: crd
        for definition, crd in zip(DEFINITIONS, custom_resource_definitions(), strict=True)
    }
    for crd in found:
        assert crd["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


@pytest.mark.parametrize("file", ["config/volcano-scheduler.conf", "config/volcano-scheduler-ci.conf"])
async def test_the_scheduler_takes_every_policy_of_the_chart(rendered: Render, file: str) -> None:
    objects = await rendered({"basic": {"scheduler_config_file": file}})
    text = named(objects, "ConfigMap", "volcano-scheduler-configmap")["data"]["volcano-scheduler.conf"]
    parse(text, load().known)
