"""What a policy file will do, and what in it contradicts itself.

The hooks of each plugin are found by opening it on an empty cluster, so that what is said here is what the scheduler
will hear.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum

import pydantic

from stromboli.cli.commanding.errors import CommandError
from stromboli.cli.rehearsing.policies import ACTIONS, PLUGINS, Plugins, known
from stromboli.kube.json import JsonObject
from stromboli.scheduler.core import policy_file, policy_warnings
from stromboli.scheduler.core.combining import EVICTABLE_POINTS, Combination, Member
from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.plugin import Hooks, Plugin
from stromboli.scheduler.core.policy import TIERS_AGREE, Arguments, PluginOption, Policy, PolicyError, Switches
from stromboli.scheduler.core.policy_file import Known
from stromboli.scheduler.core.view import View
from stromboli.scheduler.plugins import arguments, entries

VICTIM_HOOKS = {
    **{action: (point, EVICTABLE_POINTS[point] or "") for action, point in policy_warnings.POINTS_ASKED.items()},
    "shuffle": ("victim_tasks", "victim"),
}
"""Evicting action to the hook that it asks, and the switch that silences the hook; empty when nothing does."""
_SWITCHES = frozenset(field.name for field in fields(Switches))
_RENAMED = {
    "filters": "predicate",
    "scores": "node_order",
    "hyper_node_score": "hyper_node_order",
    "gradient": "hyper_node_gradient",
    "job_enqueueable": "job_enqueued",
    "victim_tasks": "victim",
}


class Severity(StrEnum):
    """How bad a finding is: an error makes the scheduler refuse the file."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong or surprising, and what to do about it."""

    severity: Severity
    text: str


@dataclass(frozen=True)
class Lint:
    """Everything there is to say about a policy."""

    policy: Policy | None
    findings: tuple[Finding, ...]
    takes_part: tuple[tuple[int, str, tuple[str, ...]], ...] = ()
    """(tier from 1, plugin, hooks that are heard)"""
    plugins: Mapping[str, type[Plugin]] = field(default_factory=dict)
    """What the names of plugins stand for."""

    @property
    def errors(self) -> int:
        """Findings for which the scheduler refuses the file."""
        return sum(finding.severity is Severity.ERROR for finding in self.findings)

    def to_wire(self) -> JsonObject:
        """For ``-o json|yaml``."""
        return {
            "findings": [{"severity": str(item.severity), "text": item.text} for item in self.findings],
            "actions": [
                {"name": name, "does": purpose(ACTIONS[name])} for name in self.policy.actions if name in ACTIONS
            ]
            if self.policy
            else [],
            TIERS_AGREE: self.policy is not None and self.policy.tiers_agree_on_victims,
            "plugins": [{"tier": tier, "name": name, "hooks": list(hooks)} for tier, name, hooks in self.takes_part],
        }


def lint(content: str, plugins: Plugins = PLUGINS) -> Lint:
    """Look at a policy file's content; ``plugins`` are those that it may name."""
    names = known(lambda name: _check(plugins[name]), plugins)
    try:
        loaded = policy_file.parse(content, names)
    except PolicyError as error:
        return Lint(None, tuple(Finding(Severity.ERROR, text) for text in _all_problems(content, names, str(error))))
    policy = loaded.policy
    findings = [Finding(Severity.ERROR, problem) for problem in loaded.problems]
    findings.extend(Finding(Severity.WARNING, text) for text in arguments.unknown(policy, plugins))
    findings.extend(Finding(Severity.WARNING, text) for text in entries.complaints(policy))
    tiers = _open(policy, plugins)
    for rule in RULES:
        findings.extend(rule(policy, tiers))
    order = list(Severity)
    findings.sort(key=lambda finding: order.index(finding.severity))
    heard = tuple(
        (number, member.option.name, _heard(member)) for number, tier in enumerate(tiers, 1) for member in tier
    )
    return Lint(policy, tuple(findings), heard, plugins)


def _all_problems(content: str, names: Known, first: str) -> tuple[str, ...]:
    """All that is wrong with a policy that is refused, where that is more than the ``first`` problem."""
    try:
        return policy_file.parse(content, names, all_actions=False).problems or (first,)
    except PolicyError:
        return (first,)


def purpose(thing: object) -> str:
    """What an action or plugin does, by the first line of its module's description."""
    module = sys.modules.get(getattr(thing, "__module__", ""))
    line = ((module.__doc__ or "").strip().splitlines() or [""])[0] if module else ""
    return line.partition(": ")[2].partition(" (spec")[0].rstrip(".") or line


# -- reading -----------------------------------------------------------------------------------------------------------


