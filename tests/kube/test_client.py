from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass

import pytest
from prometheus_client import CollectorRegistry

from stromboli.api import kinds
from stromboli.kube import errors
from stromboli.kube.client import Client, PatchType
from stromboli.kube.json import JsonObject
from stromboli.kube.retrying import decide
from stromboli.testing.apiserver import FakeApiServer
from stromboli.testing.clocks import SkippingClock
from stromboli.testing.waiting import eventually
from tests.kube.objects import config_map, pod


async def test_an_object_lives_from_creation_to_deletion(client: Client, server: FakeApiServer) -> None:
    created = await client.create(kinds.CONFIG_MAPS, config_map("a", color="red"))
    assert created["metadata"]["uid"] and created["metadata"]["resourceVersion"]

    created["data"]["color"] = "blue"
    updated = await client.update(kinds.CONFIG_MAPS, created)
    assert (await client.get(kinds.CONFIG_MAPS, "a", "default")) == updated

    patched = await client.patch(kinds.CONFIG_MAPS, "a", {"data": {"size": "L"}}, "default")
    assert patched["data"] == {"color": "blue", "size": "L"}

    await client.delete(kinds.CONFIG_MAPS, "a", "default", uid=created["metadata"]["uid"])
    with pytest.raises(errors.NotFound):
        await client.get(kinds.CONFIG_MAPS, "a", "default")


async def test_the_same_write_again_is_no_new_version(client: Client) -> None:
    first = await client.create(kinds.CONFIG_MAPS, config_map("a", color="red"))
    again = await client.patch(kinds.CONFIG_MAPS, "a", {"data": {"color": "red"}}, "default")
    assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_status_is_written_apart(client: Client) -> None:
    created = await client.create(kinds.PODS, {**pod("p"), "status": {"phase": "Running"}})
    assert "status" not in created
    await client.patch(kinds.PODS, "p", {"status": {"phase": "Running"}}, "default", subresource="status")
    created["metadata"].pop("resourceVersion")
    kept = await client.update(kinds.PODS, {**created, "status": {"phase": "Failed"}})
    assert kept["status"] == {"phase": "Running"}


async def test_a_dry_run_leaves_nothing_behind(client: Client, server: FakeApiServer) -> None:
    await client.create(kinds.PODS, pod("p"), dry_run=True)
    assert server.objects(kinds.PODS) == []


@pytest.mark.parametrize("kind", list(PatchType))
async def test_every_kind_of_patch_arrives_with_its_media_type(client: Client, kind: PatchType) -> None:
    await client.create(kinds.CONFIG_MAPS, config_map("a", color="red"))
    patch: object = {"data": {"color": "blue"}}
    if kind is PatchType.JSON:
        patch = [{"op": "replace", "path": "/data/color", "value": "blue"}]
    patched = await client.patch(kinds.CONFIG_MAPS, "a", patch, "default", type=kind, field_manager="test", force=True)
    assert patched["data"] == {"color": "blue"}


async def test_apply_creates_what_is_not_there(client: Client) -> None:
    applied = await client.patch(
        kinds.CONFIG_MAPS, "new", config_map("new"), "default", type=PatchType.APPLY, field_manager="test"
    )
    assert applied["metadata"]["uid"]


async def test_a_list_follows_its_pages_and_names_its_items_kind(client: Client, server: FakeApiServer) -> None:
    for number in range(7):
        server.put(kinds.PODS, pod(f"p{number}"))
    version = str(server.memory.version)
    pages = [page async for page in client.pages(kinds.PODS, limit=3, resource_version=version)]
    assert [len(page.raw_items) for page in pages] == [3, 3, 1]
    assert [page.remaining for page in pages] == [4, 1, None]
    listed = await client.list(kinds.PODS, "default")
    assert [obj["metadata"]["name"] for obj in listed] == [f"p{number}" for number in range(7)]
    assert {(obj["apiVersion"], obj["kind"]) for obj in listed} == {("v1", "Pod")}


