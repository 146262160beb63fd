"""Binding, eviction, logs and tokens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from stromboli.api import kinds
from stromboli.localcluster.auth.tokens import TokenSigner
from stromboli.localcluster.extending import SYSTEM, Answer, Handler, SubresourceRequest
from stromboli.localcluster.nodes.lifecycles import PREFIX, Settings
from stromboli.localcluster.statuses import StatusError
from stromboli.localcluster.storage import Object
from stromboli.localcluster.subresources.binding import Bindings, bind
from stromboli.localcluster.subresources.eviction import VIOLATED, Evictions
from stromboli.localcluster.subresources.logs import Logs
from stromboli.localcluster.subresources.tokens import TokenRequests
from tests.localcluster.sim.simulation import Simulation, phases, pod, simulation


async def ask(
    handler: Handler,
    name: str,
    body: Object | None = None,
    query: Mapping[str, str] | None = None,
    dry_run: bool = False,
) -> Answer:
    request = SubresourceRequest(
        "create", kinds.PODS, "default", name, "", body, query or {}, SYSTEM, dry_run=dry_run
    )  # fmt: skip
    return await handler(request)


async def refused(handler: Handler, name: str, body: Object | None = None, **query: str) -> StatusError:
    with pytest.raises(StatusError) as caught:
        await ask(handler, name, body, query)
    return caught.value


def binding(node: str = "node-0", **metadata: Any) -> Object:
    return {"metadata": metadata, "target": {"apiVersion": "v1", "kind": "Node", "name": node}}


async def test_a_binding_gives_a_node_annotations_and_a_condition() -> None:
    async with simulation() as cluster:
        await cluster.create(pod("p", annotations={"a": "1", "b": "1"}))
        answer = await ask(Bindings(cluster.registry), "p", binding(annotations={"b": "2"}))
        assert answer.code == 201
        assert isinstance(answer.body, dict)
        assert answer.body["status"] == "Success"
        found = cluster.find(kinds.PODS, "p")
        assert found is not None
        assert found["spec"]["nodeName"] == "node-0"
        assert found["metadata"]["annotations"] == {"a": "1", "b": "2"}
        assert ("PodScheduled", "True") in [(one["type"], one["status"]) for one in found["status"]["conditions"]]


async def test_the_bindings_collection_takes_the_name_from_the_body() -> None:
    async with simulation() as cluster:
        await cluster.create(pod("p"))
        await ask(Bindings(cluster.registry), "", binding(name="p"))
        assert (cluster.find(kinds.PODS, "p") or {})["spec"]["nodeName"] == "node-0"


async def test_a_dry_run_binds_nothing() -> None:
    async with simulation() as cluster:
        await cluster.create(pod("p"))
        await ask(Bindings(cluster.registry), "p", binding(), dry_run=True)
        assert "nodeName" not in (cluster.find(kinds.PODS, "p") or {})["spec"]


async def test_bindings_that_are_refused() -> None:
    async with simulation() as cluster:
        handler = Bindings(cluster.registry)
        made = await cluster.create(pod("p"))
        error = await refused(handler, "p", binding(uid="other"))
        assert (error.code, error.reason) == (409, "Conflict")
        assert f"UID in object meta: {made['metadata']['uid']}" in error.message
        assert (await refused(handler, "p", {"target": {}})).message == (
            'Binding "p" is invalid: target.name: Required value'
        )
        assert (
            "target.kind: Unsupported value"
            in (await refused(handler, "p", {"target": {"kind": "Pod", "name": "x"}})).message
        )
        assert (await refused(handler, "nobody", binding())).message == 'pods "nobody" not found'
        assert (await refused(handler, "p", binding(name="q"))).code == 400
        await ask(handler, "p", binding("node-0"))
        assert (await refused(handler, "p", binding("node-1"))).message == (
            'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "node-0"'
        )


async def test_a_pod_that_goes_away_is_not_bound() -> None:
    async with simulation() as cluster:
        made = pod("p")
        made["metadata"]["finalizers"] = ["example.com/held"]
        await cluster.create(made)
        await cluster.registry.delete(kinds.PODS, "default", "p")
        assert "pod p is being deleted" in (await refused(Bindings(cluster.registry), "p", binding())).message


async def running(cluster: Simulation, *names: str, **spec: Any) -> None:
    for name in names:
        await cluster.create(pod(name, **spec))
        await bind(cluster.registry, "default", name, "node-0")
    await cluster.until(lambda: all(phases(cluster.all(kinds.PODS)).get(name) == "Running" for name in names))


async def budget(cluster: Simulation, name: str = "b", **spec: Any) -> None:
    body = {"selector": {"matchLabels": {"app": "web"}}, **spec}
    await cluster.create(
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": body}
    )


async def test_evictions_stop_at_the_budget() -> None:
    async with simulation(nodes=1) as cluster:
        await budget(cluster, minAvailable=2)
        await running(cluster, "a", "b", "c", labels={"app": "web"}, annotations={PREFIX + "stop-seconds": "5"})
        handler = Evictions(cluster.registry)
        assert (await ask(handler, "a", {})).code == 201
        error = await refused(handler, "b", {})
        assert (error.code, error.reason, error.message) == (429, "TooManyRequests", VIOLATED)
        assert error.details["causes"] == [
            {
                "reason": "DisruptionBudget",
                "message": "The disruption budget b needs 2 healthy pods and has 2 currently",
            }
        ]
        assert (cluster.find(kinds.PODS, "a") or {})["metadata"]["deletionTimestamp"]


async def test_evictions_that_no_budget_holds_back() -> None:
    async with simulation(nodes=1) as cluster:
        await budget(cluster, minAvailable="100%")
        await running(cluster, "free")
        await cluster.create(pod("pending", labels={"app": "web"}))
        for name in ("free", "pending"):
            await ask(Evictions(cluster.registry), name, {"deleteOptions": {"gracePeriodSeconds": 0}})
        await cluster.until(lambda: not cluster.all(kinds.PODS))


async def test_two_budgets_are_too_many() -> None:
    async with simulation(nodes=1) as cluster:
        await budget(cluster, "a", minAvailable=0)
        await budget(cluster, "b", minAvailable=0)
        await running(cluster, "p", labels={"app": "web"})
        error = await refused(Evictions(cluster.registry), "p", {})
        assert error.code == 500
        assert "This pod has more than one PodDisruptionBudget" in error.message


async def test_an_eviction_of_another_pod_of_that_name() -> None:
    async with simulation() as cluster:
        await cluster.create(pod("p"))
        body = {"deleteOptions": {"preconditions": {"uid": "other"}}}
        assert (await refused(Evictions(cluster.registry), "p", body)).code == 409
        assert (await refused(Evictions(cluster.registry), "nobody", {})).code == 404


async def text(answer: Answer) -> str:
    assert isinstance(answer.body, AsyncIterator)
    return b"".join([part async for part in answer.body]).decode()


async def test_logs_show_what_the_command_prints() -> None:
    async with simulation(nodes=1) as cluster:
        script = "echo one; echo two; echo three; sleep 3600"
        await running(cluster, "p", command=["sh", "-c", script], restartPolicy="Never")
        handler = Logs(cluster.registry)
        assert await text(await ask(handler, "p")) == "one\ntwo\nthree\n"
        assert await text(await ask(handler, "p", query={"tailLines": "1"})) == "three\n"
        assert await text(await ask(handler, "p", query={"tailLines": "0"})) == ""
        assert await text(await ask(handler, "p", query={"limitBytes": "5"})) == "one\nt"
        stamped = await text(await ask(handler, "p", query={"timestamps": "true", "tailLines": "1"}))
        assert stamped.endswith("Z three\n")


async def test_following_ends_with_the_container() -> None:
    async with simulation(nodes=1, pods=Settings(run_seconds=0.3)) as cluster:
        await running(cluster, "p", restartPolicy="Never")
        async with asyncio.timeout(10):
            shown = await text(await ask(Logs(cluster.registry), "p", query={"follow": "true"}))
        assert shown == "simulated container main of pod default/p on node node-0\n"
        assert phases(cluster.all(kinds.PODS)) == {"p": "Succeeded"}
        ended = await text(await ask(Logs(cluster.registry), "p"))
        assert ended.endswith("simulated container main ended with exit code 0\n")


async def test_logs_that_are_refused() -> None:
    async with simulation(nodes=1) as cluster:
        handler = Logs(cluster.registry)
        two = pod("two")
        two["spec"]["containers"].append({"name": "side", "image": "i"})
        await cluster.create(two)
        assert (await refused(handler, "two")).message == (
            "a container name must be specified for pod two, choose one of: [main side]"
        )
        assert (await refused(handler, "two", container="x")).message == "container x is not valid for pod two"
        assert (await refused(handler, "two", container="side")).message == "pod two does not have a host assigned"
        await cluster.create(pod("stuck", annotations={PREFIX + "fail-image-pull": "true"}))
        await bind(cluster.registry, "default", "stuck", "node-0")
        await cluster.until(lambda: (cluster.find(kinds.PODS, "stuck") or {})["status"].get("containerStatuses"))
        assert (await refused(handler, "stuck")).message == (
            'container "main" in pod "stuck" is waiting to start: trying and failing to pull image'
        )
        assert (await refused(handler, "stuck", previous="true")).message == (
            'previous terminated container "main" in pod "stuck" not found'
        )


async def test_the_log_of_the_container_before() -> None:
    async with simulation(nodes=1, pods=Settings(restart_back_off=3600)) as cluster:
        annotations = {PREFIX + "run-seconds": "0", PREFIX + "exit-code": "2"}
        await cluster.create(pod("p", annotations=annotations))
        await bind(cluster.registry, "default", "p", "node-0")
        await cluster.until(lambda: (cluster.find(kinds.PODS, "p") or {})["status"].get("containerStatuses"))
        for query in ({"previous": "true"}, {}):
            assert "ended with exit code 2" in await text(await ask(Logs(cluster.registry), "p", query=query))


async def test_logs_since() -> None:
    async with simulation(nodes=1) as cluster:
        await running(cluster, "p")
        handler = Logs(cluster.registry)
        assert await text(await ask(handler, "p", query={"sinceSeconds": "3600"}))
        assert await text(await ask(handler, "p", query={"sinceTime": "2999-01-01T00:00:00Z"})) == ""


async def test_the_default_container_is_the_annotated_one() -> None:
    async with simulation(nodes=1) as cluster:
        two = pod("two", annotations={"kubectl.kubernetes.io/default-container": "side"})
        two["spec"]["containers"].append({"name": "side", "image": "i", "command": ["echo", "from the side"]})
        await cluster.create(two)
        await bind(cluster.registry, "default", "two", "node-0")
        await cluster.until(lambda: phases(cluster.all(kinds.PODS)) == {"two": "Running"})
        assert await text(await ask(Logs(cluster.registry), "two")) == "from the side\n"


async def test_sick_pods_may_go_when_the_budget_says_so() -> None:
    async with simulation(nodes=1) as cluster:
        await budget(cluster, minAvailable=1, unhealthyPodEvictionPolicy="AlwaysAllow")
        made = await cluster.create(pod("sick", labels={"app": "web"}))
        status = {**made["status"], "phase": "Running"}
        await cluster.registry.update(kinds.PODS, {**made, "status": status}, subresource="status")
        await ask(Evictions(cluster.registry), "sick", {})
        await cluster.until(lambda: not cluster.all(kinds.PODS))


async def test_a_budget_without_healthy_pods_holds_sick_ones() -> None:
    async with simulation(nodes=1) as cluster:
        await budget(cluster, minAvailable=1)
        made = await cluster.create(pod("sick", labels={"app": "web"}))
        status = {**made["status"], "phase": "Running"}
        await cluster.registry.update(kinds.PODS, {**made, "status": status}, subresource="status")
        assert (await refused(Evictions(cluster.registry), "sick", {})).code == 429


SIGNER = TokenSigner(ec.generate_private_key(ec.SECP256R1()))


async def test_a_token_can_be_asked_for() -> None:
    async with simulation() as cluster:
        answer = await ask(TokenRequests(cluster.registry, SIGNER), "default", {"spec": {"expirationSeconds": 700}})
        assert isinstance(answer.body, dict)
        claims = SIGNER.verify(answer.body["status"]["token"])
        assert claims.subject == "system:serviceaccount:default:default"
        assert answer.body["spec"]["expirationSeconds"] == 700


async def test_a_token_can_be_bound_to_a_pod() -> None:
    async with simulation() as cluster:
        made = await cluster.create(pod("p"))
        reference = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": made["metadata"]["uid"]}
        answer = await ask(TokenRequests(cluster.registry, SIGNER), "default", {"spec": {"boundObjectRef": reference}})
        assert isinstance(answer.body, dict)
        bound = SIGNER.verify(answer.body["status"]["token"]).bound
        assert bound is not None
        assert bound.uid == made["metadata"]["uid"]


async def test_a_token_is_not_bound_to_the_wrong_pod() -> None:
    async with simulation() as cluster:
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
        await cluster.create(account)
        await cluster.create(pod("p"))
        reference = {"apiVersion": "v1", "kind": "Pod", "name": "p"}
        handler = TokenRequests(cluster.registry, SIGNER)
        error = await refused(handler, "robot", {"spec": {"boundObjectRef": reference}})
        assert 'to pod running with different serviceaccount "default"' in error.message
        error = await refused(handler, "default", {"spec": {"boundObjectRef": {**reference, "uid": "other"}}})
        assert error.code == 409


TOKENS: dict[str, tuple[str, Object, str]] = {
    "no such account": ("robot", {}, 'serviceaccounts "robot" not found'),
    "too short": (
        "default",
        {"expirationSeconds": 5},
        'TokenRequest.authentication.k8s.io "default" is invalid: spec.expirationSeconds: Invalid value: 5: '
        "may not specify a duration less than 10 minutes",
    ),
    "no number": (
        "default",
        {"expirationSeconds": "long"},
        "spec.expirationSeconds: expected a whole number of seconds",
    ),
    "no such pod": (
        "default",
        {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "x"}},
        'pods "x" not found',
    ),
    "bound to nonsense": (
        "default",
        {"boundObjectRef": {"apiVersion": "v1", "kind": "Service", "name": "x"}},
        'cannot bind token for serviceaccount "default" to object type Service',
    ),
}


@pytest.mark.parametrize(("name", "spec", "want"), TOKENS.values(), ids=TOKENS.keys())
async def test_tokens_that_are_refused(name: str, spec: Object, want: str) -> None:
    async with simulation() as cluster:
        error = await refused(TokenRequests(cluster.registry, SIGNER), name, {"spec": spec})
        assert error.message == want
