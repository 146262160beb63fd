"""What would become of a job not submitted yet: it starts, starts after evictions, waits, or can never start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from stromboli.api import core
from stromboli.cli.counting import counted, verb
from stromboli.cli.rehearsing import members
from stromboli.cli.rehearsing.emptying import CYCLES, HOPELESS, NOTHING_TAKEN, starts_alone, submitted, without_waiting
from stromboli.cli.rehearsing.engine import Eviction, Rehearsal
from stromboli.cli.rehearsing.explaining import Explanation, explain
from stromboli.cli.rehearsing.facts import Facts
from stromboli.cli.rehearsing.holders import TAKEN
from stromboli.cli.rehearsing.policies import PLUGINS, Plugins
from stromboli.cli.rehearsing.snapshots import Snapshot
from stromboli.kube import json
from stromboli.kube.json import JsonObject
from stromboli.scheduler.core.policy import Policy


class Verdict(StrEnum):
    """The four answers."""

    FITS_NOW = "FitsNow"
    FITS_AFTER_EVICTING = "FitsAfterEvicting"
    WAITS = "Waits"
    NEVER_FITS = "NeverFits"


@dataclass(frozen=True)
class Preview:
    """The answer, with where pods go, who is evicted, or why not."""

    verdict: Verdict
    sentence: str
    placements: Mapping[str, int] = field(default_factory=dict)
    """Pods by node."""
    evictions: Sequence[Eviction] = ()
    why: Explanation | None = None

    @property
    def taken(self) -> Sequence[str]:
        """Who has what the job waits for, a line each; empty unless it waits."""
        rungs = self.why.rungs if self.why and self.verdict is Verdict.WAITS else ()
        return next((rung.lines for rung in rungs if rung.title == TAKEN), ())

    def to_wire(self) -> JsonObject:
        """For ``-o json|yaml``."""
        return {
            "verdict": str(self.verdict),
            "sentence": self.sentence,
            "placements": dict(self.placements),
            "evictions": [{"pod": one.pod, "reason": one.reason} for one in self.evictions],
            "reason": self.why.reason if self.why else "",
            "nextStep": self.why.next_step if self.why else "",
            "taken": list(self.taken),
        }


def preview(snapshot: Snapshot, policy: Policy, job: JsonObject, plugins: Plugins = PLUGINS) -> Preview:
    """Answer for a job that the API server has judged and completed (a server-side dry run)."""
    key = "/".join(json.key_of(job))
    if _queue_of(job) not in {queue.name for queue in snapshot.of(core.Queue)}:
        return _cannot(snapshot, policy, job, plugins)
    rehearsal = Rehearsal(submitted(snapshot, job), policy, plugins)
    group = f"{json.key_of(job)[0]}/{members.group_name(job)}"
    minimum = (job.get("spec") or {}).get("minAvailable") or 0
    evictions: list[Eviction] = []
    for _ in range(CYCLES):
        evictions.extend(rehearsal.cycle().evicted)
        placed = rehearsal.placed(group)
        if placed and len(placed) >= minimum:
            return _fits(key, placed, evictions)
        if rehearsal.rounds[-1].quiet:
            break
    return _cannot(snapshot, policy, job, plugins)


def _queue_of(job: JsonObject) -> str:
    return (job.get("spec") or {}).get("queue") or "default"


def _fits(key: str, placed: Mapping[str, str], evictions: Sequence[Eviction]) -> Preview:
    nodes = dict(sorted(Counter(placed.values()).items()))
    starting = f"{len(placed)} of its pods {verb(len(placed), 'start')}"
    if evictions:
        sentence = f"{key} fits after evicting {counted(len(evictions), 'pod')}: {starting}."
        return Preview(Verdict.FITS_AFTER_EVICTING, sentence, nodes, tuple(evictions))
    return Preview(Verdict.FITS_NOW, f"{key} fits now: {starting}.", nodes)


def _cannot(snapshot: Snapshot, policy: Policy, job: JsonObject, plugins: Plugins) -> Preview:
    """It waits if it would start in the same cluster without any work; else it never fits."""
    key, ever = "/".join(json.key_of(job)), starts_alone(snapshot, policy, job, plugins)
    why = _why(snapshot if ever else snapshot.without_work(), policy, job, plugins)
    because = why.sentence.partition("waits: ")[2] or why.sentence
    if ever:
        return Preview(Verdict.WAITS, f"{key} waits: {because}", why=why)
    why = replace(why, next_step=without_waiting(why.next_step).removesuffix(HOPELESS))
    sentence = f"{key} never fits, even in the empty cluster: {NOTHING_TAKEN.sub('', because)}"
    return Preview(Verdict.NEVER_FITS, sentence, why=why)


def _why(snapshot: Snapshot, policy: Policy, job: JsonObject, plugins: Plugins) -> Explanation:
    priorities = list(snapshot.of(core.PriorityClass))
    group = members.pod_group(job, priorities, snapshot.taken)
    return explain(Facts(job, snapshot.with_objects(group), policy, plugins=plugins))
