"""The API over HTTP: forms of answers, pages, watches, patches, errors."""

from __future__ import annotations

import asyncio
import gzip
import io
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any

import aiohttp
import orjson
import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.localcluster.extending import SYSTEM, Answer, Attributes, Subresource, SubresourceRequest, User
from stromboli.localcluster.http import streaming, watching
from stromboli.localcluster.http.app import create_app
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.requests import DeleteOptions
from stromboli.localcluster.subresources import logs
from tests.localcluster.server.measure import serving
from tests.localcluster.server.objects import WIDGETS, deployment, pod, registry_with_widgets, widget

PODS = "/api/v1/namespaces/default/pods"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"

Client = TestClient[web.Request, web.Application]


@pytest.fixture
async def registry() -> Registry:
    return await registry_with_widgets()


@pytest.fixture
async def client(registry: Registry) -> AsyncIterator[Client]:
    async with TestClient(TestServer(create_app(registry, address="127.0.0.1:1")), auto_decompress=False) as client:
        yield client


async def get(client: Client, path: str, accept: str = "application/json", **query: str) -> dict[str, Any]:
    async with client.get(path, params=query, headers={"Accept": accept, "Accept-Encoding": "identity"}) as response:
        return orjson.loads(await response.read())  # type: ignore[no-any-return]


async def send(
    client: Client, method: str, path: str, body: object, content_type: str = "application/json", **query: str
) -> tuple[int, dict[str, Any]]:
    data = io.BytesIO(body if isinstance(body, bytes) else orjson.dumps(body))
    headers = {"Content-Type": content_type, "User-Agent": "tester/1.0"}
    async with client.request(method, path, data=data, params=query, headers=headers) as response:
        return response.status, orjson.loads(await response.read())


async def create_pods(registry: Registry, *names: str) -> None:
    for name in names:
        await registry.create(kinds.PODS, pod(name))


def names(answer: Mapping[str, Any]) -> list[str]:
    return [item["metadata"]["name"] for item in answer["items"]]


# Reading


async def test_an_object_and_a_list(client: Client, registry: Registry) -> None:
    await create_pods(registry, "a", "b")
    assert (await get(client, f"{PODS}/a"))["metadata"]["name"] == "a"
    listed = await get(client, PODS)
    assert (listed["kind"], listed["apiVersion"], names(listed)) == ("PodList", "v1", ["a", "b"])
    assert listed["metadata"] == {"resourceVersion": str(registry.store.revision)}
    assert names(await get(client, "/api/v1/pods")) == ["a", "b"]


async def test_a_table_has_columns_rows_and_metadata(client: Client, registry: Registry) -> None:
    await create_pods(registry, "a")
    table = await get(client, PODS, TABLE)
    assert table["kind"] == "Table"
    assert [column["name"] for column in table["columnDefinitions"]][:5] == [
        "Name",
        "Ready",
        "Status",
        "Restarts",
        "Age",
    ]
    (row,) = table["rows"]
    assert row["cells"][:4] == ["a", "0/1", "Pending", 0]
    assert row["object"]["kind"] == "PartialObjectMetadata" and "spec" not in row["object"]
    assert (await get(client, PODS, TABLE, includeObject="Object"))["rows"][0]["object"]["kind"] == "Pod"
    assert "object" not in (await get(client, PODS, TABLE, includeObject="None"))["rows"][0]
    assert (await get(client, f"{PODS}/a", TABLE))["rows"][0]["cells"][0] == "a"


async def test_partial_metadata(client: Client, registry: Registry) -> None:
    await create_pods(registry, "a")
    listed = await get(client, PODS, METADATA)
    assert listed["kind"] == "PartialObjectMetadataList" and set(listed["items"][0]) == {
        "kind",
        "apiVersion",
        "metadata",
    }
    single = METADATA.replace("MetadataList", "Metadata")
    assert (await get(client, f"{PODS}/a", single))["kind"] == "PartialObjectMetadata"


