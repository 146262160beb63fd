"""Runs the scheduler's vector files: each case is judged, or reported as not applicable with a reason."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.conformance import functions, sessions, vectors
from tests.conformance.exclusions import Exclusions
from tests.conformance.reports import CaseReport, FileReport, selected
from tests.conformance.vectors import JsonObject, VectorFile
from tests.conformance.verdicts import NotApplicable

Judge = Callable[[JsonObject], list[str]]


def run(root: Path, only: str | None = None, *, probe: bool = False) -> Iterator[FileReport]:
    """Reports of all scheduler files, as they are finished; ``probe`` asks sessions every single question too."""
    exclusions = Exclusions.read()
    for file in vectors.scheduler_files(root):
        report = run_file(file, only, exclusions, probe=probe)
        if report.cases:
            yield report


def run_file(file: VectorFile, only: str | None, exclusions: Exclusions, *, probe: bool = False) -> FileReport:
    """Verdicts of the selected cases of one file."""
    judge: Judge = functions.differences
    if file.is_sessions:
        judge = sessions.probe_differences if probe else sessions.differences
    report = FileReport(file.name)
    for case in file.cases:
        if selected(only, file.name, case["id"]):
            excluded = exclusions.reason(file.name, case["id"]) or exclusions.reason_within(case)
            report.cases.append(run_case(case, excluded, judge))
    return report


def run_case(case: JsonObject, excluded: str | None, judge: Judge) -> CaseReport:
    """One verdict; a crash of the system under test is a failure of this case only."""
    if excluded:
        return CaseReport.not_applicable(case["id"], excluded)
    try:
        return CaseReport.judged(case["id"], judge(case))
    except NotApplicable as reason:
        return CaseReport.not_applicable(case["id"], str(reason))
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        crash = f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno} {where.name})"
        return CaseReport.judged(case["id"], [crash])
