"""A snapshot taken forward, with changes: who starts, who is evicted, how the queues stand before and after."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import yaml

from stromboli.api import core, kinds, quantities
from stromboli.cli.commanding.errors import CommandError
from stromboli.cli.rehearsing.emptying import submitted
from stromboli.cli.rehearsing.engine import Eviction, QueueState, Rehearsal, Round, Start
from stromboli.cli.rehearsing.policies import PLUGINS, Plugins
from stromboli.cli.rehearsing.snapshots import STRUCTS, Snapshot
from stromboli.kube.json import JsonObject
from stromboli.scheduler.core.policy import Policy

SECTIONS = ("metadata", "spec", "status")
AMOUNTS = frozenset({"allocatable", "capacity", "capability", "deserved", "resource", "requests", "minResources"})
"""Fields that hold amounts by resource."""
_SETTABLE = {kind.kind.lower(): kind for kind in STRUCTS} | {kind.plural: kind for kind in STRUCTS}


@dataclass(frozen=True)
class Simulation:
    """What happened, cycle by cycle."""

    before: Mapping[str, QueueState]
    rounds: Sequence[Round]
    waiting: Mapping[str, str]
    """Why the gangs wait that still do, by job."""

    @property
    def after(self) -> Mapping[str, QueueState]:
        """The queues at the end."""
        return self.rounds[-1].queues if self.rounds else self.before

    @property
    def started(self) -> list[Start]:
        """All pods that were given a node, in order."""
        return [start for round_ in self.rounds for start in round_.started]

    @property
    def evicted(self) -> list[Eviction]:
        """All pods that were evicted, in order."""
        return [one for round_ in self.rounds for one in round_.evicted]

    @property
    def first_starts(self) -> dict[str, int]:
        """The cycle in which each job got its first node."""
        found: dict[str, int] = {}
        for round_ in self.rounds:
            for start in round_.started:
                found.setdefault(start.job, round_.number)
        return found

    def to_wire(self) -> JsonObject:
        """For ``-o json|yaml``."""
        return {
            "queuesBefore": {name: _queue(state) for name, state in self.before.items()},
            "queuesAfter": {name: _queue(state) for name, state in self.after.items()},
            "cycles": [
                {
                    "number": round_.number,
                    "started": [asdict(start) for start in round_.started],
                    "evicted": [asdict(one) for one in round_.evicted],
                    "admitted": list(round_.admitted),
                    "waitingGangs": round_.waiting,
                    "use": dict(round_.use),
                    "queues": {name: _queue(state) for name, state in round_.queues.items()},
                    "problems": list(round_.problems),
                }
                for round_ in self.rounds
            ],
            "waiting": dict(self.waiting),
        }


def _queue(state: QueueState) -> JsonObject:
    return {"allocated": dict(state.allocated), "share": state.share}


def simulate(
    snapshot: Snapshot, policy: Policy, *, cycles: int, jobs: Iterable[JsonObject] = (), plugins: Plugins = PLUGINS
) -> Simulation:
    """Run up to ``cycles`` cycles, fewer if one decides nothing."""
    for job in jobs:
        snapshot = submitted(snapshot, job)
    still = Rehearsal(snapshot, replace(policy, actions=()), plugins)
    before = still.cycle().queues
    rehearsal = Rehearsal(snapshot, policy, plugins)
    rounds = tuple(rehearsal.settle(cycles))
    return Simulation(before, rounds, _waiting(rehearsal))


def _waiting(rehearsal: Rehearsal) -> dict[str, str]:
    told = {}
    for job_id, report in sorted(rehearsal.reports.items()):
        job = rehearsal.mirror.jobs.get(job_id)
        if job is None or (job.is_ready and not job.is_pending):
            continue
        refusal = rehearsal.condition(job_id, "Admitted")
        if job.is_pending and refusal is not None and refusal.status == "False":
            told[job_id] = refusal.message
        else:
            texts = [report.invalid, *report.notes, *report.tasks.values(), report.message]
            told[job_id] = next((text for text in texts if text), "")
    return told


def with_setting(snapshot: Snapshot, setting: str) -> Snapshot:
    """The snapshot with one field changed: ``queue/x.spec.weight=5``, ``podgroup/ns/name.spec.queue=y``.

    Raises:
        CommandError: the setting cannot be read, or names nothing that is there.
    """
    target, equals, text = setting.partition("=")
    where, section, path = _split(target)
    if not equals or not section or "/" not in where:
        raise CommandError(
            f"--set {setting}: expected kind/name.spec.field=value, such as queue/research.spec.weight=5"
        )
    word, _, name = where.partition("/")
    kind = _SETTABLE.get(word.lower())
    if kind is None:
        raise CommandError(f"--set {setting}: kind {word!r} is not known; choose one of {', '.join(sorted(_SETTABLE))}")
    namespace, _, bare = name.rpartition("/")
    found = next((obj for obj in snapshot.of(STRUCTS[kind]) if obj.key == (namespace, bare)), None)
    if found is None:
        raise CommandError(f"--set {setting}: the snapshot has no {kind.kind} {name!r}")
    return snapshot.with_objects(_changed(kind, found, _steps(section, path), text, setting))


def _split(target: str) -> tuple[str, str, str]:
    """``queue/x.y.spec.weight`` as (``queue/x.y``, ``spec``, ``weight``): names may have dots."""
    for section in SECTIONS:
        where, found, path = target.partition(f".{section}.")
        if found:
            return where, section, path
    return target, "", ""


def _steps(section: str, path: str) -> list[str]:
    """Names of fields from the top on. Resources have dots in their names, and nothing below them."""
    steps = [section, *path.split(".")]
    at = next((at for at, step in enumerate(steps) if step in AMOUNTS), len(steps))
    return [*steps[: at + 1], ".".join(steps[at + 1 :])] if at + 1 < len(steps) else steps


def _check_amounts(path: Sequence[str], value: object, setting: str) -> None:
    """Raises CommandError for an amount that no cluster would hold: scheduling would go on without it."""
    listed = value if isinstance(value, dict) and path[-1] in AMOUNTS else {}
    if len(path) > 1 and path[-2] in AMOUNTS:
        listed = {path[-1]: value}
    for resource, amount in listed.items():
        if not quantities.is_quantity(amount):
            raise CommandError(
                f"--set {setting}: {amount!r} is no quantity of {resource}; write for example 500m, 2 or 4Gi"
            )


def _changed(kind: kinds.Kind, obj: core.Object, path: Sequence[str], text: str, setting: str) -> core.Object:
    document = core.to_builtins(obj)
    try:
        value = yaml.safe_load(text)
        _check_amounts(path, value, setting)
        holder = document
        for part in path[:-1]:
            inner = holder.setdefault(part, {})
            if not isinstance(inner, dict):
                raise CommandError(f"--set {setting}: {part} is no object")
            holder = inner
        holder[path[-1]] = value
        changed = core.from_builtins(STRUCTS[kind], document)
    except (yaml.YAMLError, core.UndecodableObject) as error:
        raise CommandError(f"--set {setting}: {' '.join(str(error).split())}") from error
    if core.to_builtins(changed) != document and not _is_default(changed, path):
        raise CommandError(f"--set {setting}: {kind.kind} has no field {'.'.join(path)} that scheduling reads")
    return changed


def _is_default(obj: core.Object, path: Sequence[str]) -> bool:
    """Whether the field exists but holds its zero value, which is left out when written."""
    value: object = obj
    for part in path:
        snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in part)
        if isinstance(value, dict):
            return True
        if not hasattr(value, snake):
            return False
        value = getattr(value, snake)
    return True
