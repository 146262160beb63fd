"""Rules that keep pods with certain labels off each other's cards (spec 06 section 29.4)."""

from __future__ import annotations

from collections.abc import Mapping

from stromboli.scheduler.core.policy import Arguments

KEY = "deviceshare.GPUExclusiveRules"
Rule = Mapping[str, str]
"""Labels that a pod must carry, all of them, to match."""


def rules_of(arguments: Arguments) -> tuple[Rule, ...]:
    """The rules of a policy entry. Values that are no text, and rules that are left empty, are dropped."""
    return parse(arguments.get(KEY))


def parse(raw: object) -> tuple[Rule, ...]:
    """Rules from the raw argument; what is not a list of maps gives none."""
    if not isinstance(raw, list | tuple):
        return ()
    maps = (
        {str(key): value for key, value in entry.items() if isinstance(value, str)}
        for entry in raw
        if isinstance(entry, Mapping)
    )
    return tuple(rule for rule in maps if rule)


def matches(labels: Mapping[str, str], rule: Rule) -> bool:
    """Whether a pod carries all labels of the rule."""
    return bool(labels) and all(labels.get(key) == value for key, value in rule.items())


def matching(labels: Mapping[str, str], rules: tuple[Rule, ...]) -> frozenset[int]:
    """Positions of the rules that a pod matches."""
    return frozenset(index for index, rule in enumerate(rules) if matches(labels, rule))
