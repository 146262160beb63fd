"""Policy files: what is read, what is refused in one line, what is ignored but reported."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.scheduler.core import policy_file
from stromboli.scheduler.core.policy import (
    DEFAULT_POLICY,
    SWITCH_NAMES,
    Arguments,
    PluginOption,
    Policy,
    PolicyError,
    Switches,
)


def weight_is_a_number(arguments: Arguments) -> Iterable[str]:
    if not isinstance(arguments.get("weight", 1), int):
        yield f"weight: expected a whole number, got {arguments['weight']!r}"


KNOWN = policy_file.Known(
    actions=dict.fromkeys(["enqueue", "allocate", "backfill", "preempt", "reclaim"]),
    plugins={
        **dict.fromkeys(
            ["priority", "gang", "conformance", "overcommit", "drf", "predicates", "proportion", "nodeorder"]
        ),
        "binpack": weight_is_a_number,
    },
)


def policy(content: str) -> Policy:
    loaded = policy_file.parse(content, KNOWN)
    assert loaded.problems == ()
    return loaded.policy


DEFAULT_TEXT = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""


def test_default_policy_is_what_its_documented_text_says() -> None:
    assert policy(DEFAULT_TEXT) == DEFAULT_POLICY


def test_every_switch_is_read_under_its_own_spelling() -> None:
    for name, attribute in SWITCH_NAMES.items():
        off = not getattr(Switches(), attribute)
        text = f"actions: allocate\ntiers:\n- plugins:\n  - name: gang\n    {name}: {str(off).lower()}\n"
        assert policy(text).tiers[0][0].switches == Switches(**{attribute: off})


def test_arguments_configurations_and_metrics_are_read() -> None:
    read = policy(
        dedent("""
        actions: allocate ,preempt
        tiers:
        - plugins:
          - name: binpack
            arguments: {weight: 3}
        configurations:
        - name: preempt
          arguments: {enableTopologyAwarePreemption: true}
        - name: preempt
          arguments: {ignored: true}
        metrics: {type: prometheus, interval: 30s, tls.insecureSkipVerify: true}
        """)
    )
    assert read.actions == ("allocate", "preempt")
    assert read.tiers == ((PluginOption("binpack", arguments={"weight": 3}),),)
    assert read.arguments_of("preempt") == {"enableTopologyAwarePreemption": True}
    assert read.metrics == {"type": "prometheus", "interval": "30s", "tls.insecureSkipVerify": "true"}


@pytest.mark.parametrize(
    ("line", "want"),
    [
        ("", False),
        ("tiersAgreeOnVictims: true", True),
        ("tiersAgreeOnVictims: false", False),
        ("tiersAgreeOnVictims:", False),
    ],
)
def test_tiers_agree_on_victims_only_when_asked_to(line: str, want: bool) -> None:
    assert policy(f"actions: allocate\n{line}\n").tiers_agree_on_victims is want


@dataclass
class Refused:
    content: str
    want: str


REFUSED = {
    "empty file": Refused("", "the file: expected a map, got nothing"),
    "no actions": Refused("tiers: []", "failed to find Action  (known: allocate,"),
    "unknown action, as written": Refused("actions: 'allocate, Alocate'", "failed to find Action  Alocate"),
    "unknown action with the nearest": Refused("actions: alocate", "did you mean allocate?"),
    "wrong case": Refused("actions: Allocate", "failed to find Action Allocate"),
    "trailing comma": Refused("actions: 'allocate,'", "failed to find Action "),
    "actions as a list": Refused("actions: [allocate]", "actions: expected text"),
    "broken YAML": Refused("actions: [", "not YAML: "),
    "a file of megabytes": Refused("# long\n" * 200_000, "the file: 1400000 bytes are too many"),
    "tiers as a map": Refused("actions: allocate\ntiers: {}", "tiers: expected a list, got a map"),
    "plugin as text": Refused("actions: allocate\ntiers: [{plugins: [gang]}]", "tiers[0].plugins[0]: expected a map"),
    "plugin without name": Refused("actions: allocate\ntiers: [{plugins: [{}]}]", "tiers[0].plugins[0].name: expected"),
    "switch that is text": Refused(
        "actions: allocate\ntiers: [{plugins: [{name: gang, enableJobOrder: sometimes}]}]",
        "tiers[0].plugins[0].enableJobOrder: expected true or false, got 'sometimes'",
    ),
    "agreement that is text": Refused(
        "actions: allocate\ntiersAgreeOnVictims: 'yes please'",
        "tiersAgreeOnVictims: expected true or false, got 'yes please'",
    ),
    "agreement that is a list": Refused(
        "actions: allocate\ntiersAgreeOnVictims: [preempt]",
        "tiersAgreeOnVictims: expected true or false, got a list",
    ),
    "arguments as a list": Refused(
        "actions: allocate\ntiers: [{plugins: [{name: gang, arguments: [1]}]}]",
        "tiers[0].plugins[0].arguments: expected a map, got a list",
    ),
    "hierarchical drf beside proportion": Refused(
        "actions: allocate\ntiers: [{plugins: [{name: drf, enableHierarchy: true}, {name: proportion}]}]",
        "proportion and drf with hierarchy enabled conflicts",
    ),
    "nested metrics": Refused("actions: allocate\nmetrics: {tls: {insecure: true}}", "metrics.tls: expected text"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_unusable_file_is_refused_in_one_line_that_names_the_place(case: Refused) -> None:
    with pytest.raises(PolicyError) as refused:
        policy_file.parse(case.content, KNOWN)
    assert case.want in str(refused.value)
    assert "\n" not in str(refused.value)


def test_hierarchical_drf_in_another_tier_than_proportion_is_accepted() -> None:
    policy(
        "actions: allocate\ntiers: [{plugins: [{name: drf, enableHierarchy: true}]}, {plugins: [{name: proportion}]}]"
    )


PROBLEMS = {
    "unknown plugin": (
        "actions: allocate\ntiers: [{plugins: [{name: gangs}]}]",
        "tiers[0].plugins[0].name: plugin 'gangs' is not known; did you mean gang?",
    ),
    "unknown switch": (
        "actions: allocate\ntiers: [{plugins: [{name: gang, enabledJobOrder: true}]}]",
        "tiers[0].plugins[0].enabledJobOrder: unknown switch; did you mean enableJobOrder?",
    ),
    "unknown top-level key": ("actions: allocate\ntier: []", "tier: unknown key; did you mean tiers?"),
    "argument of the wrong type": (
        "actions: allocate\ntiers: [{plugins: [{name: binpack, arguments: {weight: heavy}}]}]",
        "tiers[0].plugins[0].arguments (binpack): weight: expected a whole number, got 'heavy'",
    ),
    "configuration of an unknown action": (
        "actions: allocate\nconfigurations: [{name: prempt}]",
        "configurations[0].name: action 'prempt' is not known; did you mean preempt?",
    ),
}


@pytest.mark.parametrize(("content", "want"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_what_can_be_left_out_is_reported_and_the_rest_is_used(content: str, want: str) -> None:
    loaded = policy_file.parse(content, KNOWN)
    assert loaded.policy.actions == ("allocate",)
    assert len(loaded.problems) == 1
    assert loaded.problems[0].startswith(want)


switches = st.builds(Switches, **{attribute: st.booleans() for attribute in SWITCH_NAMES.values()})
words = st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S", "Zs"]), min_size=1, max_size=8)
arguments = st.dictionaries(words, st.integers() | st.booleans() | words)
options = st.builds(PluginOption, st.sampled_from(["gang", "priority", "nodeorder"]), switches, arguments)
policies = st.builds(
    Policy,
    st.lists(st.sampled_from(sorted(KNOWN.actions)), min_size=1, max_size=4).map(tuple),
    st.lists(st.lists(options, max_size=3).map(tuple), max_size=3).map(tuple),
    st.lists(st.tuples(st.sampled_from(sorted(KNOWN.actions)), arguments), max_size=2).map(tuple),
    st.dictionaries(words, words),
    st.booleans(),
)


@given(policies)
@settings(max_examples=40, deadline=None)
def test_rendered_policy_reads_back_as_itself(original: Policy) -> None:
    assert policy_file.parse(policy_file.render(original), KNOWN).policy == original
