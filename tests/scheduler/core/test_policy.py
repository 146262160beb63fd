"""The policy as data (spec 04 section 3)."""

from __future__ import annotations

from dataclasses import fields

import pytest

from stromboli.scheduler.actions import ACTIONS
from stromboli.scheduler.core.policy import (
    ALL_OFF,
    DEFAULT_POLICY,
    SWITCH_NAMES,
    PluginOption,
    Policy,
    PolicyError,
    Switches,
    boolean,
    check,
    integer,
    number,
    text,
)

KNOWN = frozenset(ACTIONS)


def test_everything_is_on_but_hierarchy_and_cluster_order() -> None:
    off = {entry.name for entry in fields(Switches) if not getattr(Switches(), entry.name)}
    assert off == {"hierarchy", "cluster_order"}


def test_every_switch_has_one_spelling() -> None:
    assert sorted(SWITCH_NAMES.values()) == sorted(entry.name for entry in fields(Switches)) == sorted(ALL_OFF)
    assert not any(getattr(Switches(**ALL_OFF), name) for name in ALL_OFF)


def test_the_default_policy_is_valid_and_as_specified() -> None:
    check(DEFAULT_POLICY, KNOWN)
    assert DEFAULT_POLICY.actions == ("enqueue", "allocate", "backfill")
    assert [[option.name for option in tier] for tier in DEFAULT_POLICY.tiers] == [
        ["priority", "gang", "conformance"],
        ["overcommit", "drf", "predicates", "proportion", "nodeorder"],
    ]


@pytest.mark.parametrize("action", ["", "Enqueue", "elect"])
def test_an_unknown_action_is_named(action: str) -> None:
    with pytest.raises(PolicyError, match=f"^failed to find Action {action}$"):
        check(Policy(("enqueue", action), ()), KNOWN)


DRF = PluginOption("drf", Switches(hierarchy=True))
PROPORTION = PluginOption("proportion")


def test_hierarchical_drf_and_proportion_exclude_each_other_within_a_tier_only() -> None:
    with pytest.raises(PolicyError, match="^proportion and drf with hierarchy enabled conflicts$"):
        check(Policy(("allocate",), ((PROPORTION, DRF),)), KNOWN)
    check(Policy(("allocate",), ((DRF,), (PROPORTION,))), KNOWN)
    check(Policy(("allocate",), ((PluginOption("drf"), PROPORTION),)), KNOWN)


def test_the_first_entry_of_a_name_wins() -> None:
    policy = Policy((), ((DRF,), (PluginOption("drf"),)), (("allocate", {"a": 1}), ("allocate", {"a": 2})))
    assert policy.arguments_of("allocate") == {"a": 1}
    assert policy.arguments_of("backfill") == {}
    assert policy.option("drf") is DRF
    assert policy.option("gang") is None


@pytest.mark.parametrize(("value", "want"), [(10, 10), ("10", 7), ("", 7), (1.5, 7), (True, 7), (None, 7)], ids=repr)
def test_integers_are_only_integers(value: object, want: int) -> None:
    assert integer({"key": value}, "key", 7) == want


@pytest.mark.parametrize(("value", "want"), [(1.5, 1.5), (2, 2.0), ("1.5", 7.0), (False, 7.0)], ids=repr)
def test_numbers_are_floats_or_integers(value: object, want: float) -> None:
    assert number({"key": value}, "key", 7.0) == want


@pytest.mark.parametrize(
    ("value", "want"),
    [(False, False), ("true", True), ("T", True), ("0", False), ("FALSE", False), ("yes", None), (1, None)],
    ids=repr,
)
def test_booleans_may_be_words(value: object, want: bool | None) -> None:
    for default in (True, False):
        assert boolean({"key": value}, "key", default) is (default if want is None else want)


def test_text_is_only_text() -> None:
    assert text({"key": "a"}, "key", "b") == "a"
    assert text({"key": 1}, "key", "b") == text({}, "key", "b") == "b"
