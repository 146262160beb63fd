"""What a conformance run says: one verdict a case, one line a file, one total.

Every runner (scheduler sessions, scheduler functions, webhooks) returns :class:`FileReport` objects; printing and the
exit code are decided in one place. A case that cannot be asked of this system is *not applicable* and must say why.
"""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum


class Verdict(StrEnum):
    """Outcome of one case."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True, slots=True)
class CaseReport:
    """Verdict of one case; ``details`` are the differences of a failure, or the reason it is not applicable."""

    case: str
    verdict: Verdict
    details: tuple[str, ...] = ()

    @classmethod
    def judged(cls, case: str, differences: Iterable[str]) -> CaseReport:
        """Passed when there is no difference."""
        found = tuple(differences)
        return cls(case, Verdict.FAILED if found else Verdict.PASSED, found)

    @classmethod
    def not_applicable(cls, case: str, reason: str) -> CaseReport:
        """The case cannot be asked of this system, for this reason."""
        return cls(case, Verdict.NOT_APPLICABLE, (reason,))


@dataclass(slots=True)
class FileReport:
    """Verdicts of the cases of one vector file, in file order."""

    file: str
    cases: list[CaseReport] = field(default_factory=list)

    def count(self, verdict: Verdict) -> int:
        """Number of cases with this verdict."""
        return sum(case.verdict is verdict for case in self.cases)

    def line(self) -> str:
        """``FILE: N passed, M failed, K not applicable``."""
        return f"{self.file}: {counted(self.cases)}"


def counted(cases: Iterable[CaseReport]) -> str:
    """``N passed, M failed, K not applicable``."""
    verdicts = Counter(case.verdict for case in cases)
    return ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in Verdict)


def total_line(reports: Iterable[FileReport]) -> str:
    """``TOTAL: N passed, M failed, K not applicable``."""
    return f"TOTAL: {counted(case for report in reports for case in report.cases)}"


def detail_lines(report: FileReport) -> Iterator[str]:
    """Differences of the failing cases of a file, for ``-v``."""
    for case in report.cases:
        if case.verdict is Verdict.FAILED:
            yield f"  FAILED {case.case}"
            yield from (f"    {difference}" for difference in case.details)


def reason_lines(reports: Iterable[FileReport]) -> Iterator[str]:
    """Why cases were not applicable, most frequent reason first."""
    reasons = Counter(
        case.details[0] if case.details else "no reason given"
        for report in reports
        for case in report.cases
        if case.verdict is Verdict.NOT_APPLICABLE
    )
    for reason, count in reasons.most_common():
        yield f"  {count} not applicable: {reason}"


def selected(pattern: str | None, file: str, case: str) -> bool:
    """Whether ``--only PATTERN`` takes this case: a part of, or a shell pattern for, its file name or id."""
    if not pattern:
        return True
    return any(pattern in name or fnmatch.fnmatchcase(name, pattern) for name in (file, case, f"{file}::{case}"))