async def test_selectors_select(client: Client, server: FakeApiServer) -> None:
    server.put(kinds.PODS, pod("a", app="web", tier="1"))
    server.put(kinds.PODS, pod("b", app="db"))
    server.put(kinds.PODS, {**pod("c"), "spec": {"nodeName": "n1"}})

    async def names(**selectors: str) -> list[str]:
        return [obj["metadata"]["name"] for obj in await client.list(kinds.PODS, **selectors)]

    assert await names(label_selector="app in (web, db),tier!=1") == ["b"]
    assert await names(label_selector="!app") == ["c"]
    assert await names(label_selector="app=web") == ["a"]
    assert await names(field_selector="spec.nodeName=n1") == ["c"]
    await client.delete_collection(kinds.PODS, "default", label_selector="app")
    assert await names() == ["c"]


async def test_an_expired_continue_token_is_gone(client: Client, server: FakeApiServer) -> None:
    for number in range(4):
        server.put(kinds.PODS, pod(f"p{number}"))
    async with aclosing(client.pages(kinds.PODS, limit=2)) as pages:
        await anext(pages)
        server.expire_versions()
        with pytest.raises(errors.Gone):
            await anext(pages)


async def test_a_binding_is_posted_to_its_pod(client: Client, server: FakeApiServer) -> None:
    server.put(kinds.PODS, pod("p"))
    binding = {"target": {"kind": "Node", "name": "n1"}, "metadata": {"name": "p", "namespace": "default"}}
    await client.create(kinds.PODS, binding, "default", name="p", subresource="binding")
    assert server.get(kinds.PODS, "p", "default")["spec"]["nodeName"] == "n1"
    with pytest.raises(errors.Conflict):
        await client.create(kinds.PODS, binding, "default", name="p", subresource="binding")


async def test_anything_else_goes_through_request(client: Client) -> None:
    assert b"gitVersion" in await client.request("GET", "/version")


async def test_bytes_go_straight_into_what_decode_makes_of_them(client: Client, server: FakeApiServer) -> None:
    server.put(kinds.PODS, pod("p"))
    assert await client.get(kinds.PODS, "p", "default", decode=len) > 50


@dataclass
class Refusal:
    code: int
    reason: str
    want: type[errors.ApiError]


REFUSALS = {
    "bad request": Refusal(400, "BadRequest", errors.BadRequest),
    "not allowed": Refusal(403, "Forbidden", errors.Forbidden),
    "name taken": Refusal(409, "AlreadyExists", errors.AlreadyExists),
    "changed meanwhile": Refusal(409, "Conflict", errors.Conflict),
    "breaks its schema": Refusal(422, "Invalid", errors.Invalid),
    "throttled without a hint": Refusal(429, "TooManyRequests", errors.TooManyRequests),
    "a failing server": Refusal(500, "InternalError", errors.ServerError),
    "a status of its own": Refusal(418, "Teapot", errors.ApiError),
}


@pytest.mark.parametrize("case", REFUSALS.values(), ids=REFUSALS.keys())
async def test_answers_become_errors(client: Client, server: FakeApiServer, case: Refusal) -> None:
    server.faults.fail(case.code, verb="create", reason=case.reason, message="because")
    with pytest.raises(errors.ApiError) as caught:
        await client.create(kinds.PODS, pod("p"))
    assert type(caught.value) is case.want
    assert (caught.value.code, caught.value.reason, caught.value.message) == (case.code, case.reason, "because")
    assert server.count("create") == 1


# -- trying again ----------------------------------------------------------------------------------------------------


@pytest.fixture
async def clock() -> SkippingClock:
    return SkippingClock()


@pytest.fixture
async def patient(server: FakeApiServer, clock: SkippingClock) -> AsyncIterator[Client]:
    """A client whose waiting takes no time."""
    async with await Client.connect(master=server.url, qps=0, clock=clock) as connected:
        yield connected


