"""``python -m benchmarks [SCENARIO ...]``: one JSON object a line on standard output, nothing else.

Every scenario is measured in a process of its own, so that memory figures do not add up.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass

import orjson

from benchmarks import admission, calibrating, cold_start, end_to_end, job_load
from benchmarks.scenarios import SCENARIOS, Scenario, bench_policy
from stromboli.api import core
from stromboli.scheduler.actions import ACTIONS
from stromboli.scheduler.core.cycle import run
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.results import CycleResult
from stromboli.scheduler.plugins import built_in

RUNS = 3
NOW = core.timestamp("2026-01-02T00:00:00Z")
MEASUREMENTS = {**cold_start.MEASUREMENTS, **admission.MEASUREMENTS, **job_load.MEASUREMENTS, **end_to_end.MEASUREMENTS}
SCHEDULING = [*SCENARIOS, *cold_start.MEASUREMENTS]
"""What is measured when nothing is asked for."""


def main(arguments: list[str] | None = None) -> int:
    """Measures the scenarios named, or all of the scheduler's."""
    known = [*SCENARIOS, *MEASUREMENTS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"some of {', '.join(known)}")
    parser.add_argument("--here", action="store_true", help="measure in this process (for profilers)")
    options = parser.parse_args(arguments)
    names = options.scenarios or os.environ.get("SCENARIOS", "").split() or SCHEDULING
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"no scenario {', '.join(unknown)}; there are {', '.join(known)}")
    return _measure_here(names) if options.here else _measure_apart(names)


def _measure_apart(names: Iterable[str]) -> int:
    failed = 0
    for name in names:
        failed |= subprocess.call([sys.executable, "-m", "benchmarks", "--here", name])
    return failed


def _measure_here(names: Iterable[str]) -> int:
    for name in names:
        figures = MEASUREMENTS[name]() if name in MEASUREMENTS else measure(SCENARIOS[name])
        sys.stdout.write(orjson.dumps(figures).decode() + "\n")
        sys.stdout.flush()
    return 0


def measure(scenario: Scenario) -> dict[str, object]:
    """The figures of one scenario."""
    figures, results, mirror = _repeated(scenario) if scenario.repeated else _fresh(scenario)
    first, last = results[0], results[-1]
    done, wanted = (len(first.binds), len(first.evictions)), (scenario.binds, scenario.evictions)
    if done != wanted:
        raise SystemExit(f"{scenario.name}: binds and evictions were {done} instead of {wanted}: {first.problems}")
    return {
        "scenario": scenario.name,
        "seconds": round(statistics.median(one.seconds for one in figures), 5),
        "rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "binds": len(first.binds),
        "nodes": scenario.nodes,
        "tasks": len(mirror.tasks),
        "calibration": calibrating.wall(),
        "detail": {
            "calibration cpu": calibrating.cpu(),
            "runs": [round(one.seconds, 5) for one in figures],
            "cpu": round(statistics.median(one.cpu for one in figures), 5),
            **{" ".join(filter(None, key)): round(value, 5) for key, value in last.timings.items()},
        },
    }


@dataclass(frozen=True, slots=True)
class Figures:
    """How long a cycle took, and how long it computed: on a busy machine the second says more."""

    seconds: float
    cpu: float


def cycle_of(scenario: Scenario, mirror: Mirror, number: int) -> tuple[Figures, CycleResult]:
    """One cycle, and how long it took."""
    started, spent = time.perf_counter(), time.process_time()
    result = run(
        mirror,
        bench_policy(topology=bool(scenario.racks), reclaims=bool(scenario.evictions)),
        NOW,
        session_id=f"cycle-{number}",
        plugins=built_in().factories,
        actions=ACTIONS,
        clock=time.perf_counter,
    )
    return Figures(time.perf_counter() - started, time.process_time() - spent), result


def _fresh(scenario: Scenario) -> tuple[list[Figures], list[CycleResult], Mirror]:
    """A new cluster for every cycle."""
    figures, results, mirror = [], [], Mirror()
    for number in range(RUNS):
        mirror = scenario.mirror()
        taken, result = cycle_of(scenario, mirror, number)
        figures.append(taken)
        results.append(result)
    return figures, results, mirror


def _repeated(scenario: Scenario) -> tuple[list[Figures], list[CycleResult], Mirror]:
    """Several cycles over one cluster, the first left out: nothing is new except one gang, if there is one."""
    mirror = scenario.mirror()
    results, figures = [], []
    for number in range(RUNS + 1):
        taken, result = cycle_of(scenario, mirror, number)
        results.append(result)
        if number:
            figures.append(taken)
        if scenario.name == "S4":
            for bind in result.binds:
                mirror.bind_failed(bind.task.uid)
    return figures, results, mirror


if __name__ == "__main__":
    raise SystemExit(main())
