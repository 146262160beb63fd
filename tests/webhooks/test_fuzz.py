"""Whatever comes, the server answers: with an AdmissionReview or with a status between 400 and 499, and at once.

Ten thousand reviews: those that hypothesis thinks of, real ones with injuries, and such over HTTP. Numbers of random
origin come from the number of the case alone, so that a case can be run again.
"""

from __future__ import annotations

import asyncio
import gc
import io
import random
import resource
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
import orjson
import pytest
from e2e.corpus import topics
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stromboli.api.kinds import Kind
from stromboli.kube.errors import BadRequest, Invalid, ServerError
from stromboli.telemetry.listening import Address, listening
from stromboli.telemetry.metrics import Metrics
from stromboli.webhooks import reviews
from stromboli.webhooks.__main__ import GARBAGE_THRESHOLDS
from stromboli.webhooks.admission_configuration import parse as parse_groups
from stromboli.webhooks.context import Settings
from stromboli.webhooks.endpoints import ENDPOINTS, Endpoint
from stromboli.webhooks.podtemplates import LocalTemplates
from stromboli.webhooks.podtemplates.asking import AskedTemplates
from stromboli.webhooks.reviews import BadReview
from stromboli.webhooks.serving import Admission, ReviewMetrics, application
from stromboli.webhooks.shapes import JsonObject
from tests.webhooks import mutations
from tests.webhooks.building import cluster, context_of, queue, request, review

BY_HYPOTHESIS: Final = 1_000
INJURED: Final = 7_500
OVER_HTTP: Final = 1_500
CPU_SECONDS: Final = 2.0
"""What one review may cost, however odd: generous, for this is measured on busy machines."""
GROWTH_MIB: Final = 150

KNOWN: Final = cluster(
    queue("p", capability={"cpu": "lots"}, deserved={"cpu": 1}),
    queue("q", parent="p"),
    queue("refusals-parent", capability={"cpu": "10"}, deserved={"cpu": "8"}, guarantee={"resource": {"cpu": "4"}}),
    queue("loop-a", parent="loop-b"),
    queue("loop-b", parent="loop-a"),
    queue("loop-c", parent="loop-c"),
)


@pytest.fixture(autouse=True)
def garbage_as_in_the_process() -> Iterator[None]:
    """Collect garbage as rarely as the process does; the default would look through all of pytest's objects too."""
    before = gc.get_threshold()
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    yield
    gc.set_threshold(*before)


