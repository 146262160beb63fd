"""Which writes a webhook concerns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.localcluster.admission.webhooks.conditions import ConditionError, evaluate, hold
from stromboli.localcluster.admission.webhooks.matching import Hook, concerns, hooks, matching
from stromboli.localcluster.extending import SYSTEM, AdmissionRequest, Operation
from stromboli.localcluster.storage import Key, Object, Store


def request(
    kind: Kind = kinds.PODS,
    operation: Operation = "CREATE",
    subresource: str = "",
    obj: Object | None = None,
    old: Object | None = None,
    namespace: str = "default",
) -> AdmissionRequest:
    return AdmissionRequest(
        operation, kind, namespace if kind.namespaced else "", "x", obj if obj is not None else {"metadata": {}}, old,
        SYSTEM, subresource,
    )  # fmt: skip


def rule(**fields: Any) -> Object:
    return {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], **fields}


@dataclass(frozen=True)
class Case:
    want: bool
    rule: Object = field(default_factory=rule)
    request: AdmissionRequest = field(default_factory=request)


RULES = {
    "exactly what is written": Case(True),
    "another operation": Case(False, request=request(operation="UPDATE")),
    "every operation": Case(True, rule(operations=["*"]), request(operation="DELETE")),
    "another group": Case(False, rule(apiGroups=["apps"])),
    "every group": Case(True, rule(apiGroups=["*"])),
    "another version": Case(False, rule(apiVersions=["v2"])),
    "every version": Case(True, rule(apiVersions=["*"])),
    "another resource": Case(False, rule(resources=["services"])),
    "every resource": Case(True, rule(resources=["*"])),
    "the resource is not its subresources": Case(False, request=request(subresource="status")),
    "every resource is no subresource": Case(False, rule(resources=["*"]), request(subresource="status")),
    "a subresource": Case(True, rule(resources=["pods/status"]), request(subresource="status")),
    "a subresource is not the resource": Case(False, rule(resources=["pods/status"])),
    "all subresources": Case(True, rule(resources=["pods/*"]), request(subresource="binding")),
    "all subresources are not the resource": Case(False, rule(resources=["pods/*"])),
    "one subresource of every resource": Case(True, rule(resources=["*/status"]), request(subresource="status")),
    "everything": Case(True, rule(resources=["*/*"]), request(subresource="status")),
    "everything includes the resource": Case(True, rule(resources=["*/*"])),
    "namespaced only": Case(True, rule(scope="Namespaced")),
    "cluster only": Case(False, rule(scope="Cluster")),
    "cluster only, cluster-scoped": Case(
        True, rule(scope="Cluster", resources=["nodes"]), request(kinds.NODES)
    ),
    "a namespace is cluster-scoped": Case(
        False, rule(scope="Namespaced", resources=["namespaces"]), request(kinds.NAMESPACES)
    ),
    "nothing listed": Case(False, rule(operations=[])),
}  # fmt: skip


@pytest.mark.parametrize("case", RULES.values(), ids=RULES.keys())
def test_rules(case: Case) -> None:
    assert concerns({"rules": [case.rule]}, case.request) is case.want


def test_one_rule_of_several_is_enough() -> None:
    assert concerns({"rules": [rule(resources=["nodes"]), rule()]}, request())


@dataclass(frozen=True)
class Selection:
    want: bool
    request: AdmissionRequest
    namespaces: Object | None = None
    objects: Object | None = None


TEAM = {"matchLabels": {"team": "a"}}
NOT_TEAM = {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]}
LABELLED: Object = {"metadata": {"labels": {"team": "a"}}}
SELECTIONS = {
    "no selectors": Selection(True, request()),
    "an empty selector": Selection(True, request(), {}, {}),
    "the namespace has the label": Selection(True, request(namespace="a"), TEAM),
    "the namespace lacks the label": Selection(False, request(), TEAM),
    "an excluded namespace": Selection(False, request(namespace="a"), NOT_TEAM),
    "a namespace that is not there has no labels": Selection(True, request(namespace="none"), NOT_TEAM),
    "cluster-scoped objects are never excluded": Selection(True, request(kinds.NODES), TEAM),
    "a namespace goes by its own labels": Selection(True, request(kinds.NAMESPACES, obj=LABELLED), TEAM),
    "another namespace goes by its own labels": Selection(False, request(kinds.NAMESPACES), TEAM),
    "the object has the label": Selection(True, request(obj=LABELLED), objects=TEAM),
    "the object lacks the label": Selection(False, request(), objects=TEAM),
    "the old object had it": Selection(True, request(operation="UPDATE", old=LABELLED), objects=TEAM),
}


@pytest.mark.parametrize("case", SELECTIONS.values(), ids=SELECTIONS.keys())
def test_selectors(case: Selection) -> None:
    store = Store()
    for name, labels in (("default", {}), ("a", {"team": "a"})):
        store.create(Key.of(kinds.NAMESPACES, None, name), {"metadata": {"name": name, "labels": labels}})
    every = rule(operations=["*"], apiGroups=["*"], resources=["*"])
    spec: Object = {"name": "w", "rules": [every]}
    if case.namespaces is not None:
        spec["namespaceSelector"] = case.namespaces
    if case.objects is not None:
        spec["objectSelector"] = case.objects
    assert bool(list(matching(case.request, [Hook("c", spec)], store))) is case.want


def test_webhook_configurations_are_exempt() -> None:
    every = rule(apiGroups=["*"], resources=["*"])
    asked = request(kinds.VALIDATING_WEBHOOKS)
    assert not list(matching(asked, [Hook("c", {"name": "w", "rules": [every]})], Store()))


def test_webhooks_are_called_by_configuration_name_and_then_as_written() -> None:
    store = Store()
    for name, webhooks in (("b", ["1", "2"]), ("a", ["3"])):
        obj = {"metadata": {"name": name}, "webhooks": [{"name": webhook} for webhook in webhooks]}
        store.create(Key.of(kinds.MUTATING_WEBHOOKS, None, name), obj)
    assert [hook.name for hook in hooks("mutating", store)] == ["3", "1", "2"]
    assert hooks("validating", store) == []


VARIABLES = {
    "request": {"operation": "CREATE", "userInfo": {"username": "system:node:n", "groups": ["a", "b"]}},
    "object": {"metadata": {"name": "x", "labels": {"a/b": "c"}}, "spec": {"replicas": 3}},
    "oldObject": None,
}
EXPRESSIONS: dict[str, object] = {
    'request.operation == "CREATE"': True,
    "request.operation != 'CREATE'": False,
    "'a' in request.userInfo.groups": True,
    "!('c' in request.userInfo.groups)": True,
    '!request.userInfo.username.startsWith("system:")': False,
    "request.operation == 'DELETE' || object.spec.replicas > 2": True,
    "object.spec.replicas >= 3 && object.spec.replicas <= 3": True,
    "object.spec.replicas < 3": False,
    "has(object.spec.replicas)": True,
    "has(object.spec.other)": False,
    "has(object.metadata.labels) && 'a/b' in object.metadata.labels": True,
    "object.metadata.labels['a/b'] == 'c'": True,
    "oldObject == null": True,
    "size(object.metadata.name) == 1": True,
    "object.metadata.name.size() == 1": True,
    "object.metadata.name.matches('^[x-z]$')": True,
    "object.metadata.name.contains('y')": False,
    "object.metadata.name.endsWith('x')": True,
    "request.operation in ['CREATE', 'UPDATE']": True,
    "object.spec.missing == 1 || true": True,
    "object.spec.missing == 1 && false": False,
    "'&& true || !' == '&& true || !'": True,
}


@pytest.mark.parametrize(("expression", "want"), EXPRESSIONS.items())
def test_conditions(expression: str, want: object) -> None:
    assert evaluate(expression, VARIABLES) is want


@pytest.mark.parametrize(
    "expression",
    [
        "object.spec.missing == 1",
        "object.items.exists(i, i > 1)",
        "authorizer.path('/x').check('get').allowed()",
        "request.operation ==",
        "__import__('os')",
        "(lambda: 1)()",
        "object.__class__",
        "request.userInfo.username.format('x')",
        "1 + 1 == 2",
        "'a' < 1",
        "object.spec.replicas && true",
        "",
    ],
)
def test_what_is_not_understood_is_an_error(expression: str) -> None:
    with pytest.raises(ConditionError):
        evaluate(expression, VARIABLES)


def test_a_false_condition_decides_over_a_failing_one() -> None:
    broken, false = {"name": "a", "expression": "object.missing"}, {"name": "b", "expression": "1 == 2"}
    assert hold([], request())
    assert not hold([broken, false], request())
    with pytest.raises(ConditionError, match="match condition 'a': no such key: missing"):
        hold([broken, {"name": "c", "expression": "1 == 1"}], request())
