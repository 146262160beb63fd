"""The scheduling policy as data: actions, tiers of plugins with switches, and arguments (spec 04 section 3).

Reading the YAML file is the shell's business; this module knows names, defaults and what may be combined.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TypeAlias

Arguments: TypeAlias = Mapping[str, object]


class PolicyError(ValueError):
    """The policy cannot be used; the text is one line naming the offender."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """Which hooks of a plugin are heard. The defaults are those of an option written in a policy file."""

    job_order: bool = True
    hierarchy: bool = False
    job_ready: bool = True
    job_pipelined: bool = True
    task_order: bool = True
    preemptable: bool = True
    reclaimable: bool = True
    preemptive: bool = True
    queue_order: bool = True
    cluster_order: bool = False
    predicate: bool = True
    best_node: bool = True
    node_order: bool = True
    target_job: bool = True
    reserved_nodes: bool = True
    job_enqueued: bool = True
    victim: bool = True
    job_starving: bool = True
    overused: bool = True
    allocatable: bool = True
    hyper_node_order: bool = True
    sub_job_ready: bool = True
    sub_job_pipelined: bool = True
    sub_job_order: bool = True
    hyper_node_gradient: bool = True


SWITCH_NAMES: Mapping[str, str] = {
    "enableJobOrder": "job_order",
    "enableHierarchy": "hierarchy",
    "enableJobReady": "job_ready",
    "enableJobPipelined": "job_pipelined",
    "enableTaskOrder": "task_order",
    "enablePreemptable": "preemptable",
    "enableReclaimable": "reclaimable",
    "enablePreemptive": "preemptive",
    "enableQueueOrder": "queue_order",
    "EnabledClusterOrder": "cluster_order",
    "enablePredicate": "predicate",
    "enableBestNode": "best_node",
    "enableNodeOrder": "node_order",
    "enableTargetJob": "target_job",
    "enableReservedNodes": "reserved_nodes",
    "enableJobEnqueued": "job_enqueued",
    "enabledVictim": "victim",
    "enableJobStarving": "job_starving",
    "enabledOverused": "overused",
    "enabledAllocatable": "allocatable",
    "enabledHyperNodeOrder": "hyper_node_order",
    "enabledSubJobReady": "sub_job_ready",
    "enabledSubJobPipelined": "sub_job_pipelined",
    "enabledSubJobOrder": "sub_job_order",
    "enabledHyperNodeGradient": "hyper_node_gradient",
}
"""Spelling in policy files (irregular, and contract) to field of ``Switches``."""

TIERS_AGREE = "tiersAgreeOnVictims"
"""Key of a policy file for ``Policy.tiers_agree_on_victims``."""

ALL_OFF: Mapping[str, bool] = {entry.name: False for entry in fields(Switches)}
"""For options built by programs, where an absent switch is off: ``Switches(**{**ALL_OFF, ...})``."""


@dataclass(frozen=True, slots=True)
class PluginOption:
    """One plugin entry of a tier."""

    name: str
    switches: Switches = field(default_factory=Switches)
    arguments: Arguments = field(default_factory=dict)


Tier: TypeAlias = tuple[PluginOption, ...]


@dataclass(frozen=True, slots=True)
class Policy:
    """What a cycle does, in which order, and who has a say."""

    actions: tuple[str, ...]
    tiers: tuple[Tier, ...]
    configurations: tuple[tuple[str, Arguments], ...] = ()
    metrics: Mapping[str, str] = field(default_factory=dict)
    tiers_agree_on_victims: bool = False
    """Whether nobody is evicted whom a plugin of any tier would spare; otherwise the first tier with a victim decides
    alone, as specified. An addition of ours."""

    def arguments_of(self, action: str) -> Arguments:
        """Arguments of an action: the first entry with its name wins; empty when there is none."""
        return next((arguments for name, arguments in self.configurations if name == action), {})

    def option(self, plugin: str) -> PluginOption | None:
        """The first entry of a plugin."""
        return next((option for tier in self.tiers for option in tier if option.name == plugin), None)


def check(policy: Policy, action_names: frozenset[str]) -> None:
    """Raises PolicyError for an unknown action or a forbidden combination (spec 04 section 3.1)."""
    for action in policy.actions:
        if action not in action_names:
            raise PolicyError(f"failed to find Action {action}")
    for tier in policy.tiers:
        hierarchical = any(option.name == "drf" and option.switches.hierarchy for option in tier)
        if hierarchical and any(option.name == "proportion" for option in tier):
            raise PolicyError("proportion and drf with hierarchy enabled conflicts")


def _tier(*names: str) -> Tier:
    return tuple(PluginOption(name) for name in names)


DEFAULT_POLICY = Policy(
    actions=("enqueue", "allocate", "backfill"),
    tiers=(
        _tier("priority", "gang", "conformance"),
        _tier("overcommit", "drf", "predicates", "proportion", "nodeorder"),
    ),
)
"""The built-in policy of spec 04 section 3.1."""


# Lenient readers of arguments (spec 04 section 3.3): what cannot be read leaves the default in place.

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})


def integer(arguments: Arguments, key: str, default: int) -> int:
    """A YAML integer; anything else, quoted numbers included, gives the default."""
    value = arguments.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def number(arguments: Arguments, key: str, default: float) -> float:
    """A float or integer; anything else gives the default."""
    value = arguments.get(key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else default


def boolean(arguments: Arguments, key: str, default: bool) -> bool:
    """A bool or one of Go's words for it; anything else gives the default."""
    value = arguments.get(key)
    if isinstance(value, bool):
        return value
    parsed = parse_bool(value) if isinstance(value, str) else None
    return default if parsed is None else parsed


def text(arguments: Arguments, key: str, default: str) -> str:
    """A string; anything else gives the default."""
    value = arguments.get(key)
    return value if isinstance(value, str) else default


def parse_bool(word: str) -> bool | None:
    """Go's reading of booleans; None when it is neither."""
    if word in _TRUE:
        return True
    return False if word in _FALSE else None
