"""``python -m benchmarks.profiles [SCENARIO ...]``: where the time of a cycle goes, one text file a scenario.

Files go to ``benchmarks/profiles/``. Times are those of cProfile, which makes small functions look slower than they
are: read them as shares.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import pstats
from pathlib import Path

from benchmarks.__main__ import cycle_of
from benchmarks.scenarios import SCENARIOS, Scenario

FOLDER = Path(__file__).with_name("profiles")
LINES = 30


def main(arguments: list[str] | None = None) -> None:
    """Profiles the scenarios named, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profiles", description=__doc__)
    parser.add_argument("scenarios", nargs="*", choices=[[], *SCENARIOS], metavar="SCENARIO")
    names = parser.parse_args(arguments).scenarios or list(SCENARIOS)
    FOLDER.mkdir(exist_ok=True)
    for name in names:
        (FOLDER / f"{name}.txt").write_text(profile(SCENARIOS[name]), encoding="utf-8")


def profile(scenario: Scenario) -> str:
    """The functions in which most time is spent, and which call them."""
    mirror = scenario.mirror()
    if scenario.repeated:
        cycle_of(scenario, mirror, 0)
    profiler = cProfile.Profile()
    profiler.runcall(cycle_of, scenario, mirror, 1)
    text = io.StringIO()
    stats = pstats.Stats(profiler, stream=text).strip_dirs()
    stats.sort_stats("tottime").print_stats(LINES)
    return f"{scenario}\n" + "\n".join(line.rstrip() for line in text.getvalue().splitlines() if line.strip()) + "\n"


if __name__ == "__main__":
    main()
