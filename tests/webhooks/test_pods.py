from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from stromboli.webhooks import pods
from stromboli.webhooks.admission_configuration import ConfigurationError, ResourceGroup, parse
from stromboli.webhooks.context import Context, Settings
from stromboli.webhooks.shapes import JsonObject
from tests.webhooks.building import decide

GATE = "scheduling.volcano.sh/queue-allocation-gate"
MANAGEMENT = """
resourceGroups:
- resourceGroup: management
  object: {key: namespace, value: [mng-1, mng-2]}
  schedulerName: default-scheduler
  labels: {volcano.sh/nodetype: management}
  tolerations: [{effect: NoSchedule, key: taint, operator: Exists}]
  affinity: '{"nodeAffinity": {}}'
- resourceGroup: gpu
  schedulerName: volcano
  labels: {volcano.sh/nodetype: gpu}
- resourceGroup: batch
  object: {key: annotation, value: ["team: batch", "- not a map", "team: other"]}
  tolerations: [{key: k, operator: Equal, value: v, effect: NoExecute, tolerationSeconds: 30}]
"""


def groups(text: str = MANAGEMENT) -> tuple[ResourceGroup, ...]:
    return parse(text).resource_groups


def pod(namespace: str = "team", annotations: Mapping[str, str] | None = None, **spec: Any) -> JsonObject:
    return {"metadata": {"name": "p", "namespace": namespace, "annotations": dict(annotations or {})}, "spec": spec}


def placed(obj: JsonObject, text: str = MANAGEMENT, *, gates: bool = False) -> JsonObject:
    settings = Settings(scheduling_gates_queue_admission=gates)
    spec: JsonObject = pods.default(obj, Context("CREATE", settings=settings, groups=groups(text)))["spec"]
    return spec


def test_a_pod_of_a_groups_namespace_is_placed() -> None:
    spec = placed(pod("mng-2", nodeSelector={"own": "1"}, tolerations=[{"key": "own"}], schedulerName="volcano"))
    assert spec == {
        "nodeSelector": {"own": "1", "volcano.sh/nodetype": "management"},
        "tolerations": [{"key": "own"}, {"key": "taint", "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": {"nodeAffinity": {}},
        "schedulerName": "default-scheduler",
    }


def test_an_affinity_of_its_own_is_kept() -> None:
    assert placed(pod("mng-1", affinity={"podAffinity": {}}))["affinity"] == {"podAffinity": {}}


def test_the_first_matching_group_decides() -> None:
    spec = placed(pod("mng-1", {"volcano.sh/resource-group": "gpu"}))
    assert spec["nodeSelector"] == {"volcano.sh/nodetype": "management"}
    assert placed(pod(annotations={"volcano.sh/resource-group": "gpu"}))["schedulerName"] == "volcano"


def test_of_repeated_annotation_values_the_first_counts() -> None:
    assert "tolerations" in placed(pod(annotations={"team": "batch"}))
    assert placed(pod(annotations={"team": "other"})) == {}


@pytest.mark.parametrize("spelling", ["tolerationSeconds", "tolerationseconds"])
def test_toleration_seconds_are_read_in_both_spellings(spelling: str) -> None:
    text = MANAGEMENT.replace("tolerationSeconds", spelling)
    assert placed(pod(annotations={"team": "batch"}), text)["tolerations"][0]["tolerationSeconds"] == 30


def test_a_bad_affinity_is_left_out() -> None:
    text = "resourceGroups: [{resourceGroup: x, object: {key: namespace, value: [team]}, affinity: '{nope'}]"
    assert "affinity" not in placed(pod(), text)


def test_without_a_file_nothing_is_changed() -> None:
    asked = pod(annotations={GATE: "true"})
    settings = Settings(scheduling_gates_queue_admission=True)
    assert pods.default(asked, Context("CREATE", settings=settings)) == asked


ONLY_COMMENTS = "# resourceGroups:\n"


def test_a_pod_that_asks_for_it_is_gated() -> None:
    asked = pod(annotations={GATE: "true"}, schedulerName="volcano", schedulingGates=[{"name": "x/y"}])
    assert placed(asked, ONLY_COMMENTS, gates=True)["schedulingGates"] == [{"name": "x/y"}, {"name": GATE}]
    assert placed(asked, ONLY_COMMENTS)["schedulingGates"] == [{"name": "x/y"}]


UNGATED = {
    "it says no": pod(annotations={GATE: "false"}, schedulerName="volcano"),
    "another scheduler would never open the gate": pod(annotations={GATE: "true"}, schedulerName="default-scheduler"),
    "it says nothing": pod(schedulerName="volcano"),
}


@pytest.mark.parametrize("name", UNGATED)
def test_a_pod_is_not_gated(name: str) -> None:
    assert "schedulingGates" not in placed(UNGATED[name], ONLY_COMMENTS, gates=True)


def test_a_gate_is_not_added_twice() -> None:
    asked = pod(annotations={GATE: "true"}, schedulerName="volcano", schedulingGates=[{"name": GATE}])
    assert placed(asked, ONLY_COMMENTS, gates=True)["schedulingGates"] == [{"name": GATE}]


BAD_FILES = {
    "no YAML": ("{{", "not valid YAML"),
    "no map": ("- a\n", "document"),
    "groups that are no list": ("resourceGroups: 3\n", "resourceGroups"),
    "a label that is a number": ("resourceGroups: [{labels: {a: [1]}}]\n", "resourceGroups.0.labels.a"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_named(name: str) -> None:
    text, want = BAD_FILES[name]
    with pytest.raises(ConfigurationError, match=want):
        parse(text)


MIN, MAX = "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"
SYNTAX = 'invalid value strconv.Atoi: parsing "{}": invalid syntax for ' + MIN
POSITIVE = 'invalid value <"{}"> for ' + MIN + ", it must be a positive integer"
PERCENTAGE = 'invalid value <"{}"> for ' + MIN + ", it must be a valid percentage which between 1% ~ 99%"
BUDGETS = {
    "1": "", "+5": "", "007": "", "50%": "", "%50": "", "5%%": "", "99%": "",
    "0": POSITIVE.format("0"), "-1": POSITIVE.format("-1"),
    "100%": PERCENTAGE.format("100%"), "2147483648": PERCENTAGE.format("2147483648"),
    "abc": SYNTAX.format("abc"), "": SYNTAX.format(""), " 5": SYNTAX.format(" 5"), "50.5%": SYNTAX.format("50.5"),
    "٣": SYNTAX.format("٣"),
    "9" * 30: f'invalid value strconv.Atoi: parsing "{"9" * 30}": value out of range for {MIN}',
}  # fmt: skip


@pytest.mark.parametrize("value", BUDGETS)
def test_a_disruption_budget(value: str) -> None:
    verdict = decide("/pods/validate", pod(annotations={MIN: value}, schedulerName="volcano"))
    assert (verdict.allowed, verdict.message) == (not BUDGETS[value], BUDGETS[value])


def test_two_budgets_contradict_each_other() -> None:
    verdict = decide("/pods/validate", pod(annotations={MIN: "1", MAX: "1"}, schedulerName="volcano"))
    assert verdict.message == f"not allow configure multiple annotations <[{MIN} {MAX}]> at same time"


def test_pods_of_other_schedulers_are_none_of_our_business() -> None:
    assert decide("/pods/validate", pod(annotations={MIN: "abc"}, schedulerName="default-scheduler")).allowed


def test_a_hostile_number_costs_nothing() -> None:
    verdict = decide("/pods/validate", pod(annotations={MIN: "9" * 200_000}, schedulerName="volcano"))
    assert not verdict.allowed
