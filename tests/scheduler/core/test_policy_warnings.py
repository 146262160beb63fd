"""Policies are warned about where plugins stand so that they are not heard."""

from __future__ import annotations

import pytest

from stromboli.scheduler.core.plugin import Hooks, Plugin
from stromboli.scheduler.core.policy import DEFAULT_POLICY, PluginOption, Policy, Tier
from stromboli.scheduler.core.policy_warnings import warnings
from stromboli.scheduler.core.view import View
from tests.scheduler.core.worlds import PLUGINS, option


def tier(*members: str | PluginOption) -> Tier:
    return tuple(PluginOption(one) if isinstance(one, str) else one for one in members)


USUAL = (tier("priority", "gang", "conformance"), tier("predicates", "capacity", "nodeorder"))
DEAF = tier(*(option(name, reclaimable=False) for name in ("gang", "conformance")))

CASES: dict[str, tuple[Policy, list[str]]] = {
    "nobody is evicted": (DEFAULT_POLICY, []),
    "the usual tiers": (
        Policy(("reclaim", "gangreclaim"), USUAL),
        [
            "reclaim: capacity in a later tier is asked about victims only when tier 1 (gang, conformance) allows",
            "gangreclaim: capacity in a later tier is asked about victims only when tier 1 (priority, gang,",
        ],
    ),
    "the other way round": (
        Policy(("reclaim",), USUAL[::-1]),
        ["reclaim: gang, conformance in a later tier is asked about victims only when tier 1 (capacity) allows none;"],
    ),
    "an action that is done twice is told about once": (
        Policy(("reclaim", "allocate", "reclaim"), USUAL),
        ["reclaim: "],
    ),
    "all in one tier": (Policy(("reclaim", "gangreclaim"), (USUAL[0] + USUAL[1],)), []),
    "the first tier is silenced": (Policy(("reclaim",), (DEAF, USUAL[1])), []),
    "tiers that agree": (Policy(("reclaim", "gangreclaim"), USUAL, tiers_agree_on_victims=True), []),
    "budgets with shuffle": (
        Policy(("allocate", "shuffle"), (tier("gang"), tier("pdb", "rescheduling"))),
        ["shuffle: pdb spares nobody there but adds, whenever its tier is asked, every Running pod that no"],
    ),
    "budgets that name nobody for shuffle": (
        Policy(("shuffle",), (tier("rescheduling", option("pdb", victim=False)),)),
        [],
    ),
    "budgets without shuffle": (Policy(("preempt",), (tier("gang", "pdb"),)), []),
    "shuffle without budgets": (Policy(("shuffle",), (tier("gang", "rescheduling", "tdm"),)), []),
    "plugins that are not known": (Policy(("reclaim",), (tier("conformity"), USUAL[1])), []),
}


@pytest.mark.parametrize("name", CASES)
def test_warnings(name: str) -> None:
    policy, want = CASES[name]
    found = warnings(policy, PLUGINS)
    assert len(found) == len(want), found
    for line, start in zip(found, want, strict=True):
        assert line.startswith(start)


def test_a_plugin_that_fails_to_open_warns_of_nothing() -> None:
    class Broken(Plugin):
        name = "broken"

        def open(self, view: View) -> Hooks:
            raise RuntimeError("no such file")

    policy = Policy(("reclaim",), (tier("broken"), tier("capacity")))
    assert warnings(policy, {**PLUGINS, "broken": Broken}) == []