async def test_a_read_outlives_a_storm_of_500s(patient: Client, server: FakeApiServer, clock: SkippingClock) -> None:
    server.put(kinds.PODS, pod("p"))
    server.faults.fail(500, verb="get", times=3)
    assert (await patient.get(kinds.PODS, "p", "default"))["metadata"]["name"] == "p"
    assert server.count("get") == 4
    for delay, step in zip(clock.slept, (0.1, 0.2, 0.4), strict=True):
        assert step / 2 <= delay <= step


async def test_a_storm_that_does_not_end_is_given_up_after_a_bounded_number_of_requests(
    patient: Client, server: FakeApiServer
) -> None:
    server.faults.fail(500, verb="get", times=None)
    with pytest.raises(errors.ServerError):
        await patient.get(kinds.PODS, "p", "default")
    assert server.count("get") == 6


Write = Callable[[Client], Coroutine[None, None, JsonObject]]

WRITES: dict[str, Write] = {
    "create": lambda client: client.create(kinds.CONFIG_MAPS, config_map("new")),
    "update": lambda client: client.update(kinds.CONFIG_MAPS, config_map("a", color="blue")),
    "patch": lambda client: client.patch(kinds.CONFIG_MAPS, "a", {"data": {"color": "blue"}}, "default"),
    "delete": lambda client: client.delete(kinds.CONFIG_MAPS, "a", "default"),
}


@pytest.mark.parametrize("verb", WRITES)
async def test_a_write_is_not_repeated_after_a_500(client: Client, server: FakeApiServer, verb: str) -> None:
    server.put(kinds.CONFIG_MAPS, config_map("a"))
    server.faults.fail(500, verb=verb)
    with pytest.raises(errors.ServerError):
        await WRITES[verb](client)
    assert server.count(verb) == 1


@pytest.mark.parametrize("verb", ["create", "patch"])
async def test_a_write_whose_answer_was_lost_is_not_sent_twice(
    client: Client, server: FakeApiServer, verb: str
) -> None:
    server.put(kinds.CONFIG_MAPS, config_map("a"))
    cut = server.faults.disconnect(verb=verb, executed=True)
    with pytest.raises(errors.Unreachable) as caught:
        await WRITES[verb](client)
    assert caught.value.sent
    assert cut.hits == 1 and server.count(verb) == 1


@pytest.mark.parametrize("verb", WRITES)
async def test_a_429_is_tried_again_after_the_time_asked_for(
    patient: Client, server: FakeApiServer, clock: SkippingClock, verb: str
) -> None:
    server.put(kinds.CONFIG_MAPS, config_map("a"))
    server.faults.fail(429, verb=verb, retry_after=7)
    await WRITES[verb](patient)
    assert clock.slept == [7]
    assert server.count(verb) == 2


async def test_a_read_waits_as_long_as_a_503_asks_for(
    patient: Client, server: FakeApiServer, clock: SkippingClock
) -> None:
    server.put(kinds.PODS, pod("p"))
    server.faults.fail(503, verb="get", retry_after=3)
    await patient.get(kinds.PODS, "p", "default")
    assert clock.slept == [3]


async def test_a_retry_after_beyond_the_deadline_is_answered_at_once(
    patient: Client, server: FakeApiServer, clock: SkippingClock
) -> None:
    server.faults.fail(429, verb="get", retry_after=3600)
    with pytest.raises(errors.TooManyRequests) as caught:
        await patient.get(kinds.PODS, "p", "default")
    assert caught.value.retry_after == 3600
    assert clock.slept == []


def test_an_eviction_refused_by_a_budget_is_the_callers_to_repeat(client: Client, server: FakeApiServer) -> None:
    status = {"code": 429, "details": {"retryAfterSeconds": 1, "causes": [{"reason": "DisruptionBudget"}]}}
    error = errors.from_status(status)
    assert isinstance(error, errors.TooManyRequests)
    assert decide("POST", error, 1) is None