async def test_yaml_both_ways(client: Client) -> None:
    body = yaml.safe_dump({**pod("a"), "apiVersion": "v1", "kind": "Pod"}).encode()
    status, _ = await send(client, "POST", PODS, body, "application/yaml")
    assert status == 201
    async with client.get(f"{PODS}/a", headers={"Accept": "application/yaml"}) as response:
        assert yaml.safe_load(await response.read())["metadata"]["name"] == "a"


async def test_pages_cover_everything_once(client: Client, registry: Registry) -> None:
    await create_pods(registry, *"abcde")
    found: list[str] = []
    query = {"limit": "2"}
    revisions = set()
    while True:
        page = await get(client, PODS, **query)
        found += names(page)
        revisions.add(page["metadata"]["resourceVersion"])
        token = page["metadata"].get("continue")
        if not token:
            break
        assert page["metadata"]["remainingItemCount"] == 5 - len(found)
        query["continue"] = token
        await registry.delete(kinds.PODS, "default", "a") if len(found) == 2 else None
    assert found == list("abcde") and len(revisions) == 1


async def test_revisions_of_lists(client: Client, registry: Registry) -> None:
    await create_pods(registry, "a", "b")
    present = registry.store.revision
    future = await get(client, PODS, resourceVersion=str(present + 5))
    assert (future["code"], future["reason"]) == (504, "Timeout")
    assert future["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    past = await get(client, PODS, resourceVersion=str(present - 1), resourceVersionMatch="Exact")
    assert (past["code"], past["reason"]) == (410, "Expired")
    assert names(await get(client, PODS, resourceVersion="1", resourceVersionMatch="NotOlderThan")) == ["a", "b"]
    assert (await get(client, PODS, resourceVersion="x"))["code"] == 400
    assert (await get(client, PODS, **{"continue": "nonsense"}))["code"] == 400


async def test_selectors(client: Client, registry: Registry) -> None:
    await registry.create(WIDGETS, widget("r"))
    await registry.create(WIDGETS, widget("g", color="green"))
    path = WIDGETS.path("default")
    assert names(await get(client, path, fieldSelector="spec.color=green")) == ["g"]
    assert names(await get(client, path, labelSelector="a=b")) == []
    refused = await get(client, path, fieldSelector="spec.size=1")
    assert (refused["code"], refused["message"]) == (400, "field label not supported: spec.size")


async def test_large_answers_are_compressed_for_those_who_ask(client: Client, registry: Registry) -> None:
    for index in range(30):
        await registry.create(
            kinds.CONFIG_MAPS, {"metadata": {"name": f"c{index}", "namespace": "default"}, "data": {"x": "y" * 9000}}
        )
    path = kinds.CONFIG_MAPS.path("default")
    async with client.get(path, headers={"Accept-Encoding": "gzip"}) as response:
        assert response.headers["Content-Encoding"] == "gzip"
        assert len(orjson.loads(gzip.decompress(await response.read()))["items"]) == 30
    async with client.get(path, headers={"Accept-Encoding": "identity"}) as response:
        assert "Content-Encoding" not in response.headers


async def test_pretty_answers_are_for_people(client: Client) -> None:
    for query, headers, is_pretty in (
        ({"pretty": "true"}, {}, True),
        ({}, {"User-Agent": "curl/8"}, True),
        ({"pretty": "false"}, {}, False),
        ({}, {}, False),
    ):
        async with client.get(f"{PODS}/none", params=query, headers=headers) as response:
            assert response.status == 404
        async with client.get("/api/v1/namespaces/default/widgets", params=query, headers=headers) as response:
            assert response.status == 404
        async with client.post(PODS, params={**query, "dryRun": "All"}, headers=headers, json=pod("a")) as response:
            assert ((await response.read()).count(b"\n") > 5) is is_pretty


# Writing


async def test_create_update_patch_and_delete(client: Client) -> None:
    status, created = await send(client, "POST", PODS, pod("a"))
    assert status == 201
    assert created["metadata"]["managedFields"][0]["manager"] == "tester"
    created["metadata"]["labels"] = {"x": "1"}
    status, updated = await send(client, "PUT", f"{PODS}/a", created)
    assert status == 200 and updated["metadata"]["labels"] == {"x": "1"}
    status, patched = await send(
        client,
        "PATCH",
        f"{PODS}/a",
        [{"op": "add", "path": "/metadata/labels/y", "value": "2"}],
        "application/json-patch+json",
    )
    assert status == 200 and patched["metadata"]["labels"] == {"x": "1", "y": "2"}
    status, deleted = await send(client, "DELETE", f"{PODS}/a", {"gracePeriodSeconds": 0})
    assert status == 200 and deleted["kind"] == "Pod"
    assert (await get(client, f"{PODS}/a"))["code"] == 404


async def test_an_apply_creates_with_201_and_changes_with_200(client: Client) -> None:
    path = f"{kinds.CONFIG_MAPS.path('default')}/c"
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: '1'}\n"
    media_type = "application/apply-patch+yaml"
    refused, error = await send(client, "PATCH", path, body, media_type)
    assert (refused, error["details"]["causes"][0]["field"]) == (422, "fieldManager")
    assert (await send(client, "PATCH", path, body, media_type, fieldManager="m"))[0] == 201
    assert (await send(client, "PATCH", path, body, media_type, fieldManager="m"))[0] == 200
    body = body.replace(b"'1'", b"'2'")
    assert (await send(client, "PATCH", path, body, media_type, fieldManager="n"))[0] == 409
    assert (await send(client, "PATCH", path, body, media_type, fieldManager="n", force="true"))[0] == 200