class Judge:
    """An API server that judges pod templates by mood."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice

    async def create(self, kind: Kind, obj: JsonObject, *, dry_run: bool) -> JsonObject:
        cause = {"field": "template.spec", "message": "Invalid value", "reason": "FieldValueInvalid"}
        mood = self._dice.randrange(6)
        if mood == 0:
            raise Invalid(422, {"details": {"causes": [cause, {"field": 7}]}})
        if mood == 1:
            raise BadRequest(400, {"message": "unreadable"})
        if mood == 2:
            raise ServerError(500)
        return obj


def admission(dice: random.Random) -> Admission:
    configuration = parse_groups(
        "resourceGroups: [{resourceGroup: g, object: {key: namespace, value: [team]}, labels: {a: b}}]"
    )
    return Admission(
        settings=Settings(scheduling_gates_queue_admission=True),
        cluster=KNOWN,
        templates=AskedTemplates(Judge(dice), LocalTemplates()),
        groups=lambda: configuration.resource_groups,
        metrics=ReviewMetrics(Metrics()),
    )


def real_reviews() -> list[tuple[Endpoint, JsonObject]]:
    """A review for each endpoint and each manifest of the corpus, broken or not."""
    return [
        (
            endpoint,
            {"apiVersion": reviews.API_VERSION, "kind": reviews.KIND, "request": request(endpoint.path, obj, old)},
        )
        for topic in topics()
        for endpoint in ENDPOINTS
        if endpoint.kind == topic.kind
        for obj in (topic.manifest, *(case.broken(topic.manifest) for case in topic.cases if not case.stored))
        for old in (None, topic.manifest)
    ]


def check_answer(answer: Mapping[str, Any]) -> None:
    assert (answer["apiVersion"], answer["kind"]) == (reviews.API_VERSION, reviews.KIND)
    response = answer["response"]
    assert isinstance(response["uid"], str)
    assert isinstance(response["allowed"], bool)
    assert response["allowed"] or response["status"]["message"]


async def test_real_reviews_with_injuries_are_answered_at_once() -> None:
    reals, before = real_reviews(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answered, refused = 0, 0
    server = admission(random.Random(0))
    for number in range(INJURED):
        dice = random.Random(number)
        endpoint, content = dice.choice(reals)
        body = mutations.body_of(mutations.damaged(content, dice), dice)[: reviews.MAX_BYTES]
        spent = time.process_time()
        try:
            check_answer(orjson.loads(await server.review(endpoint, body)))
            answered += 1
        except BadReview as error:
            assert str(error)
            refused += 1
        except Exception as error:
            raise AssertionError(f"case {number}, {endpoint.path}: {body[:500]!r}") from error
        assert time.process_time() - spent < CPU_SECONDS, f"case {number}"
    assert answered > INJURED // 2
    assert refused > INJURED // 20
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024 < GROWTH_MIB


AT_THE_LIMIT = {
    "an object of nothing but lists": b'{"spec": [' + b"[]," * 300_000 + b"[]]}",
    "tasks without anything": b'{"spec": {"tasks": [' + b"{}," * 900_000 + b"{}]}}",
    "as many tasks as are read": b'{"spec": {"tasks": [' + b"{}," * 9_990 + b"{}]}}",
    "containers without anything": b'{"spec": {"tasks": [{"template": {"spec": {"containers": ['
    + b"{}," * 90_000
    + b"{}]}}}]}}",
    "a zone that goes on": b'{"spec": {"schedule": "* * * * *", "timeZone": "' + b"a/" * 1_500_000 + b'"}}',
    "a quantity that goes on": b'{"spec": {"capability": {"cpu": "' + b"9" * 3_000_000 + b'"}}}',
    "a hierarchy that goes on": b'{"metadata": {"annotations": {"volcano.sh/hierarchy": "'
    + b"a/" * 700_000
    + b'", "volcano.sh/hierarchy-weights": "'
    + b"1/" * 700_000
    + b'"}}}',
}  # fmt: skip


@pytest.mark.parametrize("name", AT_THE_LIMIT)
async def test_the_largest_and_worst_object_costs_little_and_its_answer_is_small(name: str) -> None:
    for endpoint in ENDPOINTS:
        body = review(request(endpoint.path, {"put": "here"})).replace(b'{"put":"here"}', AT_THE_LIMIT[name])
        spent = time.process_time()
        try:
            answer = await admission(random.Random(0)).review(endpoint, body)
        except BadReview:
            continue
        assert len(answer) < 2 * reviews.MAX_BYTES
        assert time.process_time() - spent < CPU_SECONDS, endpoint.path


# Over HTTP


@asynccontextmanager
async def serving(dice: random.Random) -> AsyncIterator[str]:
    async with listening(application(admission(dice), ENDPOINTS), Address("127.0.0.1", 0)) as address:
        yield f"http://{address}"


async def test_over_http_every_answer_is_a_review_or_blames_the_client() -> None:
    reals = real_reviews()
    statuses: dict[int, int] = {}
    async with serving(random.Random(1)) as url, aiohttp.ClientSession() as session:

        async def ask(number: int) -> None:
            dice = random.Random(f"http {number}")
            endpoint, content = dice.choice(reals)
            body = mutations.body_of(mutations.damaged(content, dice), dice)
            headers = {"Content-Type": dice.choice(["application/json"] * 8 + ["text/plain", "application/yaml", "x"])}
            path = dice.choice([endpoint.path] * 9 + [f"{endpoint.path}/", "/", f"{endpoint.path}?timeout=10s"])
            method = dice.choice(["POST"] * 8 + ["PUT", "GET"])
            async with session.request(method, url + path, data=io.BytesIO(body), headers=headers) as answer:
                text = await answer.read()
            statuses[answer.status] = statuses.get(answer.status, 0) + 1
            assert answer.status == 200 or 400 <= answer.status < 500, f"case {number}: {answer.status} {text!r}"
            if answer.status == 200:
                check_answer(orjson.loads(text))

        for start in range(0, OVER_HTTP, 16):
            async with asyncio.TaskGroup() as group:
                for number in range(start, min(start + 16, OVER_HTTP)):
                    group.create_task(ask(number))
    assert {200, 400, 404, 415} <= statuses.keys()
    assert statuses[200] > OVER_HTTP // 5


# What hypothesis thinks of

SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(max_size=6)
)
WORDS = st.sampled_from(
    ["metadata", "name", "namespace", "annotations", "labels", "spec", "status", "tasks", "replicas", "minAvailable",
     "template", "containers", "initContainers", "image", "resources", "requests", "limits", "cpu", "policies", "event",
     "events", "action", "exitCode", "queue", "plugins", "mpi", "volumes", "mountPath", "networkTopology", "dependsOn",
     "partitionPolicy", "topologyPolicy", "parent", "capability", "deserved", "guarantee", "resource", "state", "flows",
     "targets", "schedule", "timeZone", "members", "selector", "regexMatch", "pattern", "schedulerName", "affinity",
     "tolerations", "schedulingGates", "subGroupPolicy", "allocated", "volumeClaimName", "volumeClaim"]
)  # fmt: skip
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=20,
)


@st.composite
def requests(draw: st.DrawFn) -> tuple[Endpoint, Any]:
    """A request for some endpoint, with objects that may be anything."""
    endpoint = draw(st.sampled_from(ENDPOINTS))
    asked = request(endpoint.path, None, operation=draw(st.sampled_from(["CREATE", "UPDATE", "DELETE"])))
    asked |= {"object": draw(ANYTHING), "oldObject": draw(ANYTHING)}
    return endpoint, asked


@settings(max_examples=BY_HYPOTHESIS, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(requests())
def test_whatever_comes_is_answered_or_is_no_review(case: tuple[Endpoint, Any]) -> None:
    endpoint, content = case
    try:
        asked = reviews.parse(orjson.dumps({"request": content}))
    except BadReview as error:
        assert str(error)
        return
    verdict = reviews.decide(endpoint, asked, context_of(asked, KNOWN))
    check_answer(orjson.loads(reviews.answer(asked, verdict)))


@given(st.binary(max_size=64))
def test_whatever_bytes_come_they_are_read_or_refused(body: bytes) -> None:
    try:
        reviews.parse(body)
    except BadReview:
        pass
