"""A snapshot taken forward, with changes: who starts, who is evicted, how the queues stand before and after."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from stromboli.cli.rehearsing.emptying import submitted
from stromboli.cli.rehearsing.engine import Eviction, QueueState, Rehearsal, Round, Start
from stromboli.cli.rehearsing.policies import PLUGINS, Plugins
from stromboli.cli.rehearsing.snapshots import Snapshot
from stromboli.kube.json import JsonObject
from stromboli.scheduler.core.policy import Policy


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