async def test_unknown_fields_are_warned_of_in_a_header(client: Client) -> None:
    async with client.post(PODS, json=pod("a", foo=1)) as response:
        assert response.headers.getall("Warning") == ['299 - "unknown field \\"spec.foo\\""']
    status, error = await send(client, "POST", PODS, pod("b", foo=1), fieldValidation="Strict")
    assert status == 400 and 'strict decoding error: unknown field "spec.foo"' in error["message"]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"preconditions": 5}, "preconditions: Invalid value: 5: must be an object"),
        ({"preconditions": {"uid": 5}}, "preconditions.uid: Invalid value: 5: must be a string"),
        (
            {"preconditions": {"resourceVersion": []}},
            "preconditions.resourceVersion: Invalid value: []: must be a string",
        ),
        ({"propagationPolicy": ["Orphan"]}, 'propagationPolicy: Invalid value: ["Orphan"]: must be a string'),
        ({"gracePeriodSeconds": "0"}, 'gracePeriodSeconds: Invalid value: "0": must be an integer'),
        ({"gracePeriodSeconds": True}, "gracePeriodSeconds: Invalid value: true: must be an integer"),
        ({"gracePeriodSeconds": 1.5}, "gracePeriodSeconds: Invalid value: 1.5: must be an integer"),
        ({"orphanDependents": "no"}, 'orphanDependents: Invalid value: "no": must be a boolean'),
        ({"dryRun": "All"}, 'dryRun: Invalid value: "All": must be a list of strings'),
        ({"dryRun": 1}, "dryRun: Invalid value: 1: must be a list of strings"),
        ({"dryRun": [{}]}, "dryRun: Invalid value: [{}]: must be a list of strings"),
    ],
)
async def test_delete_options_of_a_wrong_type_are_refused(
    client: Client, registry: Registry, body: object, text: str
) -> None:
    await create_pods(registry, "a")
    for path in (f"{PODS}/a", PODS):
        status, answer = await send(client, "DELETE", path, body)
        assert (status, answer["reason"], answer["message"]) == (400, "BadRequest", text)
    assert names(await get(client, PODS)) == ["a"]


async def test_custom_resources_are_deleted_with_a_status(client: Client, registry: Registry) -> None:
    obj = await registry.create(WIDGETS, widget())
    status, answer = await send(client, "DELETE", f"{WIDGETS.path('default')}/w", {})
    assert status == 200 and answer["status"] == "Success"
    assert answer["details"] == {"name": "w", "kind": "widgets", "group": "example.com", "uid": obj["metadata"]["uid"]}


