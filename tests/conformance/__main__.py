"""``python -m tests.conformance [DIR] [-v] [--only PATTERN] [--probe]``: run the vectors, a line a file, then a total.

Exits with 1 when a case failed, with 2 when there was nothing to run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.conformance import reports, scheduler_runner, vectors
from tests.conformance.reports import FileReport, Verdict


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for and print it."""
    options = parser().parse_args(arguments)
    root = vectors.directory(options.directory)
    printed = list(printing(run(root, options.only, probe=options.probe), verbose=options.verbose))
    if not printed:
        print(f"no vectors found in {root}: give their directory, or set CONFORMANCE_DIR", file=sys.stderr)
        return 2
    if options.verbose:
        print("\n".join(reports.reason_lines(printed)))
    print(reports.total_line(printed))
    return int(any(report.count(Verdict.FAILED) for report in printed))


def parser() -> argparse.ArgumentParser:
    """The command line."""
    command = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    command.add_argument(
        "directory",
        nargs="?",
        help="directory with scheduler/ and webhooks/, or one of the two (default $CONFORMANCE_DIR)",
    )
    command.add_argument("-v", "--verbose", action="store_true", help="show the differences of failing cases")
    command.add_argument("--only", metavar="PATTERN", help="cases whose FILE::ID contains or matches the pattern")
    command.add_argument("--probe", action="store_true", help="also ask sessions every question of the vectors' probes")
    return command


def run(root: Path, only: str | None, *, probe: bool = False) -> Iterator[FileReport]:
    """Reports of all files, as they are finished."""
    yield from scheduler_runner.run(root, only, probe=probe)
    webhooks = vectors.suite(root, "webhooks")
    if webhooks:
        yield from webhook_reports(webhooks, only)


def webhook_reports(directory: Path, only: str | None) -> Iterator[FileReport]:
    """Reports of the admission vectors."""
    from tests.conformance import webhooks_runner

    yield from webhooks_runner.run(directory, only)


def printing(files: Iterator[FileReport], *, verbose: bool) -> Iterator[FileReport]:
    """Print each report when it arrives."""
    for report in files:
        print(report.line(), flush=True)
        if verbose:
            print("\n".join(reports.detail_lines(report)), end="\n" if report.count(Verdict.FAILED) else "", flush=True)
        yield report


if __name__ == "__main__":
    sys.exit(main())
