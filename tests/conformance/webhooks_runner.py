"""Runs the admission vectors against the decisions of ``stromboli.webhooks``.

Each case goes in as the bytes of an AdmissionReview and comes out as the bytes of the answer, at the strict level of
the vectors' README. :data:`BETTER` lists the cases in which the original's answer is a defect by the specification;
for these the better answer is checked, and they count as not applicable.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonpatch
import orjson

from stromboli.webhooks import reviews
from stromboli.webhooks.admission_configuration import ResourceGroup, from_document
from stromboli.webhooks.context import Context, KnownCluster, Settings
from stromboli.webhooks.endpoints import BY_PATH
from stromboli.webhooks.podtemplates import LocalTemplates
from stromboli.webhooks.shapes import JsonObject, Queue, read
from tests.conformance.exclusions import Exclusions
from tests.conformance.reports import CaseReport, FileReport, selected

UID = "705ab4f5-6393-11e8-b7cc-42010a800002"


@dataclass(frozen=True, slots=True)
class Better:
    """Why the recorded answer is not given, and the one that is."""

    reason: str
    expect: JsonObject


def _refused(reason: str, message: str) -> Better:
    return Better(reason, {"allowed": False, "message": message, "messageContains": message})


_CLOSING = "spec edits are never judged by status (spec 07 §14.1, pain P30)"
_FINITE = "infinite and undefined weights are refused (spec 07 §14.1)"
_CYCLE = "parent cycles are refused (spec 07 §14.3)"
_SUBTREE = "depth counts the moved subtree (spec 07 §14.3)"
_EMPTY_QUEUE = "an empty queue annotation is ignored (spec 07 §11)"
_SERVER = "what current API servers accept in templates is left to them (spec 07 §9.4)"
_SECONDS = "tolerationSeconds is accepted in both spellings (spec 07 §15.1)"

BETTER: dict[str, Better] = {
    "queues-validate.json::probe/update of a queue in state Closing is refused": Better(_CLOSING, {"allowed": True}),
    "queues-validate.json::probe/weight infinity and NaN pass": _refused(
        _FINITE,
        'requestBody.metadata.annotations: Invalid value: "inf/nan": inf in the inf/nan must be a finite number',
    ),
    "queues-validate.json::probe/moving a queue below its own child is accepted": _refused(
        _CYCLE, "queue a cannot be placed below its own descendant b"
    ),
    "queues-validate.json::probe/depth ignores own subtree when moved": _refused(
        _SUBTREE, "queue m exceeds the maximum allowed depth of 5"
    ),
    "jobs-validate.json::probe/template: container level restart policy refused": Better(_SERVER, {"allowed": True}),
    "jobs-validate.json::probe/template: sleep hook of zero seconds": Better(_SERVER, {"allowed": True}),
    "podgroups-mutate.json::probe/annotation with empty value": Better(_EMPTY_QUEUE, {"allowed": True}),
    "pods-mutate.json::probe/toleration seconds in the file": Better(_SECONDS, {"allowed": True}),
}


def run(directory: Path, only: str | None = None) -> Iterator[FileReport]:
    """Reports of all files of admission vectors in ``directory``."""
    exclusions = Exclusions.read()
    for path in sorted(directory.glob("*.json")):
        report = FileReport(path.name)
        for case in orjson.loads(path.read_bytes())["cases"]:
            if selected(only, path.name, case["name"]):
                report.cases.append(run_case(path.name, case, exclusions))
        yield report


def run_case(file: str, case: JsonObject, exclusions: Exclusions) -> CaseReport:
    """The verdict on one case."""
    name = case["name"]
    if (reason := exclusions.reason(file, name)) is not None:
        return CaseReport.not_applicable(name, reason)
    better = BETTER.get(f"{file}::{name}")
    found = list(differences(case, better.expect if better else case["expect"]))
    if better is None or found:
        return CaseReport.judged(name, found)
    return CaseReport.not_applicable(name, better.reason)


def differences(case: JsonObject, expect: JsonObject) -> Iterator[str]:
    """Where the answer to a case differs from what is expected; nothing for a case that holds."""
    response = respond(case)
    if response["uid"] != UID:
        yield f"uid: got {response['uid']!r}"
    if response["allowed"] != expect["allowed"]:
        yield f"allowed: expected {expect['allowed']}, got {response['allowed']} ({response.get('status')})"
        return
    message = response.get("status", {}).get("message", "")
    if "messageContains" in expect and expect["messageContains"] not in message:
        yield f"message: expected to contain {expect['messageContains']!r}, got {message!r}"
    if "message" in expect and expect["message"] != message:
        yield f"message: expected {expect['message']!r}, got {message!r}"
    if "patchedObject" in expect:
        wanted, got = pruned(expect["patchedObject"]), pruned(patched(case["object"], response))
        if wanted != got:
            yield f"patched object: expected {wanted}, got {got}"


def respond(case: JsonObject) -> JsonObject:
    """``response`` of the answer to a case, after a trip through bytes."""
    request = reviews.parse(orjson.dumps(review(case)))
    verdict = reviews.decide(BY_PATH[case["path"]], request, context(case, request))
    response: JsonObject = orjson.loads(reviews.answer(request, verdict))["response"]
    return response


def review(case: JsonObject) -> JsonObject:
    """The AdmissionReview that an API server would send."""
    kind = BY_PATH[case["path"]].kind
    return {
        "apiVersion": reviews.API_VERSION,
        "kind": reviews.KIND,
        "request": {
            "uid": UID,
            "kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
            "resource": {"group": kind.group, "version": kind.version, "resource": kind.plural},
            "name": case["requestName"],
            "namespace": case.get("namespace", ""),
            "operation": case["operation"],
            "object": case["object"],
            "oldObject": case["oldObject"],
        },
    }


def context(case: JsonObject, request: reviews.Request) -> Context:
    """The cluster and settings of a case."""
    config, settings = case["config"], settings_of(case["config"])
    return Context(
        operation=request.operation,
        name=request.name,
        namespace=request.namespace,
        settings=settings,
        cluster=cluster(case["existing"]),
        templates=LocalTemplates(pod_level_resources=settings.pod_level_resources),
        groups=_groups(config.get("admissionConf")),
    )


def settings_of(config: JsonObject) -> Settings:
    """Server settings of a case."""
    gates, usual = config.get("featureGates", {}), Settings()
    return Settings(
        scheduler_names=tuple(config.get("schedulerNames", usual.scheduler_names)),
        max_queue_depth=config.get("maxQueueDepth", usual.max_queue_depth),
        enable_queue_allocated_pods_check=config.get("enableQueueAllocatedPodsCheck", False),
        enable_root_queue_protection=config.get("enableRootQueueProtection", True),
        scheduling_gates_queue_admission=gates.get("SchedulingGatesQueueAdmission", False),
        pod_level_resources=gates.get("PodLevelResources", True),
    )


def cluster(existing: list[JsonObject]) -> KnownCluster:
    """What exists in a case."""
    queues = [read(Queue, obj) for obj in existing if obj["kind"] == "Queue"]
    namespaces = [obj["metadata"] for obj in existing if obj["kind"] == "Namespace"]
    return KnownCluster(
        {queue.name: queue for queue in queues},
        {metadata["name"]: metadata.get("annotations", {}) for metadata in namespaces},
    )


def _groups(document: JsonObject | None) -> tuple[ResourceGroup, ...] | None:
    return None if document is None else from_document(document).resource_groups


def patched(obj: JsonObject, response: JsonObject) -> JsonObject:
    """The object after the response's patch."""
    if "patch" not in response:
        return obj
    result: JsonObject = jsonpatch.apply_patch(obj, orjson.loads(base64.b64decode(response["patch"])))
    return result


def pruned(value: Any) -> Any:
    """``value`` with empty objects taken as absent, as the vectors' README asks."""
    if isinstance(value, dict):
        members = {name: pruned(item) for name, item in value.items()}
        return {name: item for name, item in members.items() if item != {}}
    return [pruned(item) for item in value] if isinstance(value, list) else value
