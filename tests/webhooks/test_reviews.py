"""Reviews: what is none, what is refused at the door, and that nothing brings a decision down (spec 07 section 3)."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from stromboli.webhooks import reviews
from stromboli.webhooks.endpoints import BY_PATH, ENDPOINTS, Endpoint
from stromboli.webhooks.reviews import BadReview
from tests.webhooks.building import context_of, decide, job, queue, request, review, task

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
                "causes": [
                    {
                        "reason": "FieldValueInvalid",
                        "field": "spec.capability.cpu",
                        "message": f'Invalid value: "-1": {fault}',
                    }
                ],
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


def test_an_object_that_is_too_deep_or_too_large_is_denied_with_the_reason() -> None:
    body = review(request("/jobs/validate", {"put": "here"}))
    deep, large = b'{"a":' * 300 + b"1" + b"}" * 300, b'{"a": [' + b"0," * 100_000 + b"0]}"
    for obj, want in ((deep, "nested deeper than 256"), (large, "more than 100000 values")):
        with pytest.raises(reviews.UnreadableObject) as unreadable:
            reviews.parse(body.replace(b'{"put":"here"}', obj))
        answer = orjson.loads(reviews.answer(unreadable.value.request, unreadable.value.verdict))["response"]
        assert (answer["uid"], answer["allowed"]) == ("9f4c", False)
        assert want in answer["status"]["message"]


def test_numbers_beyond_64_bits_are_refused_politely() -> None:
    for number in (b"1e400", str(10**40).encode(), b"-0", str(math.pi).encode()):
        body = review(request("/jobs/validate", job())).replace(b'"replicas":1', b'"replicas":' + number)
        try:
            asked = reviews.parse(body)
        except BadReview:
            continue
        assert reviews.decide(BY_PATH["/jobs/validate"], asked, context_of(asked))
