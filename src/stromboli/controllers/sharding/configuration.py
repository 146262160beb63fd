"""The configuration of sharding, from flags or from a ConfigMap (spec 03 section 10.1). Pure.

A configuration is either usable as a whole or refused as a whole.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import yaml

from stromboli.api import durations, names
from stromboli.api.modelling import InvalidObject, Model
from stromboli.controllers.sharding.assigning import Shard
from stromboli.controllers.sharding.policies import POLICIES, Arguments, BadPolicy, Policy

log = logging.getLogger(__name__)

_PARTS: Final = 7
_LIMITS: Final = ("minNodes", "maxNodes")
_INFINITE: Final = {"inf": 1.0, "infinity": 1.0, "-inf": 0.0, "-infinity": 0.0}


class BadConfiguration(ValueError):
    """A configuration that cannot be used; one line that names the place."""


class PolicySettings(Model):
    """A policy, how much its score counts, and its arguments."""

    name: str = ""
    weight: float = 0
    arguments: dict[str, object] = {}


class SchedulerSettings(Model):
    """A scheduler; everything below ``policies`` is the older way to say it."""

    name: str = ""
    type: str = ""
    policies: list[PolicySettings] = []
    arguments: dict[str, object] = {}
    cpu_utilization_min: float | None = None
    cpu_utilization_max: float | None = None
    prefer_warmup_nodes: bool = False
    min_nodes: int = 0
    max_nodes: int = 0


class ShardingFile(Model):
    """The whole file."""

    scheduler_configs: list[SchedulerSettings] = []
    shard_sync_period: str | None = None
    enable_node_event_trigger: bool | None = None


@dataclass(frozen=True, slots=True)
class Configuration:
    """Schedulers in the order in which they choose; None where the file does not say."""

    shards: tuple[Shard, ...]
    sync_period: float | None = None
    node_events: bool | None = None


def parse_flags(items: Iterable[str]) -> tuple[Shard, ...]:
    """Schedulers from ``--scheduler-configs``. Raises :class:`BadConfiguration`."""
    return tuple(_shard(_from_flag(item)) for item in items)


def _from_flag(item: str) -> SchedulerSettings:
    parts = item.split(":")
    if len(parts) != _PARTS:
        raise BadConfiguration(f"invalid scheduler config format: {item}, expected {_PARTS} colon-separated parts")
    name, kind, low, high, warm, fewest, most = parts
    try:
        settings = SchedulerSettings(
            name=name,
            type=kind,
            cpu_utilization_min=_rate(low),
            cpu_utilization_max=_rate(high),
            min_nodes=int(fewest),
            max_nodes=int(most),
        )
    except ValueError as error:
        raise BadConfiguration(f"invalid scheduler config: {item}: {error}") from error
    if warm == "true":
        log.warning("scheduler config %s: preferWarmup has no effect here; use the ConfigMap", item)
    return settings


def _rate(text: str) -> float:
    return _INFINITE[text.lower()] if text.lower() in _INFINITE else float(text)


def parse(data: Mapping[str, str]) -> Configuration:
    """A configuration from a ConfigMap's data.

    Raises:
        BadConfiguration: it cannot be used.
    """
    if names.SHARDING_CONFIG_KEY not in data:
        raise BadConfiguration(f"the ConfigMap has no key {names.SHARDING_CONFIG_KEY}")
    try:
        document = yaml.safe_load(data[names.SHARDING_CONFIG_KEY])
        file = ShardingFile.from_wire(document if isinstance(document, dict) else {})
    except (yaml.YAMLError, InvalidObject) as error:
        raise BadConfiguration(f"{names.SHARDING_CONFIG_KEY}: {' '.join(str(error).split())}") from error
    if not file.scheduler_configs:
        raise BadConfiguration("sharding config must contain at least one schedulerConfig entry")
    shards = tuple(_shard(settings) for settings in file.scheduler_configs)
    _check_distinct(shards)
    return Configuration(shards, _period(file.shard_sync_period), file.enable_node_event_trigger)


def _check_distinct(shards: tuple[Shard, ...]) -> None:
    seen = set[str]()
    for shard in shards:
        if shard.name in seen:
            raise BadConfiguration(f"scheduler {shard.name}: it is configured twice")
        seen.add(shard.name)


def _period(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        seconds = durations.seconds(text)
    except ValueError as error:
        log.warning("shardSyncPeriod: %s; the period stays", error)
        return None
    if seconds <= 0:
        log.warning("shardSyncPeriod: %s is not above 0; the period stays", text)
        return None
    return seconds


def _shard(settings: SchedulerSettings) -> Shard:
    where = f"scheduler {settings.name}"
    _check(settings, where)
    return Shard(settings.name, tuple(_policy(policy, where) for policy in _policies(settings)))


def _check(settings: SchedulerSettings, where: str) -> None:
    low, high = settings.cpu_utilization_min, settings.cpu_utilization_max
    faults = {
        "scheduler name must not be empty": not settings.name,
        f"{where}: cpuUtilizationMin must be from 0 to 1, not {low}": low is not None and not 0 <= low <= 1,
        f"{where}: cpuUtilizationMax must be from 0 to 1, not {high}": high is not None and not 0 <= high <= 1,
        f"{where}: cpuUtilizationMin {low} is above cpuUtilizationMax {high}": (low or 0)
        > (1 if high is None else high),
        f"{where}: minNodes must not be negative": settings.min_nodes < 0,
        f"{where}: maxNodes {settings.max_nodes} is less than minNodes {settings.min_nodes}": (
            settings.max_nodes < settings.min_nodes
        ),
    }
    for text, wrong in faults.items():
        if wrong:
            raise BadConfiguration(text)


def _policies(settings: SchedulerSettings) -> list[PolicySettings]:
    """The policies given, or those that the older fields mean."""
    policies = list(settings.policies)
    if not policies:
        arguments = settings.arguments or _older_arguments(settings)
        policies.append(PolicySettings(name="allocation-rate", arguments=arguments))
        if settings.prefer_warmup_nodes:
            policies.append(PolicySettings(name="warmup"))
    limited = settings.min_nodes > 0 or settings.max_nodes > 0
    if limited and all(policy.name != "node-limit" for policy in policies):
        limits = {"minNodes": settings.min_nodes, "maxNodes": settings.max_nodes}
        policies.append(PolicySettings(name="node-limit", arguments=dict(limits)))
    return policies


def _older_arguments(settings: SchedulerSettings) -> dict[str, object]:
    given = {"minCPUUtil": settings.cpu_utilization_min, "maxCPUUtil": settings.cpu_utilization_max}
    return {key: value for key, value in given.items() if value is not None}


def _policy(settings: PolicySettings, where: str) -> tuple[Policy, Fraction]:
    name, arguments = settings.name, settings.arguments
    if not name:
        raise BadConfiguration(f"{where}: policy name must not be empty")
    if settings.weight < 0:
        raise BadConfiguration(f"{where}: policy {name}: weight must not be negative")
    if name != "node-limit" and any(limit in arguments for limit in _LIMITS):
        raise BadConfiguration(f"{where}: policy {name}: minNodes and maxNodes belong to the policy node-limit")
    if name not in POLICIES:
        raise BadConfiguration(f"{where}: policy {name} is unknown; there are {', '.join(sorted(POLICIES))}")
    return _made(name, arguments, where), Fraction(str(settings.weight or 1))


def _made(name: str, arguments: Arguments, where: str) -> Policy:
    try:
        return POLICIES[name](arguments)
    except BadPolicy as error:
        raise BadConfiguration(f"{where}: policy {name}: {error}") from error
