"""What in a policy does probably not do what its writer expects: said at start, at a reload, by checks and by lint.

Who has a say is found by opening the plugins on an empty cluster, so that it is what the scheduler will hear. A policy
that is warned about is in force all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stromboli.scheduler.core.combining import Combination
from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.plugin import Plugin
from stromboli.scheduler.core.policy import TIERS_AGREE, Policy

POINTS_ASKED: Mapping[str, str] = {
    "preempt": "preemptable",
    "reclaim": "reclaimable",
    "gangpreempt": "unified_evictable",
    "gangreclaim": "unified_evictable",
}
"""Action to the point at which it asks who may be evicted, one of ``combining.EVICTABLE_POINTS``."""

SHUFFLE, BUDGETS = "shuffle", "pdb"


def warnings(policy: Policy, plugins: Mapping[str, type[Plugin]]) -> list[str]:
    """One line each, naming what to change. A plugin that is not known or cannot be opened is taken to be silent."""
    cycle = Cycle(Mirror(), policy, 0.0, session_id="warnings", plugins=plugins, actions={})
    return list(about(policy, cycle.combination))


def about(policy: Policy, combination: Combination) -> Iterator[str]:
    """All that is said here of a policy, given its opened plugins."""
    yield from unheard(policy, combination)
    yield from unsparing(policy, combination)


def unheard(policy: Policy, combination: Combination) -> Iterator[str]:
    """Plugins that would spare victims but stand behind a tier that decides alone (spec 04 section 27.2)."""
    if policy.tiers_agree_on_victims:
        return
    for action in dict.fromkeys(policy.actions):
        point = POINTS_ASKED.get(action)
        voters = enumerate(combination.evictable_voters(point), 1) if point else ()
        answering = [(number, names) for number, names in voters if names]
        if len(answering) > 1:
            (first, heard), *rest = answering
            silent = ", ".join(name for _, names in rest for name in names)
            yield (
                f"{action}: {silent} in a later tier is asked about victims only when tier {first} "
                f"({', '.join(heard)}) allows none; put them into the same tier, or set {TIERS_AGREE}: true, "
                "so that all must agree"
            )


def unsparing(policy: Policy, combination: Combination) -> Iterator[str]:
    """Budgets that are meant to protect and evict instead.

    What plugins name for shuffle is added up (spec 04 section 27.1), and pdb names whom it would let go (spec 06
    section 21).
    """
    if SHUFFLE in policy.actions and BUDGETS in combination.victim_namers():
        yield (
            f"{SHUFFLE}: {BUDGETS} spares nobody there but adds, whenever its tier is asked, every Running pod that no "
            f"budget keeps to the victims; set enabledVictim: false for {BUDGETS} (preempt and reclaim keep to budgets "
            f"all the same, {SHUFFLE} never does), or leave {SHUFFLE} out"
        )
