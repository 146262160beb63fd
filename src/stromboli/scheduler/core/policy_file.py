"""The policy file: YAML text to :class:`~stromboli.scheduler.core.policy.Policy`, and back for ``--check-config``.

Two degrees of wrong (spec 04 section 3.1): what makes the whole file unusable raises :class:`PolicyError`, with one
line that names the place and what would be right; what the scheduler can leave out (an unknown plugin or key, an
argument of the wrong type) is a *problem*: it refuses the file at start and for ``--check-config``, and is left out
when a running scheduler takes the file in.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import yaml

from stromboli.scheduler.core import policy as core
from stromboli.scheduler.core.policy import SWITCH_NAMES, TIERS_AGREE, Policy, PolicyError, Switches

Arguments: TypeAlias = core.Arguments
ArgumentCheck: TypeAlias = Callable[[Arguments], Iterable[str]]
"""Complaints about the arguments of one plugin or action, each naming its key."""

_TOP_KEYS = ("actions", "tiers", TIERS_AGREE, "configurations", "metrics")
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""For YAML that nobody has looked at yet: safe, and fast where it can be."""
_DEFAULTS = Switches()
LARGEST = 1024 * 1024
"""Size of a policy, as of the ConfigMap it comes from; reading far more would hold up the scheduler."""


@dataclass(frozen=True, slots=True)
class Known:
    """The actions and plugins that there are, with what checks their arguments."""

    actions: Mapping[str, ArgumentCheck | None]
    plugins: Mapping[str, ArgumentCheck | None]
    entries: Collection[str] = ()
    """Names in ``configurations`` that are not those of actions: plugins read them."""


@dataclass(frozen=True, slots=True)
class LoadedPolicy:
    """A usable policy, and what in its file it leaves out."""

    policy: Policy
    problems: tuple[str, ...] = ()


def parse(content: str | bytes, known: Known, *, all_actions: bool = True) -> LoadedPolicy:
    """Read a policy file's content. Without ``all_actions`` one that is not known is a problem like any other.

    Raises:
        PolicyError: one line naming the offending place and the valid choices.
    """
    reader = _Reader(known, all_actions)
    policy = reader.policy(_document(content))
    core.check(policy, frozenset(known.actions))
    return LoadedPolicy(policy, tuple(reader.problems))


