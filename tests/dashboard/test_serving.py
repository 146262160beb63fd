"""What is answered to browsers: pages, pages of rows, headers, word of changes; and to whom nothing is."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import aiohttp
import orjson
import pytest

from stromboli.api import kinds
from stromboli.dashboard.following import Follower
from stromboli.dashboard.guarding import HEADERS, host_of, is_address
from stromboli.dashboard.serving import PAGE, assets
from stromboli.telemetry.metrics import Metrics
from stromboli.testing.apiserver import FakeApiServer
from stromboli.testing.waiting import eventually

EVIL = '<img src=x onerror="alert(1)">'
PATHS = ["/", "/api/view", "/api/queues", "/api/jobs", "/api/podgroups", "/api/topology", "/api/events"]
PATHS += [f"/assets/{path.name}" for path in assets()]


@pytest.mark.parametrize("path", [*PATHS, "/api/changes", "/nothing", "/api/jobs?limit=x"])
async def test_every_answer_carries_the_headers(page: aiohttp.ClientSession, path: str) -> None:
    async with page.get(path) as answer:
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
        assert answer.headers["Content-Type"]


def test_the_policy_lets_nothing_run_but_our_own_files() -> None:
    policy = HEADERS["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
@pytest.mark.parametrize("path", ["/", "/api/view", "/api/jobs", "/api/changes", "/assets/main.js"])
async def test_nothing_but_reading_is_answered(page: aiohttp.ClientSession, method: str, path: str) -> None:
    async with page.request(method, path, data=b"x") as answer:
        assert answer.status == 405
        assert answer.headers["Allow"] == "GET,HEAD"


@pytest.mark.parametrize("path", PATHS)
async def test_head_says_what_get_would(page: aiohttp.ClientSession, path: str) -> None:
    async with page.head(path) as head, page.get(path) as got:
        assert (head.status, head.headers["Content-Type"]) == (200, got.headers["Content-Type"])
        assert await head.read() == b""


@pytest.mark.parametrize("path", ["/api/queues", "/assets/main.js", "/"])
async def test_what_the_browser_has_is_not_sent_again(page: aiohttp.ClientSession, path: str) -> None:
    async with page.get(path) as first, page.get(path, headers={"If-None-Match": first.headers["ETag"]}) as again:
        assert (again.status, await again.read()) == (304, b"")


@pytest.mark.parametrize(
    "path", ["/assets/", "/assets/index.html", "/assets/../serving.py", "/assets/%2e%2e/serving.py", "/page/main.js"]
)
async def test_only_the_files_of_the_page_are_served(page: aiohttp.ClientSession, path: str) -> None:
    async with page.get(path) as answer:
        assert answer.status == 404


HOSTS = {
    "loopback": ("127.0.0.1:8090", 200),
    "an IPv6 address": ("[::1]:8090", 200),
    "localhost": ("localhost:8090", 200),
    "a name that is allowed": ("BATCH.example", 200),
    "an attacker's name that leads to loopback": ("evil.example:8090", 421),
    "a name that begins like one": ("localhost.evil.example", 421),
    "none": ("", 421),
}


@pytest.mark.parametrize("name", HOSTS)
async def test_hosts(page: aiohttp.ClientSession, name: str) -> None:
    host, want = HOSTS[name]
    async with page.get("/api/view", headers={"Host": host}) as answer:
        assert answer.status == want


def test_hosts_are_read_from_headers() -> None:
    assert [host_of(text) for text in ("A.example:80", "[::1]:80", "[::1]", "::1x")] == ["a.example", "::1", "::1", ""]
    assert [is_address(text) for text in ("10.0.0.1", "::1", "10.0.0", "")] == [True, True, False, False]


async def answered(page: aiohttp.ClientSession, path: str) -> dict[str, object]:
    async with page.get(path) as answer:
        assert answer.status == 200, await answer.text()
        assert answer.content_type == "application/json"
        found: dict[str, object] = orjson.loads(await answer.read())
        return found


async def test_sections(page: aiohttp.ClientSession) -> None:
    view = await answered(page, "/api/view")
    assert set(view) == {"connection", "overview", "pace"}
    queues = (await answered(page, "/api/queues"))["queues"]
    assert [row["name"] for row in queues] == ["root", "research", "interns"]  # type: ignore[attr-defined]
    topology = (await answered(page, "/api/topology"))["topology"]
    assert [row["name"] for row in topology["domains"]] == ["spine", "rack-a", "rack-b"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("query", "want"),
    [
        ("", ["wide", "train", "done"]),
        ("?state=waiting", ["wide"]),
        ("?namespace=vision&search=TRAIN", ["train"]),
        ("?limit=1&offset=1", ["train"]),
        ("?queue=nowhere", []),
    ],
)
async def test_pages_of_jobs(page: aiohttp.ClientSession, query: str, want: list[str]) -> None:
    found = (await answered(page, f"/api/jobs{query}"))["page"]
    assert [row["name"] for row in found["rows"]] == want  # type: ignore[index]
    assert found["total"] == 3  # type: ignore[index]


async def test_a_filter_that_cannot_be_used_is_refused_in_words(page: aiohttp.ClientSession) -> None:
    async with page.get("/api/jobs?offset=<b>") as answer:
        assert (answer.status, answer.content_type) == (400, "text/plain")
        assert await answer.text() == "400: offset is '<b>': it must be a whole number\n"


async def test_names_and_messages_are_data_and_never_markup(
    page: aiohttp.ClientSession, follower: Follower, server: FakeApiServer
) -> None:
    server.put(kinds.EVENTS, {
        "metadata": {"name": "evil", "namespace": "vision", "creationTimestamp": "2026-01-02T00:00:00Z"},
        "involvedObject": {"kind": EVIL, "name": EVIL, "namespace": "vision"}, "reason": EVIL, "message": EVIL,
    })  # fmt: skip
    await eventually(lambda: len(follower.sight().events) == 3)
    async with page.get("/api/events") as answer:
        assert answer.content_type == "application/json"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        body = await answer.read()
    assert orjson.loads(body)["page"]["rows"][0]["message"] == EVIL
    async with page.get("/") as answer:
        assert EVIL not in await answer.text()


async def test_word_of_changes_is_a_stream_of_revisions(
    page: aiohttp.ClientSession, follower: Follower, server: FakeApiServer, registry: Metrics
) -> None:
    async with page.get("/api/changes") as stream:
        assert stream.content_type == "text/event-stream"
        first = await stream.content.readline()
        assert re.fullmatch(rb"data: \d+\n", first)
        await eventually(lambda: b"stromboli_dashboard_streams 1.0" in registry.render())
        server.remove(kinds.JOBS, "done", "speech")
        while (line := await stream.content.readline()) == first or not line.startswith(b"data: "):
            pass
        assert int(line[6:]) > int(first[6:])
    await eventually(lambda: follower.revision and b"stromboli_dashboard_streams 0.0" in registry.render(), timeout=30)


async def test_requests_are_counted_by_route_so_that_no_client_makes_series(
    page: aiohttp.ClientSession, registry: Metrics
) -> None:
    for path in ("/api/jobs?search=a", "/api/jobs?search=b", "/x1", "/x2"):
        async with page.get(path):
            pass
    told = registry.render().decode()
    assert 'stromboli_dashboard_requests_total{code="200",path="/api/jobs"} 2.0' in told
    assert 'stromboli_dashboard_requests_total{code="404",path="other"} 2.0' in told
    assert "x1" not in told
    assert "stromboli_dashboard_connected 1.0" in told
    assert 'stromboli_dashboard_objects{resource="pods"} 5.0' in told


class Tags(HTMLParser):
    """What a page loads and contains."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_the_page_loads_only_files_of_its_own_and_has_nothing_inline() -> None:
    tags = Tags()
    tags.feed((PAGE / "index.html").read_text())
    names = {path.name for path in assets()}
    for tag, attributes in tags.found:
        assert not any(name.startswith("on") or name == "style" for name in attributes), (tag, attributes)
        for address in (attributes.get("src"), attributes.get("href") if tag == "link" else None):
            assert address is None or address.removeprefix("assets/") in names
    assert not [
        tag for tag, attributes in tags.found if tag == "style" or (tag == "script" and "src" not in attributes)
    ]


def test_no_script_turns_text_into_markup_or_code_and_nothing_comes_from_elsewhere() -> None:
    forbidden = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|DOMParser|srcdoc|javascript:"
        r"|set(Timeout|Interval)\(\s*[\"'`]"
    )
    for path in assets():
        text = path.read_text().replace('"http://www.w3.org/2000/svg"', "").replace("/^https?:\\/\\//", "")
        assert not forbidden.search(text), path.name
        if path.suffix != ".svg":
            assert "://" not in text, path.name
