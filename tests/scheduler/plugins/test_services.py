"""rescheduling and extender, by spec 06 sections 27 and 28, and the extender's calls over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from stromboli.scheduler import extender_calling
from stromboli.scheduler.core import calling, loads
from stromboli.scheduler.core.plugin import PlacementRefused
from stromboli.scheduler.plugins.extender import VERBS
from stromboli.testing.builders import PodBuilder, node, pod, pod_group, queue
from tests.scheduler.core.worlds import NOW
from tests.scheduler.plugins.sessions import Session, option

STRATEGY = {
    "name": "lowNodeUtilization",
    "params": {"thresholds": {"cpu": 20, "memory": 20}, "targetThresholds": {"cpu": 50, "memory": 50}},
}


def rescheduling(
    known: dict[str, float], *pods: PodBuilder, arguments: dict[str, object] | None = None, due: bool = True
) -> Session:
    given = {"interval": "0s", "strategies": [STRATEGY], **(arguments or {})}
    if not due:
        given["interval"] = "5m"
    values = {name: loads.NodeLoad(NOW, {loads.PERIOD: used}, {loads.PERIOD: 0.0}) for name, used in known.items()}
    return Session(
        [queue().build(), pod_group("g").build(), *(node(name).offer(cpu=10, memory="10Gi").build() for name in known)],
        [one.group("g").build() for one in pods],
        plugins=[option("rescheduling", given)],
        options={loads.OPTION: values},
    )


BUSY = [pod(f"p{at}").request(cpu=1).on("busy").priority(at) for at in range(9)]


def test_the_least_important_tasks_leave_busy_nodes_until_they_are_not_busy() -> None:
    opened = rescheduling({"busy": 90.0, "idle": 10.0}, *BUSY)
    assert opened.victim_tasks() == ["p0", "p1", "p2", "p3"]


def test_no_more_leave_than_idle_nodes_have_room_for() -> None:
    room = [{**STRATEGY, "params": {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 30}}}]
    opened = rescheduling({"busy": 90.0, "idle": 10.0}, *BUSY, arguments={"strategies": room})
    assert opened.victim_tasks() == ["p0", "p1"]


NOBODY = {
    "no node is idle": {"busy": 90.0, "other": 60.0},
    "all nodes are idle": {"busy": 10.0, "other": 5.0},
    "no node is busy": {"busy": 45.0, "other": 5.0},
}


@pytest.mark.parametrize("name", NOBODY)
def test_nobody_leaves_when(name: str) -> None:
    assert rescheduling(NOBODY[name], *BUSY).victim_tasks() == []


def test_it_acts_once_an_interval_counted_from_the_start() -> None:
    assert rescheduling({"busy": 90.0, "idle": 10.0}, *BUSY, due=False).victim_tasks() == []


def test_unknown_strategies_and_unreadable_entries_are_left_out() -> None:
    strategies = [{"name": "other"}, "nonsense", {"params": {}}]
    opened = rescheduling({"busy": 90.0, "idle": 10.0}, *BUSY, arguments={"strategies": strategies})
    assert opened.victim_tasks() == []


# extender

Answers = dict[str, Any]


class Service:
    """Answers calls from a table of verbs, and remembers them."""

    def __init__(self, answers: Answers | None = None, *, broken: bool = False) -> None:
        self.answers = answers or {}
        self.broken = broken
        self.asked: list[tuple[str, Any]] = []

    def __call__(self, url: str, body: bytes, timeout: float) -> bytes:
        verb = url.rpartition("/")[2]
        self.asked.append((verb, json.loads(body)))
        if self.broken:
            raise calling.CallFailed(f"failed {verb} with extender at URL http://x, code 500")
        return json.dumps(self.answers.get(verb, {})).encode()


def extended(service: Callable[..., bytes], *verbs: str, **more: object) -> Session:
    arguments: dict[str, object] = {
        "extender.urlPrefix": "http://x/",
        **{f"extender.{verb}Verb": verb for verb in verbs},
    }
    arguments |= {f"extender.{key}": value for key, value in more.items()}
    return Session(
        [queue().build(), pod_group("g").members(1).phase("Pending").build()],
        [node(name).offer(cpu=4, gpu=1).build() for name in ("n1", "n2")],
        [pod("p").group("g").request(cpu=1).build(), pod("v").group("g").request(cpu=1).on("n1").build()],
        [pod("gpu").group("g").request(gpu=1).build()],
        plugins=[option("extender", arguments)],
        options={calling.OPTION: service},
    )


def test_without_verbs_nothing_is_asked() -> None:
    service = Service()
    opened = extended(service)
    assert opened.refusals("p") == {}
    assert opened.combination.job_ready(opened.job("g"))
    assert service.asked == []


def test_a_message_refuses_the_node_and_the_code_0_counts_as_an_error() -> None:
    opened = extended(Service({"predicate": {"status": "not here", "code": 0}}), "predicate")
    assert opened.refusals("p") == {"n1": ["not here"], "n2": ["not here"]}
    fine = extended(Service({"predicate": {"status": "", "code": 0}}), "predicate")
    assert fine.refusals("p") == {}


def test_refusals_that_differ_from_node_to_node_are_bounded() -> None:
    def service(url: str, body: bytes, timeout: float) -> bytes:
        return json.dumps({"status": f"not on {json.loads(body)['node']['name']}", "code": 2}).encode()

    nodes = [node(f"n{at}").offer(cpu=4).build() for at in range(300)]
    opened = Session(
        [queue().build(), pod_group("g").build(), pod("p").group("g").request(cpu=1).build(), *nodes],
        plugins=[option("extender", {"extender.urlPrefix": "http://x", "extender.predicateVerb": "predicate"})],
        options={calling.OPTION: service},
    )
    refused = opened.refusals("p")
    assert len(refused) == 300
    assert refused["n0"] == ["not on n0"]
    assert refused["n299"] == ["the extender refused the node"]


def test_scores_come_from_the_service_unweighted() -> None:
    opened = extended(Service({"prioritize": {"nodeScore": {"n1": 3, "n2": 7.5}}}), "prioritize")
    assert opened.scores("p") == {"n1": 3.0, "n2": 7.5}


def test_victims_are_matched_by_uid() -> None:
    answer = {"status": 1, "victims": [{"uid": "ns-v", "name": "whatever"}, {"uid": "unknown"}]}
    opened = extended(Service({"preemptable": answer, "reclaimable": {"status": 0}}), "preemptable", "reclaimable")
    assert opened.preemptable("p", "v", "gpu") == ["v"]
    assert opened.reclaimable("p", "v") == []


ON_FAILURE: dict[str, tuple[bool, object, object]] = {
    "preemptable": (True, [], []),
    "jobEnqueueable": (False, False, True),
    "queueOverused": (False, True, False),
    "jobReady": (False, False, True),
}


@pytest.mark.parametrize("verb", ON_FAILURE)
@pytest.mark.parametrize("ignorable", [False, True])
def test_a_service_that_fails_stops_things_unless_it_may_be_ignored(verb: str, ignorable: bool) -> None:
    opened = extended(Service(broken=True), verb, ignorable=ignorable)
    asks: dict[str, Callable[[], object]] = {
        "preemptable": lambda: opened.preemptable("p", "v"),
        "jobEnqueueable": lambda: opened.combination.job_enqueueable(opened.job("g")),
        "queueOverused": lambda: opened.combination.overused(opened.queue("default")),
        "jobReady": lambda: opened.combination.job_ready(opened.job("g")),
    }
    assert asks[verb]() == ON_FAILURE[verb][2 if ignorable else 1]
    assert opened.view.warnings == [f"failed {verb} with extender at URL http://x, code 500"]


def test_a_failing_filter_refuses_with_the_error_or_passes() -> None:
    text = "failed predicate with extender at URL http://x, code 500"
    assert extended(Service(broken=True), "predicate").refusals("p") == {"n1": [text], "n2": [text]}
    assert extended(Service(broken=True), "predicate", ignorable=True).refusals("p") == {}


def test_a_service_that_does_not_open_the_session_has_no_say_in_it() -> None:
    closed = extended(Service(broken=True), "onSessionOpen", "predicate")
    assert closed.combination.filters == []
    opened = extended(Service({"predicate": {}}), "onSessionOpen", "predicate")
    assert opened.combination.filters


def test_the_session_is_told_in_full_as_it_opens() -> None:
    service = Service()
    extended(service, "onSessionOpen")
    ((verb, body),) = service.asked
    assert verb == "onSessionOpen"
    assert set(body) == {"Jobs", "Nodes", "Queues", "NamespaceInfo", "RevocableNodes", "NodeList"}
    assert body["Nodes"]["n1"]["allocatable"]["cpu"] == 4000.0
    assert {task["name"] for task in body["Jobs"]["ns/g"]["tasks"]} == {"p", "v", "gpu"}


def test_only_tasks_with_a_managed_resource_are_of_interest() -> None:
    answers = {"predicate": {"status": "no"}, "prioritize": {"nodeScore": {}}}
    opened = extended(Service(answers), "predicate", "prioritize", managedResources=["nvidia.com/gpu"])
    assert opened.refusals("p") == {}
    assert set(opened.refusals("gpu")) == {"n1", "n2"}
    assert set(opened.scores("p").values()) == {0.0}


def test_a_placement_that_the_service_objects_to_is_undone() -> None:
    opened = extended(Service({"allocateFunc": {"errorMessage": "no"}}), "allocateFunc", ignorable=True)
    with pytest.raises(PlacementRefused, match="no"):
        opened.cycle.statement().allocate(opened.task("p"), opened.node("n1"))
    assert opened.task("p").node is None


def test_every_verb_can_be_called() -> None:
    service = Service({"prioritize": {"nodeScore": {}}, "jobReady": {"status": True}})
    opened = extended(service, *VERBS)
    opened.refusals("p")
    opened.scores("p")
    opened.preemptable("p", "v")
    opened.reclaimable("p", "v")
    opened.combination.overused(opened.queue("default"))
    opened.combination.job_enqueueable(opened.job("g"))
    opened.combination.job_enqueued(opened.job("g"))
    opened.combination.job_ready(opened.job("g"))
    opened.place("p", "n1")
    opened.evict("v")
    opened.cycle.close()
    assert {verb for verb, _ in service.asked} == set(VERBS)


def test_a_process_without_a_caller_says_so() -> None:
    opened = extended(None, "jobReady")  # type: ignore[arg-type]
    assert not opened.combination.job_ready(opened.job("g"))
    assert opened.view.warnings == ["extender: nobody can call http://x: this process has no caller"]


@contextmanager
def served(status: int, answer: bytes) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join(timeout=5)
        server.server_close()


def test_answers_come_over_http() -> None:
    with served(200, b'{"code": 0}') as url:
        assert extender_calling.call(f"{url}/verb", b"{}", 5.0) == b'{"code": 0}'


def test_another_status_than_200_is_a_failure_that_names_verb_and_address() -> None:
    with (
        served(503, b"") as url,
        pytest.raises(calling.CallFailed, match=f"failed verb with extender at URL {url}, code 503"),
    ):
        extender_calling.call(f"{url}/verb", b"{}", 5.0)


def test_answers_above_10_mib_are_refused() -> None:
    with (
        served(200, b"x" * (11 * 2**20)) as url,
        pytest.raises(calling.CallFailed, match="http: request body too large"),
    ):
        extender_calling.call(f"{url}/verb", b"{}", 5.0)


def test_an_address_that_is_not_there_or_no_address_is_a_failure() -> None:
    with pytest.raises(calling.CallFailed, match="cannot be reached"):
        extender_calling.call("http://127.0.0.1:1/verb", b"{}", 1.0)
    with pytest.raises(calling.CallFailed, match=r"set extender\.urlPrefix"):
        extender_calling.call("/verb", b"{}", 1.0)