def _check(plugin: type[Plugin]) -> policy_file.ArgumentCheck | None:
    model = arguments.model_of(plugin)
    if model is None:
        return None

    def complaints(given: Arguments) -> Iterator[str]:
        try:
            model.model_validate(dict(given))
        except pydantic.ValidationError as error:
            by_key = {str(item["loc"][0]): item for item in reversed(error.errors())}
            for key, item in by_key.items():
                yield f"{key}: {item['msg']}, got {item['input']!r}"

    return complaints


Tiers = Sequence[Sequence[Member]]


def _open(policy: Policy, plugins: Mapping[str, type[Plugin]]) -> Tiers:
    view = Cycle(Mirror(), policy, 0.0, session_id="lint", plugins={}, actions={}).view
    return [
        [Member(option, _hooks(option, plugins[option.name], view)) for option in tier if option.name in plugins]
        for tier in policy.tiers
    ]


def _hooks(option: PluginOption, plugin: type[Plugin], view: View) -> Hooks:
    try:
        return plugin(option.arguments).open(view)
    except Exception as error:  # whatever a plugin stumbles over is a finding about its arguments
        raise CommandError(f"plugin {option.name} cannot be opened with its arguments: {error}") from error


def _heard(member: Member) -> tuple[str, ...]:
    names = [field.name for field in fields(Hooks)]
    return tuple(name for name in names if _answers(member, name, _switch_of(name)))


def _switch_of(hook: str) -> str:
    """The switch that silences a hook; empty when there is none."""
    return _RENAMED.get(hook, hook if hook in _SWITCHES else "")


def _answers(member: Member, hook: str, switch: str = "") -> bool:
    value = getattr(member.hooks, hook)
    return value not in (None, (), frozenset()) and (not switch or getattr(member.option.switches, switch))


def _answering(tiers: Tiers, hook: str, switch: str) -> list[list[str]]:
    return [[member.option.name for member in tier if _answers(member, hook, switch)] for tier in tiers]


# -- rules -------------------------------------------------------------------------------------------------------------


def _nobody_to_ask(policy: Policy, tiers: Tiers) -> Iterator[Finding]:
    for action in policy.actions:
        hook, switch = VICTIM_HOOKS.get(action, ("", ""))
        if hook and not any(_answering(tiers, hook, switch)):
            yield Finding(
                Severity.WARNING,
                f"action {action} never evicts anybody: no plugin of the policy has a say about its victims",
            )


def _as_at_start(policy: Policy, tiers: Tiers) -> Iterator[Finding]:
    for warning in policy_warnings.about(policy, Combination(tiers, [])):
        yield Finding(Severity.WARNING, warning)


def _admission(policy: Policy, tiers: Tiers) -> Iterator[Finding]:
    if "enqueue" not in policy.actions:
        yield Finding(
            Severity.WARNING, "action enqueue is missing: PodGroups stay Pending and vcjobs never get their pods"
        )
    names = {option.name for tier in policy.tiers for option in tier}
    if "enqueue" in policy.actions and "reclaim" in policy.actions and "overcommit" in names:
        yield Finding(
            Severity.NOTE,
            "enqueue with overcommit holds gangs back in a full cluster, and reclaim only serves admitted ones: only "
            "queues below their deserved or guaranteed amount get past it (set spec.deserved)",
        )


def _order_of_actions(policy: Policy, tiers: Tiers) -> Iterator[Finding]:
    actions = list(policy.actions)
    for evicting in ("preempt", "reclaim", "gangpreempt", "gangreclaim"):
        if evicting in actions and "allocate" in actions and actions.index(evicting) < actions.index("allocate"):
            yield Finding(
                Severity.WARNING,
                f"action {evicting} runs before allocate: it evicts for gangs that might find room without",
            )
    for action in sorted({action for action in actions if actions.count(action) > 1}):
        yield Finding(Severity.NOTE, f"action {action} runs {actions.count(action)} times a cycle")


def _plugins(policy: Policy, tiers: Tiers) -> Iterator[Finding]:
    names = [option.name for tier in policy.tiers for option in tier]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield Finding(Severity.WARNING, f"plugin {name} stands in the policy {names.count(name)} times; keep one")
    if {"proportion", "capacity"} <= set(names):
        yield Finding(
            Severity.WARNING,
            "proportion and capacity both decide what queues deserve and contradict each other; keep one",
        )
    if "gang" not in names:
        yield Finding(Severity.WARNING, "plugin gang is missing: nothing is all-or-nothing any more")
    if "predicates" not in names:
        yield Finding(
            Severity.WARNING,
            "plugin predicates is missing: taints, selectors, affinity and ports of nodes are not heeded",
        )
    if "conformance" not in names and any(action in VICTIM_HOOKS for action in policy.actions):
        yield Finding(Severity.WARNING, "plugin conformance is missing: pods of kube-system may be evicted")


RULES: Sequence[Callable[[Policy, Tiers], Iterator[Finding]]] = (
    _nobody_to_ask,
    _as_at_start,
    _admission,
    _order_of_actions,
    _plugins,
)
