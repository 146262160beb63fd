"""The admission vectors, one test a file (``python -m tests.conformance`` prints them case by case)."""

import pytest

from tests.conformance import vectors, webhooks_runner
from tests.conformance.reports import Verdict

DIRECTORY = vectors.suite(vectors.directory(), "webhooks")
FILES = sorted(path.name for path in DIRECTORY.glob("*.json")) if DIRECTORY else []

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(DIRECTORY is None, reason=f"no admission vectors in {vectors.directory()}"),
]


@pytest.mark.parametrize("file", FILES or [""])
def test_every_recorded_answer_is_given(file: str) -> None:
    assert DIRECTORY is not None
    report = next(found for found in webhooks_runner.run(DIRECTORY) if found.file == file)
    assert report.cases
    assert [case for case in report.cases if case.verdict is Verdict.FAILED] == []


def test_every_better_answer_belongs_to_a_case() -> None:
    assert DIRECTORY is not None
    names = {f"{report.file}::{case.case}" for report in webhooks_runner.run(DIRECTORY) for case in report.cases}
    assert webhooks_runner.BETTER.keys() <= names
