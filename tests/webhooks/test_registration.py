from __future__ import annotations

import base64
from typing import Any

import pytest

from stromboli.api import kinds
from stromboli.kube.errors import ApiError
from stromboli.testing.apiserver import FakeApiServer
from stromboli.webhooks.endpoints import BY_PATH, ENDPOINTS, Endpoint
from stromboli.webhooks.registration import Address, NotRegistered, Registrar, configuration, configuration_kind

SERVICE = Address(namespace="system", service="admission")
URL = Address(url="https://127.0.0.1:8443/")
JOBS = BY_PATH["/jobs/validate"]


def bundle_of(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_a_service_is_called_on_its_port_and_path() -> None:
    assert SERVICE.client_config("/jobs/validate", "CA") == {
        "service": {"namespace": "system", "name": "admission", "path": "/jobs/validate", "port": 443},
        "caBundle": bundle_of("CA"),
    }


def test_a_url_is_called_as_it_is() -> None:
    assert URL.client_config("/jobs/validate", "CA")["url"] == "https://127.0.0.1:8443/jobs/validate"


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.path)
def test_the_objects_are_those_of_the_chart(endpoint: Endpoint) -> None:
    obj = configuration(endpoint, {"url": "x"}, ["system", "kube-system"])
    (webhook,) = obj["webhooks"]
    (rule,) = webhook["rules"]
    kind = endpoint.kind
    mutating = endpoint.path.endswith("/mutate")
    assert obj["kind"] == ("MutatingWebhookConfiguration" if mutating else "ValidatingWebhookConfiguration")
    assert obj["metadata"]["name"] == "volcano-admission-service" + endpoint.path.replace("/", "-")
    assert (rule["apiGroups"], rule["apiVersions"], rule["resources"]) == ([kind.group], [kind.version], [kind.plural])
    assert (webhook["failurePolicy"], webhook["matchPolicy"], webhook["timeoutSeconds"]) == ("Fail", "Equivalent", 10)
    assert webhook.get("reinvocationPolicy") == ("Never" if mutating else None)
    plain = kind.plural == "hypernodes"
    assert webhook["sideEffects"] == ("None" if plain else "NoneOnDryRun")
    assert rule.get("scope") == (None if plain else "*")
    selector = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["system", "kube-system"]}
    assert webhook.get("namespaceSelector") == (None if plain else {"matchExpressions": [selector]})


NAMES = {
    "/jobs/mutate": "mutatejob.volcano.sh",
    "/jobs/validate": "validatejob.volcano.sh",
    "/podgroups/mutate": "mutatepodgroup.volcano.sh",
    "/podgroups/validate": "validatepodgroup.volcano.sh",
    "/queues/mutate": "mutatequeue.volcano.sh",
    "/queues/validate": "validatequeue.volcano.sh",
    "/pods/mutate": "mutatepod.volcano.sh",
    "/pods/validate": "validatepod.volcano.sh",
    "/jobflows/validate": "validatejob.volcano.sh",
    "/cronjobs/validate": "validatecronjob.volcano.sh",
    "/hypernodes/validate": "validatehypernodes.volcano.sh",
}


def test_names_that_clients_read_in_refusals() -> None:
    assert {endpoint.path: endpoint.webhook for endpoint in ENDPOINTS} == NAMES


def test_p38_pods_of_other_schedulers_are_not_even_sent() -> None:
    (webhook,) = configuration(BY_PATH["/pods/validate"], {}, [], ["volcano", "mine"])["webhooks"]
    assert webhook["matchConditions"] == [
        {"name": "scheduler", "expression": 'object.spec.schedulerName in ["volcano", "mine"]'}
    ]


async def test_missing_objects_are_created_only_where_they_are_ours() -> None:
    async with FakeApiServer() as server, await server.client() as client:
        with pytest.raises(NotRegistered, match="failed to get validating webhook volcano-admission-service-jobs"):
            await Registrar(client, SERVICE, creates=False).register(JOBS, "CA")
        registrar = Registrar(client, URL, creates=True)
        assert await registrar.register(JOBS, "CA")
        stored = server.get(kinds.VALIDATING_WEBHOOKS, JOBS.configuration)
        assert stored["webhooks"][0]["clientConfig"] == URL.client_config("/jobs/validate", "CA")
        assert not await registrar.register(JOBS, "CA")


async def test_the_authority_goes_into_every_webhook_and_nothing_else_changes() -> None:
    async with FakeApiServer() as server, await server.client() as client:
        theirs: list[dict[str, Any]] = [
            {"name": name, "clientConfig": {"service": {"name": name}}, "extra": 1} for name in ("a", "b")
        ]
        server.put(kinds.VALIDATING_WEBHOOKS, {"metadata": {"name": JOBS.configuration}, "webhooks": theirs})
        registrar = Registrar(client, SERVICE, creates=False)
        assert await registrar.register(JOBS, "CA")
        stored = server.get(kinds.VALIDATING_WEBHOOKS, JOBS.configuration)["webhooks"]
        for webhook in theirs:
            webhook["clientConfig"]["caBundle"] = bundle_of("CA")
        assert stored == theirs
        assert not await registrar.register(JOBS, "CA")
        assert server.count("update") == 1


async def test_a_port_that_changed_since_the_last_start_is_corrected() -> None:
    async with FakeApiServer() as server, await server.client() as client:
        await Registrar(client, Address(url="https://127.0.0.1:1"), creates=True).register(JOBS, "CA")
        await Registrar(client, URL, creates=True).register(JOBS, "CA")
        stored = server.get(kinds.VALIDATING_WEBHOOKS, JOBS.configuration)
        assert stored["webhooks"][0]["clientConfig"]["url"] == "https://127.0.0.1:8443/jobs/validate"


async def test_conflicts_between_replicas_are_tried_again() -> None:
    async with FakeApiServer() as server, await server.client() as client:
        server.put(kinds.VALIDATING_WEBHOOKS, {"metadata": {"name": JOBS.configuration}, "webhooks": [{"name": "a"}]})
        server.faults.fail(409, verb="update", times=3)
        assert await Registrar(client, SERVICE, creates=False).register(JOBS, "CA")
        server.faults.fail(403, verb="get", times=1)
        with pytest.raises(ApiError):
            await Registrar(client, SERVICE, creates=False).register(JOBS, "other CA")


def test_mutating_endpoints_have_mutating_objects() -> None:
    assert configuration_kind(BY_PATH["/jobs/mutate"]) == kinds.MUTATING_WEBHOOKS
    assert configuration_kind(JOBS) == kinds.VALIDATING_WEBHOOKS