async def test_a_read_is_repeated_when_the_connection_breaks(client: Client, server: FakeApiServer) -> None:
    server.put(kinds.PODS, pod("p"))
    server.faults.disconnect(verb="get", times=2)
    assert await client.get(kinds.PODS, "p", "default")


async def test_a_write_waits_for_a_server_that_is_not_listening_yet(server: FakeApiServer) -> None:
    port = server.port
    await server.stop()
    async with await server.client() as client, asyncio.TaskGroup() as tasks:
        creation = tasks.create_task(client.create(kinds.PODS, pod("p")))
        await asyncio.sleep(0.05)
        await server.start(port)
        await creation
    assert server.count("create") == 1


async def test_a_slow_answer_ends_at_the_deadline(client: Client, server: FakeApiServer) -> None:
    held = server.faults.hold(verb="list", times=None)
    started = time.monotonic()
    with pytest.raises(errors.Unreachable, match="no answer in time"):
        await client.request("GET", kinds.PODS.path(), timeout=0.3)
    assert time.monotonic() - started < 5
    held.release()


async def test_a_server_that_is_not_there_is_unreachable() -> None:
    async with await Client.connect(master="http://127.0.0.1:1") as client:
        with pytest.raises(errors.Unreachable) as caught:
            await client.request("POST", "/api/v1/pods", body={}, timeout=0.2)
        assert not caught.value.sent


async def test_html_from_a_proxy_is_an_error_with_its_text() -> None:
    error = errors.api_error(502, b"<html>\n<h1>Bad Gateway</h1></html>")
    assert isinstance(error, errors.ServerError)
    assert "Bad Gateway" in error.message


# -- watching --------------------------------------------------------------------------------------------------------