async def test_a_collection_is_deleted_by_selector(client: Client, registry: Registry) -> None:
    await create_pods(registry, "a", "b")
    status, answer = await send(client, "DELETE", PODS, {}, fieldSelector="metadata.name=a")
    assert status == 200 and names(answer) == ["a"]
    assert names(await get(client, PODS)) == ["b"]


async def test_scale_and_status_paths(client: Client, registry: Registry) -> None:
    await registry.create(kinds.DEPLOYMENTS, deployment())
    path = kinds.DEPLOYMENTS.path("default", "d")
    status, scale = await send(
        client, "PATCH", f"{path}/scale", {"spec": {"replicas": 3}}, "application/merge-patch+json"
    )
    assert status == 200 and scale["spec"] == {"replicas": 3}
    assert (await get(client, f"{path}/scale"))["kind"] == "Scale"
    await send(client, "PATCH", f"{path}/status", {"status": {"replicas": 2}}, "application/strategic-merge-patch+json")
    assert (await get(client, f"{path}/status"))["status"] == {"replicas": 2}


REFUSED: dict[str, tuple[str, str, object, str, int, str]] = {
    "a path of no kind": ("GET", "/apis/none.io/v1/things", b"", "", 404, "NotFound"),
    "a subresource that is not there": ("GET", f"{PODS}/a/nothing", b"", "", 404, "NotFound"),
    "a cluster-scoped kind in a namespace": ("GET", "/api/v1/namespaces/x/nodes", b"", "", 404, "NotFound"),
    "a verb that is not there": ("POST", f"{PODS}/a", pod("a"), "application/json", 405, "MethodNotAllowed"),
    "a method that is not there": ("OPTIONS", PODS, b"", "", 405, "MethodNotAllowed"),
    "broken JSON": ("POST", PODS, b'{"a":', "application/json", 400, "BadRequest"),
    "broken YAML": ("POST", PODS, b"a: [", "application/yaml", 400, "BadRequest"),
    "YAML that writes out to gigabytes": (
        "POST",
        PODS,
        b"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n",
        "application/yaml",
        400,
        "BadRequest",
    ),
    "YAML that JSON cannot say": ("POST", PODS, b"1: a\n", "application/yaml", 400, "BadRequest"),
    "JSON that never ends": ("POST", PODS, b'{"a":' * 2000, "application/json", 400, "BadRequest"),
    "JSON that is nested deeply": (
        "POST",
        PODS,
        b'{"metadata":{"annotations":' + b'{"a":' * 900 + b"1" + b"}" * 902,
        "application/json",
        400,
        "BadRequest",
    ),
    "a body that is no object": ("POST", PODS, b"[]", "application/json", 400, "BadRequest"),
    "an unknown media type": ("POST", PODS, b"x", "text/csv", 415, "UnsupportedMediaType"),
    "broken Protobuf": (
        "POST",
        PODS,
        b"k8s\x00\x0a\xff",
        "application/vnd.kubernetes.protobuf",
        415,
        "UnsupportedMediaType",
    ),
    "an unknown kind of patch": ("PATCH", f"{PODS}/a", {}, "application/json", 415, "UnsupportedMediaType"),
    "a strategic patch of a custom resource": (
        "PATCH",
        f"{WIDGETS.path('default')}/w",
        {},
        "application/strategic-merge-patch+json",
        415,
        "UnsupportedMediaType",
    ),
    "a patch of nothing": ("PATCH", f"{PODS}/a", {}, "application/merge-patch+json", 404, "NotFound"),
    "a dry run of something": ("POST", f"{PODS}?dryRun=Some", pod(), "application/json", 422, "Invalid"),
    "an unknown validation": ("POST", f"{PODS}?fieldValidation=Hard", pod(), "application/json", 422, "Invalid"),
    "an unknown policy": ("DELETE", f"{PODS}/a?propagationPolicy=Maybe", b"", "", 422, "Invalid"),
    "another name in the body": ("PUT", f"{PODS}/a", pod("b"), "application/json", 400, "BadRequest"),
    "too much": ("POST", PODS, b"x" * (4 * 2**20), "application/json", 413, "RequestEntityTooLarge"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_refusals_are_statuses(client: Client, name: str) -> None:
    method, path, body, content_type, code, reason = REFUSED[name]
    status, answer = await send(client, method, path, body, content_type)
    assert (status, answer["code"], answer["reason"], answer["kind"]) == (code, code, reason, "Status")
    assert answer["message"]


async def test_protobuf_answers_are_not_offered(client: Client) -> None:
    answer = await get(client, PODS, "application/vnd.kubernetes.protobuf")
    assert (answer["code"], answer["reason"]) == (406, "NotAcceptable")
    both = await get(client, PODS, "application/vnd.kubernetes.protobuf,application/json")
    assert both["kind"] == "PodList"


# Watching


async def lines(response: aiohttp.ClientResponse, count: int) -> list[dict[str, Any]]:
    async with asyncio.timeout(10):
        return [orjson.loads(await response.content.readline()) for _ in range(count)]


async def test_a_watch_streams_changes_from_a_revision(client: Client, registry: Registry) -> None:
    await create_pods(registry, "a")
    query = {"watch": "1", "resourceVersion": str(registry.store.revision)}
    async with client.get(PODS, params=query) as response:
        await create_pods(registry, "b")
        await registry.delete(kinds.PODS, "default", "a", DeleteOptions(grace_period=0))
        events = await lines(response, 2)
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [
        ("ADDED", "b"),
        ("DELETED", "a"),
    ]


async def test_a_watch_without_revision_begins_with_what_is_there(client: Client, registry: Registry) -> None:
    await create_pods(registry, "a", "b")
    async with client.get(PODS, params={"watch": "true"}) as response:
        assert [event["type"] for event in await lines(response, 2)] == ["ADDED", "ADDED"]


async def test_selected_objects_enter_and_leave_a_watch(client: Client, registry: Registry) -> None:
    await registry.create(WIDGETS, widget())
    query = {"watch": "1", "resourceVersion": str(registry.store.revision), "fieldSelector": "spec.color=green"}
    async with client.get(WIDGETS.path("default"), params=query) as response:
        for color in ("green", "red"):
            obj = await registry.get(WIDGETS, "default", "w")
            await registry.update(WIDGETS, {**obj, "spec": {"size": 1, "color": color}})
        events = await lines(response, 2)
    assert [event["type"] for event in events] == ["ADDED", "DELETED"]
    assert events[1]["object"]["spec"]["color"] == "green"
    assert events[1]["object"]["metadata"]["resourceVersion"] == str(registry.store.revision)


async def test_a_streamed_list_ends_with_a_bookmark(client: Client, registry: Registry) -> None:
    await create_pods(registry, "a")
    query = {
        "watch": "1",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
    }
    async with client.get(PODS, params=query) as response:
        added, bookmark = await lines(response, 2)
    assert (added["type"], bookmark["type"]) == ("ADDED", "BOOKMARK")
    assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert bookmark["object"]["metadata"]["resourceVersion"] == str(registry.store.revision)


async def test_initial_events_need_a_match(client: Client) -> None:
    refused = await get(client, PODS, watch="1", sendInitialEvents="true")
    assert refused["code"] == 422 and "resourceVersionMatch" in refused["message"]


async def test_a_watch_ends_at_its_time(client: Client) -> None:
    async with client.get(PODS, params={"watch": "1", "timeoutSeconds": "1", "resourceVersion": "1"}) as response:
        async with asyncio.timeout(10):
            assert await response.read() == b""


async def test_a_watch_ends_when_its_client_leaves(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "LOOK_INTERVAL", 0.01)
    follow, has_ended = watching._follow, asyncio.Event()

    async def observed(*arguments: Any) -> None:
        await follow(*arguments)
        has_ended.set()

    monkeypatch.setattr(watching, "_follow", observed)
    async with serving(registry) as address, aiohttp.ClientSession() as session:
        response = await session.get(f"{address}{PODS}", params={"watch": "1"})
        response.close()
        async with asyncio.timeout(10):
            await has_ended.wait()


LEAVING: dict[str, tuple[str, dict[str, str]]] = {
    "while nothing happens on a watch": (PODS, {"watch": "1"}),
    "while a log is followed": (f"{PODS}/a/log", {"follow": "true"}),
}


@pytest.mark.parametrize(("path", "query"), LEAVING.values(), ids=LEAVING.keys())
async def test_a_client_that_hangs_up_is_not_worth_a_word(
    registry: Registry,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    path: str,
    query: dict[str, str],
) -> None:
    monkeypatch.setattr(watching, "LOOK_INTERVAL", 0.01)
    caplog.set_level(logging.DEBUG, "stromboli.localcluster.http")
    left, noticed = asyncio.Event(), asyncio.Event()
    monkeypatch.setattr(streaming, "tell_left", lambda *_: noticed.set())

    async def chunks() -> AsyncGenerator[bytes, None]:
        yield b"first\n"
        await left.wait()
        while True:
            yield b"more\n"
            await asyncio.sleep(0)

    async def log(request: SubresourceRequest) -> Answer:
        return Answer(chunks(), 200, "text/plain")

    await create_pods(registry, "a")
    registry.add_subresource(kinds.PODS, "log", Subresource(log, kinds.PODS, ("get",)))
    async with serving(registry) as address, aiohttp.ClientSession() as session:
        response = await session.get(f"{address}{path}", params=query)
        response.close()
        left.set()
        async with asyncio.timeout(10):
            await noticed.wait()
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_follower_that_leaves_a_silent_log_is_noticed(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "LOOK_SECONDS", 0.01)
    ended = asyncio.Event()

    class Watched(logs.Logs):
        async def _stream(self, *arguments: Any) -> AsyncGenerator[bytes, None]:
            try:
                async for piece in super()._stream(*arguments):
                    yield piece
            finally:
                ended.set()

    await create_pods(registry, "a")
    container = {"name": "main", "ready": True, "restartCount": 0, "image": "busybox:1", "imageID": ""}
    state = {"state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
    running = {**registry.read(kinds.PODS, "default", "a").object, "status": {"containerStatuses": [container | state]}}
    await registry.update(kinds.PODS, running, subresource="status")
    registry.add_subresource(kinds.PODS, "log", Subresource(Watched(registry), kinds.PODS, ("get",)))
    async with serving(registry) as address, aiohttp.ClientSession() as session:
        response = await session.get(f"{address}{PODS}/a/log", params={"follow": "true"})
        assert b"simulated container" in await response.content.readline()
        assert not ended.is_set()
        response.close()
        async with asyncio.timeout(10):
            await ended.wait()


async def test_a_watch_from_a_forgotten_revision_is_gone(client: Client, registry: Registry) -> None:
    await create_pods(registry, "a")
    registry.store.compact()
    answer = await get(client, PODS, watch="1", resourceVersion="2")
    assert (answer["code"], answer["reason"]) == (410, "Expired")


async def test_a_watch_that_falls_behind_ends_with_an_error_line(client: Client, registry: Registry) -> None:
    async with client.get(PODS, params={"watch": "1", "resourceVersion": str(registry.store.revision)}) as response:
        await create_pods(registry, "a")
        await lines(response, 1)
        await create_pods(registry, "b")
        registry.store.compact()
        (event,) = await lines(response, 1)
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


async def test_a_watch_of_tables_sends_a_row_a_change(client: Client, registry: Registry) -> None:
    async with client.get(PODS, params={"watch": "1"}, headers={"Accept": TABLE}) as response:
        await create_pods(registry, "a")
        (event,) = await lines(response, 1)
    assert event["object"]["kind"] == "Table" and event["object"]["rows"][0]["cells"][0] == "a"


# Identity, handlers, documents


class OneToken:
    async def authenticate(self, headers: Mapping[str, str], peer_certificate: Mapping[str, Any] | None) -> User | None:
        return User("tester") if headers.get("Authorization") == "Bearer good" else None


class ReadOnly:
    def __init__(self) -> None:
        self.asked: list[Attributes] = []

    async def authorize(self, user: User, attributes: Attributes) -> str | None:
        self.asked.append(attributes)
        return None if attributes.verb in ("get", "list", "watch") else ""


async def test_requests_are_authenticated_and_authorized(registry: Registry) -> None:
    authorizer = ReadOnly()
    app = create_app(registry, OneToken(), authorizer)
    async with TestClient(TestServer(app)) as client:
        assert (await get(client, PODS))["code"] == 401
        async with client.get("/readyz") as response:
            assert await response.text() == "ok"
        headers = {"Authorization": "Bearer good"}
        async with client.get(f"{PODS}?watch=1&timeoutSeconds=1&resourceVersion=1", headers=headers) as response:
            assert response.status == 200
        async with client.post(PODS, json=pod(), headers=headers) as response:
            error = await response.json()
        assert error["message"] == (
            'pods is forbidden: User "tester" cannot create resource "pods" in API group "" in the namespace "default"'
        )
        assert authorizer.asked[0] == Attributes("watch", "", "v1", "pods", "", "default", "")


async def test_subresource_handlers_answer_with_objects_and_streams(client: Client, registry: Registry) -> None:
    seen: list[SubresourceRequest] = []

    async def chunks() -> AsyncGenerator[bytes, None]:
        yield b"one\n"
        yield b"two\n"

    async def handler(request: SubresourceRequest) -> Answer:
        seen.append(request)
        if request.verb == "get":
            return Answer(chunks(), content_type="text/plain")
        return Answer({"kind": "Status", "status": "Success"}, 201)

    registry.add_subresource(kinds.PODS, "log", Subresource(handler, kinds.PODS, ("get", "create")))
    async with client.get(f"{PODS}/a/log?follow=true", headers={"Accept": "text/plain"}) as response:
        assert await response.text() == "one\ntwo\n"
    assert (await send(client, "POST", f"{PODS}/a/log", {"x": 1}))[0] == 201
    assert (await send(client, "PUT", f"{PODS}/a/log", {}))[0] == 405
    assert (seen[0].name, seen[0].query["follow"], seen[0].user) == ("a", "true", SYSTEM)
    assert seen[1].body == {"x": 1}


async def test_handled_kinds_are_created_but_not_stored(client: Client, registry: Registry) -> None:
    review = Kind("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False)

    async def handler(request: SubresourceRequest) -> Answer:
        return Answer({**(request.body or {}), "status": {"allowed": True}}, 201)

    registry.add_handled_kind(review, handler)
    status, answer = await send(client, "POST", review.path(), {"spec": {}})
    assert status == 201 and answer["status"] == {"allowed": True}
    assert (await get(client, review.path()))["code"] == 405


async def test_a_handler_that_breaks_is_an_internal_error(
    client: Client, registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(request: SubresourceRequest) -> Answer:
        raise RuntimeError("boom")

    registry.add_subresource(kinds.PODS, "log", Subresource(handler, kinds.PODS, ("get",)))
    answer = await get(client, f"{PODS}/a/log")
    assert (answer["code"], answer["message"]) == (500, "Internal error occurred: RuntimeError: boom")
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert record.exc_info is not None and record.getMessage() == f"GET {PODS}/a/log failed"


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/livez", "/readyz/ping"])
async def test_health(client: Client, path: str) -> None:
    async with client.get(path) as response:
        assert (response.status, await response.text()) == (200, "ok")
    async with client.get(path, params={"verbose": ""}) as response:
        assert (await response.text()).endswith("check passed\n")
