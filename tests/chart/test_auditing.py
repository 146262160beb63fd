"""The check of roles against an audit log."""

from __future__ import annotations

import json

from e2e.realcluster import auditing
from e2e.realcluster.auditing import Permission

from stromboli.kube.json import JsonObject
from tests.chart.conftest import Render

NAMESPACE = "volcano-system"


async def test_every_reason_is_for_a_verb_that_is_granted(rendered: Render) -> None:
    granted = auditing.granted(await rendered(leader_elect_enable=True), NAMESPACE)
    stale = [
        key
        for key in auditing.EXPECTED_UNUSED
        if not any(auditing._is_explained(one, {key: "reason"}) for one in granted)
    ]
    assert stale == []


def role(*rules: tuple[str, str, list[str]]) -> JsonObject:
    listed = [{"apiGroups": [group], "resources": [resource], "verbs": verbs} for group, resource, verbs in rules]
    return {"kind": "ClusterRole", "metadata": {"name": "robot"}, "rules": listed}


def binding() -> JsonObject:
    return {
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "robot-role"},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": NAMESPACE}],
        "roleRef": {"kind": "ClusterRole", "name": "robot"},
    }


def request(verb: str, resource: str, *, group: str = "", subresource: str = "", **more: object) -> str:
    return json.dumps(
        {
            "user": {"username": f"system:serviceaccount:{NAMESPACE}:robot"},
            "verb": verb,
            "objectRef": {"resource": resource, "apiGroup": group, "subresource": subresource},
            "responseStatus": {"code": 200},
            **more,
        }
    )


def forbidden(verb: str, resource: str, decision: str) -> str:
    notes = {"authorization.k8s.io/decision": decision}
    return request(verb, resource, responseStatus={"code": 403}, annotations=notes)


def check(log: list[str], *rules: tuple[str, str, list[str]], reasons: auditing.Reasons | None = None) -> list[str]:
    return auditing.check(log, [role(*rules), binding()], NAMESPACE, reasons or {}).lines


def test_roles_that_are_used_in_full_have_no_fault() -> None:
    log = [request("get", "pods"), request("patch", "pods", subresource="status"), request("get", "jobs", group="b.x")]
    assert check(log, ("", "pods", ["get"]), ("", "pods/status", ["patch"]), ("b.x", "jobs", ["get"])) == []


def test_a_verb_that_was_never_used_is_named() -> None:
    assert check([request("get", "pods")], ("", "pods", ["get", "delete"])) == [
        "granted and never used: robot: delete pods"
    ]


def test_the_same_resource_of_another_group_is_no_use() -> None:
    assert check([request("get", "jobs", group="batch")], ("batch.volcano.sh", "jobs", ["get"])) == [
        "granted and never used: robot: get jobs.batch.volcano.sh"
    ]


def test_a_verb_with_a_reason_may_be_unused() -> None:
    reasons = {("robot", "jobs.batch", "get"): "rare", ("robot", "pods", "get"): "rare"}
    assert check([], ("batch", "jobs", ["get"]), ("", "pods", ["get"]), reasons=reasons) == []


def test_a_reason_of_one_component_is_none_for_another() -> None:
    reasons = {("other", "pods", "get"): "rare"}
    assert check([], ("", "pods", ["get"]), reasons=reasons) == ["granted and never used: robot: get pods"]


def test_a_request_that_roles_forbade_is_named_once() -> None:
    log = [forbidden("list", "nodes", "forbid")] * 3
    assert check(log) == ["forbidden: robot: list nodes"]


def test_a_permission_that_was_not_read_yet_after_a_restart_is_no_fault_of_roles() -> None:
    assert check([forbidden("list", "nodes", "forbid"), request("list", "nodes")], ("", "nodes", ["list"])) == []


def test_a_request_that_admission_forbade_is_no_fault_of_roles() -> None:
    assert check([forbidden("create", "pods", "allow")], ("", "pods", ["create"])) == []


def test_requests_of_others_and_about_no_resource_do_not_count() -> None:
    other = json.loads(request("get", "pods"))
    other["user"]["username"] = "admin"
    version = json.loads(request("get", "pods"))
    del version["objectRef"]
    assert check([json.dumps(other), json.dumps(version)], ("", "pods", ["get"])) == [
        "granted and never used: robot: get pods"
    ]


def test_permissions_read_well() -> None:
    assert str(Permission("robot", "batch.volcano.sh", "jobs/status", "patch")) == (
        "robot: patch jobs/status.batch.volcano.sh"
    )