async def test_a_watch_tells_what_happened_since(client: Client, server: FakeApiServer) -> None:
    first = server.put(kinds.PODS, pod("a"))
    seen: list[tuple[str, str]] = []
    async with aclosing(client.watch(kinds.PODS, resource_version=first["metadata"]["resourceVersion"])) as watch:
        server.put(kinds.PODS, pod("b"))
        server.put(kinds.PODS, pod("b", changed="yes"))
        server.remove(kinds.PODS, "a", "default")
        async for event in watch:
            seen.append((event.type, event.metadata.name))
            if len(seen) == 3:
                break
    assert seen == [("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "a")]


async def test_an_object_that_leaves_the_selection_is_deleted_for_the_watch(
    client: Client, server: FakeApiServer
) -> None:
    server.put(kinds.PODS, pod("a", app="web"))
    async with aclosing(client.watch(kinds.PODS, label_selector="app=web")) as watch:
        assert (await anext(watch)).type == "ADDED"
        server.put(kinds.PODS, pod("a", app="db"))
        assert (await anext(watch)).type == "DELETED"


async def test_a_watch_from_a_forgotten_version_is_gone(client: Client, server: FakeApiServer) -> None:
    server.put(kinds.PODS, pod("a"))
    server.expire_versions()
    with pytest.raises(errors.Gone):
        async for _ in client.watch(kinds.PODS, resource_version="1"):
            pytest.fail("nothing should come")


async def test_gone_may_also_come_as_an_event(client: Client, server: FakeApiServer) -> None:
    server.faults.expire_watch()
    server.put(kinds.PODS, pod("a"))
    with pytest.raises(errors.Gone):
        async for _ in client.watch(kinds.PODS):
            pytest.fail("nothing should come")


async def test_bookmarks_carry_the_version(client: Client, server: FakeApiServer) -> None:
    server.bookmark_interval = 0.02
    async with aclosing(client.watch(kinds.PODS, resource_version=str(server.memory.version))) as watch:
        event = await anext(watch)
    assert (event.type, event.metadata.resource_version) == ("BOOKMARK", str(server.memory.version))


async def test_a_line_longer_than_any_buffer_arrives_whole(client: Client, server: FakeApiServer) -> None:
    server.put(kinds.CONFIG_MAPS, config_map("big", text="x" * 3_000_000))
    async with aclosing(client.watch(kinds.CONFIG_MAPS)) as watch:
        assert len((await anext(watch)).object) > 3_000_000


async def test_a_line_that_is_no_event_does_not_end_the_watch(client: Client, server: FakeApiServer) -> None:
    server.faults.garbage()
    server.put(kinds.PODS, pod("a"))
    async with aclosing(client.watch(kinds.PODS)) as watch:
        assert [(await anext(watch)).type, (await anext(watch)).type] == ["UNREADABLE", "ADDED"]


async def test_a_half_line_is_not_delivered(client: Client, server: FakeApiServer) -> None:
    server.faults.cut_watch(after=1)
    server.put(kinds.PODS, pod("a"))
    server.put(kinds.PODS, pod("b"))
    seen: list[str] = []
    with pytest.raises(errors.Unreachable):
        async for event in client.watch(kinds.PODS):
            seen += [event.metadata.name]
    assert seen == ["a"]


async def test_a_silent_watch_is_given_up(client: Client, server: FakeApiServer) -> None:
    server.faults.half_open()
    with pytest.raises(errors.Unreachable):
        async for _ in client.watch(kinds.PODS, idle_timeout=0.1):
            pytest.fail("nothing should come")


async def test_closing_a_watch_closes_its_connection(client: Client, server: FakeApiServer) -> None:
    server.put(kinds.PODS, pod("a"))
    async with aclosing(client.watch(kinds.PODS)) as watch:
        await anext(watch)
        assert server.open_watches == 1
    await eventually(lambda: not server.open_watches)


# -- counting --------------------------------------------------------------------------------------------------------


async def test_requests_are_counted_by_method_and_answer(client: Client, server: FakeApiServer) -> None:
    registry = CollectorRegistry()
    registry.register(client.requests)
    await client.create(kinds.CONFIG_MAPS, config_map("a"))
    await client.get(kinds.CONFIG_MAPS, "a", "default")
    with pytest.raises(errors.AlreadyExists):
        await client.with_limit(qps=0).create(kinds.CONFIG_MAPS, config_map("a"))
    server.faults.disconnect(verb="patch")
    with pytest.raises(errors.Unreachable):
        await client.patch(kinds.CONFIG_MAPS, "a", {}, "default")

    def count(method: str, code: str) -> float | None:
        labels = {"code": code, "host": f"127.0.0.1:{server.port}", "method": method}
        return registry.get_sample_value("rest_client_requests_total", labels)

    wanted = [("POST", "201"), ("GET", "200"), ("POST", "409"), ("PATCH", "<error>")]
    assert [count(*each) for each in wanted] == [1, 1, 1, 1]


@pytest.mark.parametrize("verb", ["create", "update", "patch"])
@pytest.mark.parametrize("through_a_proxy", [False, True])
async def test_servers_need_not_look_for_unknown_fields(
    client: Client, server: FakeApiServer, verb: str, through_a_proxy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.put(kinds.CONFIG_MAPS, config_map("a"))
    if through_a_proxy:  # then there are no connections of our own
        monkeypatch.setattr(client._connection, "exchanges", None)
    await WRITES[verb](client)
    assert [call.field_validation for call in server.called(verb)] == ["Ignore"]


async def test_who_wants_unknown_fields_to_be_refused_says_so(client: Client, server: FakeApiServer) -> None:
    path = kinds.CONFIG_MAPS.path("default")
    await client.request("POST", path, query={"fieldValidation": "Strict"}, body=config_map("a"))
    assert [call.field_validation for call in server.called("create")] == ["Strict"]
