"""The fake API server by itself: what clients build on must hold there too."""

from __future__ import annotations

import pytest

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.kube.client import Client, PatchType
from stromboli.kube.errors import AlreadyExists, BadRequest, Conflict, Invalid, NotFound, Unauthorized
from stromboli.testing.apiserver import FakeApiServer
from stromboli.testing.faults import Call
from tests.kube.objects import config_map, pod


async def test_any_kind_is_served(client: Client) -> None:
    gadgets = Kind("example.com", "v3", "gadgets", "Gadget", namespaced=False)
    await client.create(gadgets, {"metadata": {"name": "g"}, "spec": {"size": 1}})
    assert [obj["metadata"]["name"] for obj in await client.list(gadgets)] == ["g"]


async def test_names_are_generated(client: Client) -> None:
    obj = pod("")
    obj["metadata"] = {"generateName": "p-", "namespace": "default"}
    one, other = await client.create(kinds.PODS, obj), await client.create(kinds.PODS, obj)
    assert one["metadata"]["name"].startswith("p-")
    assert one["metadata"]["name"] != other["metadata"]["name"]


async def test_a_name_is_needed_and_given_once(client: Client) -> None:
    with pytest.raises(Invalid, match=r"metadata\.name"):
        await client.create(kinds.PODS, {"metadata": {"namespace": "default"}})
    await client.create(kinds.PODS, pod("a"))
    with pytest.raises(AlreadyExists):
        await client.create(kinds.PODS, pod("a"))


async def test_a_stale_version_is_a_conflict(client: Client) -> None:
    stale = await client.create(kinds.CONFIG_MAPS, config_map("a"))
    await client.patch(kinds.CONFIG_MAPS, "a", {"data": {"x": "1"}}, "default")
    with pytest.raises(Conflict):
        await client.update(kinds.CONFIG_MAPS, {**stale, "data": {"x": "2"}})
    with pytest.raises(Conflict):
        await client.delete(kinds.CONFIG_MAPS, "a", "default", resource_version=stale["metadata"]["resourceVersion"])
    with pytest.raises(Conflict):
        await client.delete(kinds.CONFIG_MAPS, "a", "default", uid="somebody-else")


async def test_the_generation_counts_changes_of_the_spec_only(client: Client) -> None:
    created = await client.create(kinds.PODS, pod("a"))
    labelled = await client.patch(kinds.PODS, "a", {"metadata": {"labels": {"x": "y"}}}, "default")
    stated = await client.patch(kinds.PODS, "a", {"status": {"phase": "Running"}}, "default", subresource="status")
    changed = await client.patch(kinds.PODS, "a", {"spec": {"nodeName": "n"}}, "default")
    generations = [obj["metadata"]["generation"] for obj in (created, labelled, stated, changed)]
    assert generations == [1, 1, 1, 2]


async def test_an_eviction_deletes_the_pod_that_was_meant(client: Client, server: FakeApiServer) -> None:
    uid = server.put(kinds.PODS, pod("a"))["metadata"]["uid"]

    async def evict(uid: str) -> None:
        body = {"metadata": {"name": "a"}, "deleteOptions": {"preconditions": {"uid": uid}}}
        await client.create(kinds.PODS, body, "default", name="a", subresource="eviction")

    with pytest.raises(Conflict):
        await evict("somebody-else")
    await evict(uid)
    assert server.objects(kinds.PODS) == []
    with pytest.raises(NotFound):
        await evict(uid)


async def test_what_makes_no_sense_is_refused(client: Client, server: FakeApiServer) -> None:
    server.put(kinds.PODS, pod("a"))
    with pytest.raises(BadRequest):
        await client.request("POST", kinds.PODS.path("default"), body=b"{")
    with pytest.raises(BadRequest, match="fieldManager"):
        await client.patch(kinds.PODS, "a", pod("a"), "default", type=PatchType.APPLY)
    with pytest.raises(BadRequest, match="does not apply"):
        wrong = [{"op": "remove", "path": "/spec/nothing"}]
        await client.patch(kinds.PODS, "a", wrong, "default", type=PatchType.JSON)
    with pytest.raises(BadRequest):
        await client.list(kinds.PODS, label_selector="a in (")
    for path in ("/nowhere", "/api/v1", "/api/v1/namespaces/default/pods/a/b/c"):
        with pytest.raises(NotFound):
            await client.request("GET", path)
    with pytest.raises(NotFound):
        await client.create(kinds.PODS, {}, "default", name="a", subresource="unheard-of")
    with pytest.raises(NotFound):
        await client.request("HEAD", kinds.PODS.path("default"))


async def test_a_token_may_be_asked_for(client: Client, server: FakeApiServer) -> None:
    server.token = "secret"
    with pytest.raises(Unauthorized):
        await client.list(kinds.PODS)


async def test_requests_are_logged_and_counted(client: Client, server: FakeApiServer) -> None:
    server.put(kinds.PODS, pod("a"))
    await client.get(kinds.PODS, "a", "default")
    await client.patch(kinds.PODS, "a", {"status": {}}, "default", subresource="status")
    await client.list(kinds.NODES)
    assert server.calls == [
        Call("get", "pods", "default", "a"),
        Call("patch", "pods", "default", "a", "status"),
        Call("list", "nodes"),
    ]
    assert (server.count("get"), server.count(kind=kinds.PODS), server.count(name="a")) == (1, 2, 2)


async def test_faults_skip_and_stop_as_ordered(client: Client, server: FakeApiServer) -> None:
    server.put(kinds.PODS, pod("a"))
    fault = server.faults.fail(422, verb="get", kind=kinds.PODS, name="a", skip=1, times=2)
    outcomes = []
    for _ in range(5):
        try:
            outcomes.append((await client.get(kinds.PODS, "a", "default"))["kind"])
        except Invalid:
            outcomes.append("refused")
    assert outcomes == ["Pod", "refused", "refused", "Pod", "Pod"]
    assert fault.hits == 2
    server.faults.fail(422, verb="get")
    server.faults.clear()
    assert await client.get(kinds.PODS, "a", "default")


async def test_putting_replaces_everything_but_who_it_is(server: FakeApiServer) -> None:
    first = server.put(kinds.PODS, {**pod("a", app="web"), "status": {"phase": "Pending"}})
    second = server.put(kinds.PODS, {**pod("a", app="db"), "status": {"phase": "Running"}})
    assert second["metadata"]["uid"] == first["metadata"]["uid"]
    assert (second["metadata"]["labels"], second["status"]) == ({"app": "db"}, {"phase": "Running"})


async def test_objects_handed_out_are_copies(server: FakeApiServer) -> None:
    server.put(kinds.PODS, pod("a"))["spec"]["nodeName"] = "changed"
    server.objects(kinds.PODS)[0]["spec"]["nodeName"] = "changed"
    assert "nodeName" not in server.get(kinds.PODS, "a", "default")["spec"]
