"""Reviews: what is none, what is refused at the door, and that nothing brings a decision down (spec 07 section 3)."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stromboli.webhooks import reviews
from stromboli.webhooks.endpoints import BY_PATH, ENDPOINTS, Endpoint
from stromboli.webhooks.reviews import BadReview
from tests.webhooks.building import cluster, context_of, decide, job, queue, request, review, task, template

NO_REVIEWS = {
    "nothing": (b"", "not JSON"),
    "no JSON": (b"{", "not JSON"),
    "a list": (b"[]", "not a JSON object"),
    "no request": (b"{}", "no request"),
    "a null request": (b'{"request": null}', "no request"),
    "another version": (b'{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{}}', "v1beta1"),
    "another kind": (b'{"apiVersion":"admission.k8s.io/v1","kind":"Pod","request":{}}', "got Pod"),
    "a request of the wrong type": (b'{"request": 3}', "request: Invalid type"),
    "an object of the wrong type": (b'{"request": {"object": []}}', "request.object: Invalid type"),
    "a uid of the wrong type": (b'{"request": {"uid": {}}}', "request.uid: Invalid type"),
    "too deep": (b'{"request": {"object": ' + b'{"a":' * 300 + b"1" + b"}" * 300 + b"}}", "nested deeper"),
    "far too deep": (b"[" * 100_000, "not JSON"),
    "no UTF-8": (b'{"request": "\xff"}', "not JSON"),
}


@pytest.mark.parametrize("name", NO_REVIEWS)
def test_a_body_that_is_no_review_is_named(name: str) -> None:
    body, want = NO_REVIEWS[name]
    with pytest.raises(BadReview, match=want):
        reviews.parse(body)


def test_version_and_kind_may_be_missing() -> None:
    assert reviews.parse(b'{"request": {"uid": "7"}}').uid == "7"


REFUSALS = {
    "/jobs/mutate": "expect operation to be 'CREATE' ",
    "/pods/mutate": "expect operation to be 'CREATE' ",
    "/jobs/validate": "expect operation to be 'CREATE' or 'UPDATE'",
    "/cronjobs/validate": "expect operation to be 'CREATE' or 'UPDATE'",
    "/jobflows/validate": "expect operation to be 'CREATE' or 'UPDATE'",
    "/pods/validate": "expect operation to be 'CREATE'",
    "/podgroups/mutate": "invalid operation `CONNECT`, expect operation to be `CREATE`",
    "/queues/mutate": "invalid operation `CONNECT`, expect operation to be `CREATE`",
    "/podgroups/validate": "unsupported operation CONNECT",
    "/queues/validate": "invalid operation `CONNECT`, expect operation to be `CREATE`, `UPDATE` or `DELETE`",
    "/hypernodes/validate": "",
}


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.path)
def test_operations_that_are_not_served_are_refused(endpoint: Endpoint) -> None:
    verdict = decide(endpoint.path, {}, operation="CONNECT")
    assert (verdict.allowed, verdict.message) == (not REFUSALS[endpoint.path], REFUSALS[endpoint.path])


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.path)
def test_other_resources_are_refused(endpoint: Endpoint) -> None:
    asked = reviews.parse(review({**request(endpoint.path, {}), "resource": {"group": "apps", "resource": "jobs"}}))
    kind = endpoint.kind
    want = f"expect resource to be {{{kind.group} {kind.version} {kind.plural}}}"
    assert reviews.decide(endpoint, asked, context_of(asked)).message == want


def answered(path: str, content: Any) -> Mapping[str, Any]:
    asked = reviews.parse(review(content))
    whole = orjson.loads(reviews.answer(asked, reviews.decide(BY_PATH[path], asked, context_of(asked))))
    assert whole.keys() == {"kind", "apiVersion", "response"}
    response: Mapping[str, Any] = whole["response"]
    return response


def test_an_allowed_review_says_no_more_than_that() -> None:
    assert answered("/jobs/validate", request("/jobs/validate", job())) == {"uid": "9f4c", "allowed": True}


def test_a_refusal_carries_the_message_and_its_causes() -> None:
    response = answered("/queues/validate", request("/queues/validate", queue("q", capability={"cpu": "-1"})))
    fault = "must be greater than or equal to 0"
    field = "requestBody.spec.capability.cpu"
    assert response == {
        "uid": "9f4c",
        "allowed": False,
        "status": {
            "metadata": {},
            "message": f'{field}: Invalid value: "-1": {fault}',
            "details": {
                "name": "q",
                "kind": "queues",
                "causes": [{"reason": "FieldValueInvalid", "field": field, "message": f'Invalid value: "-1": {fault}'}],
            },
        },
    }


def test_a_patch_is_sent_only_where_something_changes() -> None:
    path = "/queues/mutate"
    response = answered(path, request(path, {"metadata": {"name": "q"}, "spec": {"weight": 2}}))
    assert response["patchType"] == "JSONPatch"
    patch = orjson.loads(base64.b64decode(response["patch"]))
    assert patch == [{"op": "add", "path": "/spec/reclaimable", "value": True}]
    assert answered(path, request(path, {"spec": {"weight": 2, "reclaimable": True}})) == {
        "uid": "9f4c",
        "allowed": True,
    }


def test_an_object_that_is_null_is_judged_as_empty() -> None:
    assert answered("/jobs/validate", request("/jobs/validate", None))["status"]["message"] == (
        "No task specified in job spec"
    )


def test_endless_messages_are_cut() -> None:
    tasks = [task("x" * 200, minAvailable=2)] + [task(f"t{n}", minAvailable=2) for n in range(2000)]
    response = answered("/jobs/validate", request("/jobs/validate", job(*tasks)))
    assert len(response["status"]["message"]) < reviews.MAX_MESSAGE + 100
    assert len(response["status"]["details"]["causes"]) == 50


# Whatever comes

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
    max_leaves=30,
)
SAMPLES: dict[str, Any] = {
    "jobs": job(
        task("a", 2, dependsOn={"name": ["b"]}, topologyPolicy="none", template=template(tolerations=[{"key": "a"}])),
        task("b", partitionPolicy={"totalPartitions": 1, "partitionSize": 1}),
        plugins={"mpi": ["--master=a"]},
        volumes=[{"mountPath": "/x", "volumeClaimName": "v"}],
        policies=[{"event": "PodFailed", "action": "AbortJob"}],
    ),
    "queues": queue("q", parent="p", capability={"cpu": "1"}, guarantee={"resource": {"cpu": 1}}),
    "podgroups": {"spec": {"queue": "default", "networkTopology": {"highestTierAllowed": 1}}},
    "pods": {"metadata": {"annotations": {"volcano.sh/jdb-min-available": "1"}}, "spec": {"schedulerName": "volcano"}},
    "jobflows": {"spec": {"flows": [{"name": "a", "dependsOn": {"targets": ["a"]}}]}},
    "cronjobs": {"spec": {"schedule": "* * * * *", "timeZone": "UTC"}},
    "hypernodes": {"spec": {"members": [{"selector": {"regexMatch": {"pattern": "a("}}}]}},
}


@st.composite
def damaged(draw: st.DrawFn, value: Any) -> Any:
    """``value`` with some of its parts replaced by anything."""
    if draw(st.integers(0, 9)) == 0:
        return draw(ANYTHING)
    if isinstance(value, dict):
        return {key: draw(damaged(item)) for key, item in value.items()}
    if isinstance(value, list):
        return [draw(damaged(item)) for item in value]
    return value


@st.composite
def requests(draw: st.DrawFn) -> tuple[Endpoint, Any]:
    """A request for some endpoint, with objects that may be anything."""
    endpoint = draw(st.sampled_from(ENDPOINTS))
    sample = SAMPLES[endpoint.kind.plural]
    objects = ANYTHING | damaged(sample)
    asked = request(endpoint.path, None, operation=draw(st.sampled_from(["CREATE", "UPDATE", "DELETE"])))
    asked |= {"object": draw(objects), "oldObject": draw(objects)}
    return endpoint, draw(damaged(asked)) if draw(st.integers(0, 4)) == 0 else asked


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(requests())
def test_whatever_comes_is_answered_or_is_no_review(case: tuple[Endpoint, Any]) -> None:
    endpoint, content = case
    body = orjson.dumps({"request": content})
    try:
        asked = reviews.parse(body)
    except BadReview as error:
        assert str(error)
        return
    known = cluster(queue("p", capability={"cpu": "lots"}), queue("q", parent="p"))
    verdict = reviews.decide(endpoint, asked, context_of(asked, known))
    response = orjson.loads(reviews.answer(asked, verdict))["response"]
    assert response["uid"] == asked.uid
    assert verdict.allowed or verdict.message


@given(st.binary(max_size=64))
def test_whatever_bytes_come_they_are_read_or_refused(body: bytes) -> None:
    try:
        reviews.parse(body)
    except BadReview:
        pass


def test_numbers_beyond_64_bits_are_refused_politely() -> None:
    for number in (b"1e400", str(10**40).encode(), b"-0", str(math.pi).encode()):
        body = review(request("/jobs/validate", job())).replace(b'"replicas":1', b'"replicas":' + number)
        try:
            asked = reviews.parse(body)
        except BadReview:
            continue
        assert reviews.decide(BY_PATH["/jobs/validate"], asked, context_of(asked))