def _document(content: str | bytes) -> dict[str, object]:
    if len(content) > LARGEST:
        raise PolicyError(f"the file: {len(content)} bytes are too many, at most {LARGEST} are possible")
    try:
        document = yaml.load(content.strip(), Loader=LOADER)  # noqa: S506 - both loaders are the safe ones
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise PolicyError(f"not YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise PolicyError("the file: it is nested too deep for a policy") from error
    return _mapping("the file", document)


@dataclass(slots=True)
class _Reader:
    known: Known
    all_actions: bool = True
    problems: list[str] = field(default_factory=list)

    def policy(self, document: Mapping[str, object]) -> Policy:
        for key in document:
            if key not in _TOP_KEYS:
                self.problems.append(f"{key}: unknown key{_choices(key, _TOP_KEYS)}")
        return Policy(
            actions=self.actions(document.get("actions")),
            tiers=tuple(
                self.tier(f"tiers[{number}]", tier)
                for number, tier in enumerate(_sequence("tiers", document.get("tiers")))
            ),
            configurations=tuple(self.configurations(document.get("configurations"))),
            metrics=_metrics(document.get("metrics")),
            tiers_agree_on_victims=_switch(TIERS_AGREE, document.get(TIERS_AGREE), default=False),
        )

    def actions(self, value: object) -> tuple[str, ...]:
        if not isinstance(value, str | None):
            raise PolicyError(f'actions: expected text such as "enqueue, allocate, backfill", got {_kind(value)}')
        named = []
        for element in (value or "").split(","):
            name = element.strip()
            if name in self.known.actions:
                named.append(name)
                continue
            problem = f"failed to find Action {element}{_choices(name, self.known.actions)}"
            if self.all_actions:
                raise PolicyError(problem)
            self.problems.append(problem)
        return tuple(named)

    def tier(self, where: str, value: object) -> core.Tier:
        plugins = _sequence(f"{where}.plugins", _mapping(where, value).get("plugins"))
        return tuple(self.plugin(f"{where}.plugins[{number}]", plugin) for number, plugin in enumerate(plugins))

    def plugin(self, where: str, value: object) -> core.PluginOption:
        entry = _mapping(where, value)
        name = _text(f"{where}.name", entry.get("name"))
        arguments = _mapping(f"{where}.arguments", entry.get("arguments") or {})
        if name not in self.known.plugins:
            self.problems.append(f"{where}.name: plugin {name!r} is not known{_choices(name, self.known.plugins)}")
        self.check_arguments(f"{where}.arguments ({name})", self.known.plugins.get(name), arguments)
        return core.PluginOption(name, self.switches(where, entry), arguments)

    def switches(self, where: str, entry: Mapping[str, object]) -> Switches:
        given: dict[str, bool] = {}
        for key, value in entry.items():
            if key in ("name", "arguments"):
                continue
            if key not in SWITCH_NAMES:
                self.problems.append(f"{where}.{key}: unknown switch{_choices(key, SWITCH_NAMES)}")
            else:
                attribute = SWITCH_NAMES[key]
                given[attribute] = _switch(f"{where}.{key}", value, default=getattr(_DEFAULTS, attribute))
        return Switches(**given)

    def configurations(self, value: object) -> Iterable[tuple[str, Arguments]]:
        for number, entry in enumerate(_sequence("configurations", value)):
            where = f"configurations[{number}]"
            body = _mapping(where, entry)
            name = _text(f"{where}.name", body.get("name"))
            arguments = _mapping(f"{where}.arguments", body.get("arguments") or {})
            if name not in self.known.actions and name not in self.known.entries:
                self.problems.append(f"{where}.name: action {name!r} is not known{_choices(name, self.known.actions)}")
            self.check_arguments(f"{where}.arguments ({name})", self.known.actions.get(name), arguments)
            yield name, arguments

    def check_arguments(self, where: str, check: ArgumentCheck | None, arguments: Arguments) -> None:
        if check is not None:
            self.problems.extend(f"{where}: {complaint}" for complaint in check(arguments))


def _metrics(value: object) -> dict[str, str]:
    settings = _mapping("metrics", value or {})
    for key, setting in settings.items():
        if isinstance(setting, Mapping | list):
            raise PolicyError(f"metrics.{key}: expected text, got {_kind(setting)}")
    return {key: _scalar(setting) for key, setting in settings.items()}


def _switch(where: str, value: object, *, default: bool) -> bool:
    if not isinstance(value, bool | None):
        raise PolicyError(f"{where}: expected true or false, got {_kind(value)}")
    return default if value is None else value


def _scalar(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _mapping(where: str, value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise PolicyError(f"{where}: expected a map, got {_kind(value)}")
    return {str(key): item for key, item in value.items()}


def _sequence(where: str, value: object) -> list[object]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise PolicyError(f"{where}: expected a list, got {_kind(value)}")
    return value


def _text(where: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise PolicyError(f"{where}: expected a name, got {_kind(value)}")
    return value


def _kind(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict | list):
        return "a map" if isinstance(value, dict) else "a list"
    return repr(value)


def _choices(word: str, valid: Collection[str]) -> str:
    near = difflib.get_close_matches(word, valid, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"{hint} (known: {', '.join(sorted(valid))})"


# -- printing ------------------------------------------------------------------------------------------------------


def render(policy: Policy) -> str:
    """The policy as a file that means the same; switches that have their default are left out."""
    document: dict[str, object] = {
        "actions": ", ".join(policy.actions),
        "tiers": [{"plugins": [_entry(option) for option in tier]} for tier in policy.tiers],
    }
    if policy.tiers_agree_on_victims:
        document[TIERS_AGREE] = True
    if policy.configurations:
        document["configurations"] = [
            {"name": name, "arguments": dict(arguments)} for name, arguments in policy.configurations
        ]
    if policy.metrics:
        document["metrics"] = dict(policy.metrics)
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True)


def _entry(option: core.PluginOption) -> dict[str, object]:
    changed = {
        name: getattr(option.switches, attribute)
        for name, attribute in SWITCH_NAMES.items()
        if getattr(option.switches, attribute) != getattr(_DEFAULTS, attribute)
    }
    arguments = {"arguments": dict(option.arguments)} if option.arguments else {}
    return {"name": option.name, **changed, **arguments}
