"""Arguments, exclusive rules and the device configuration."""

from __future__ import annotations

import pytest

from stromboli.api import core
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.plugins.deviceshare import DeviceShare, exclusive
from stromboli.scheduler.plugins.deviceshare.configuration import DEFAULTS, FILE, BadConfiguration, of, parse
from stromboli.scheduler.plugins.deviceshare.settings import Settings
from stromboli.scheduler.registering import argument_check
from tests.scheduler.core.worlds import policy, run_cycle
from tests.scheduler.plugins.deviceshare.stage import cluster, devices
from tests.scheduler.plugins.sessions import Session


def test_without_arguments_everything_is_off() -> None:
    assert Settings.read({}) == Settings()


FORBIDDEN: dict[str, tuple[dict[str, object], str]] = {
    "memory and whole cards": (
        {"deviceshare.GPUSharingEnable": True, "deviceshare.GPUNumberEnable": True},
        "can not define true in both gpu sharing and gpu number",
    ),
    "two schemes for the same cards": (
        {"deviceshare.GPUSharingEnable": True, "deviceshare.VGPUEnable": "true"},
        "gpu-share and vgpu can't be used together",
    ),
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_what_cannot_be_on_together_is_refused_when_the_policy_is_loaded(name: str) -> None:
    arguments, message = FORBIDDEN[name]
    check = argument_check(DeviceShare)
    assert check is not None
    assert [complaint for complaint in check(arguments) if message in complaint]


def test_a_forbidden_combination_in_a_running_cycle_is_a_problem_and_places_nothing() -> None:
    arguments, message = FORBIDDEN["memory and whole cards"]
    both = devices(**{key.removeprefix("deviceshare."): value for key, value in arguments.items()})
    result = run_cycle(cluster(), policy(both))
    assert [problem for problem in result.problems if message in problem]


def test_arguments_of_the_wrong_type_are_named() -> None:
    check = argument_check(DeviceShare)
    assert check is not None
    (complaint,) = check({"deviceshare.ScheduleWeight": "ten"})
    assert complaint.startswith("deviceshare.ScheduleWeight")


RULES: dict[str, tuple[object, list[dict[str, str]]]] = {
    "nothing": (None, []),
    "no list": ("training", []),
    "an empty list": ([], []),
    "an empty rule": ([{}], []),
    "what is no rule": (["training", {"app": "training"}], [{"app": "training"}]),
    "values that are no text": ([{"app": "training", "level": 3}, {"level": 3}], [{"app": "training"}]),
}


@pytest.mark.parametrize("name", RULES)
def test_rules_of_exclusive_cards(name: str) -> None:
    raw, want = RULES[name]
    assert list(exclusive.parse(raw)) == want


TRAINING, INFERENCE = {"app": "training", "team": "ml"}, {"workload": "inference"}
LABELS: dict[str, tuple[dict[str, str], set[int]]] = {
    "all labels and one more": ({**TRAINING, "x": "y"}, {0}),
    "not all labels": ({"app": "training"}, set()),
    "another value": ({"app": "training", "team": "web"}, set()),
    "the other rule": (INFERENCE, {1}),
    "both": ({**TRAINING, **INFERENCE}, {0, 1}),
    "no labels": ({}, set()),
}


@pytest.mark.parametrize("name", LABELS)
def test_pods_match_rules_by_all_labels(name: str) -> None:
    labels, want = LABELS[name]
    assert exclusive.matching(labels, (TRAINING, INFERENCE)) == want


def test_what_a_document_leaves_out_is_taken_from_the_defaults() -> None:
    found = parse("nvidia: {gpuMemoryFactor: 4}").completed()
    assert found.nvidia.gpu_memory_factor == 4
    assert found.nvidia.resource_count_name == "volcano.sh/vgpu-number"
    assert found.vnpus == DEFAULTS.vnpus


def test_templates_are_sorted_by_memory() -> None:
    text = "vnpus: [{commonWord: W, templates: [{name: b, memory: 2}, {name: a, memory: 1}]}]"
    assert [template.name for template in parse(text).vnpus.configs[0].templates] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nvidia: [", "not YAML"),
        ("- 1", "not a mapping"),
        ("vnpus: 3", "vnpus"),
        ("nvidia: {gpuMemoryFactor: many}", "nvidia.gpuMemoryFactor"),
    ],
)
def test_a_bad_document_is_named(text: str, message: str) -> None:
    with pytest.raises(BadConfiguration, match=message):
        parse(text)


def config_map(text: str) -> core.ConfigMap:
    meta = core.ObjectMeta(name="volcano-vgpu-device-config", namespace="kube-system")
    return core.ConfigMap(metadata=meta, data={FILE: text})


def factor(mirror: Mirror) -> tuple[int, list[str]]:
    session = Session(mirror=mirror, plugins=[devices(VGPUEnable=True)])
    return of(session.view, Settings(vgpu=True)).nvidia.gpu_memory_factor, session.view.warnings


def test_a_changed_config_map_counts_and_a_bad_one_leaves_what_was_before() -> None:
    mirror = cluster()
    assert factor(mirror) == (0, [])
    mirror.apply_object(config_map("nvidia: {gpuMemoryFactor: 2}"))
    assert factor(mirror) == (2, [])
    mirror.apply_object(config_map("nvidia: 3"))
    kept, warnings = factor(mirror)
    assert kept == 2
    assert warnings[0].startswith("ConfigMap kube-system/volcano-vgpu-device-config: device-config.yaml is not used")
    assert factor(mirror) == (2, warnings)
    mirror.delete_object(core.ConfigMap, ("kube-system", "volcano-vgpu-device-config"))
    assert factor(mirror) == (0, [])
