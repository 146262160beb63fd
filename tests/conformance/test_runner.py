"""The runner itself: what it counts, what it prints, and that it can fail."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from tests.conformance import __main__ as command
from tests.conformance import comparing, scheduler_runner, vectors
from tests.conformance.comparing import Outcome, Step
from tests.conformance.exclusions import Exclusions
from tests.conformance.reports import CaseReport, FileReport, Verdict, reason_lines, selected, total_line
from tests.conformance.vectors import JsonObject


def report() -> FileReport:
    return FileReport(
        "a.json",
        [
            CaseReport.judged("one", []),
            CaseReport.judged("two", ["binds: want 1, got 2"]),
            CaseReport.not_applicable("three", "needs plugin x"),
        ],
    )


def test_lines_have_the_documented_form() -> None:
    assert report().line() == "a.json: 1 passed, 1 failed, 1 not applicable"
    assert total_line([report(), report()]) == "TOTAL: 2 passed, 2 failed, 2 not applicable"
    assert list(reason_lines([report()])) == ["  1 not applicable: needs plugin x"]


@pytest.mark.parametrize(
    ("pattern", "want"),
    [(None, True), ("a.json", True), ("case", True), ("a.*::case*", True), ("b.json", False), ("cas", True)],
)
def test_only_selects_by_part_or_shell_pattern(pattern: str | None, want: bool) -> None:
    assert selected(pattern, "a.json", "case 1") is want


def write_vectors(directory: Path, cases: list[JsonObject]) -> None:
    directory.mkdir(parents=True)
    (directory / "x.functions.json").write_bytes(orjson.dumps({"cases": cases}))


def new_resource(id_: str, milli: int) -> JsonObject:
    return {
        "id": id_,
        "kind": "function",
        "fn": "NewResource",
        "args": {"rl": {"cpu": "100m"}},
        "result": {"milliCPU": milli, "memory": 0},
    }


@pytest.mark.parametrize("inside", [True, False], ids=["parent directory", "the suite itself"])
def test_exit_code_and_output_tell_of_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], inside: bool
) -> None:
    write_vectors(tmp_path / "scheduler", [new_resource("good", 100), new_resource("bad", 7)])
    root = tmp_path if inside else tmp_path / "scheduler"
    assert command.main([str(root), "-v"]) == 1
    output = capsys.readouterr().out
    assert "x.functions.json: 1 passed, 1 failed, 0 not applicable" in output
    assert "FAILED bad" in output
    assert "want {'milliCPU': 7" in output
    assert output.splitlines()[-1] == "TOTAL: 1 passed, 1 failed, 0 not applicable"
    assert command.main([str(root), "--only", "good"]) == 0


def test_no_vectors_is_an_error_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([str(tmp_path)]) == 2
    assert "CONFORMANCE_DIR" in capsys.readouterr().err


def test_case_that_crashes_fails_alone() -> None:
    def judge(case: JsonObject) -> list[str]:
        raise ZeroDivisionError("boom")

    verdict = scheduler_runner.run_case({"id": "c"}, None, judge)
    assert verdict.verdict is Verdict.FAILED
    assert "ZeroDivisionError: boom" in verdict.details[0]


def test_excluded_case_is_not_run_and_says_why() -> None:
    exclusions = Exclusions({"a.json::c*": "we do better (P41)"})
    assert exclusions.reason("a.json", "case") == "we do better (P41)"
    assert exclusions.reason("b.json", "case") is None
    assert exclusions.unused({"b.json::case"}) == ["a.json::c*"]


def test_exclusion_without_a_reason_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "list.yaml"
    path.write_text("'a.json::*': ''\n")
    with pytest.raises(ValueError, match="has no reason"):
        Exclusions.read(path)


# -- comparing -----------------------------------------------------------------------------------------------------

OUTCOME = Outcome(
    binds={"ns/p0": "n1", "ns/p1": "n2"},
    evicted=("ns/old",),
    steps=(Step("allocate", {"ns/j": {"ns/p0": "Binding@n1", "ns/p1": "Binding@n2"}}, {"ns/j": "Inqueue"}),),
    phases={"ns/j": "Inqueue"},
    pod_groups={"ns/j": {"phase": "Inqueue", "running": 0, "failed": 0, "succeeded": 0}},
    queues={"q": {"allocated": {"cpu": "2"}}},
)


def exact_case() -> JsonObject:
    return {
        "checks": ["bind", "evict", "taskStatusNums", "podGroupStatus"],
        "match": {"binds": "map", "evicted": "multiset"},
        "exact": True,
        "expect": {
            "bindMap": {"ns/p0": "n1", "ns/p1": "n2"},
            "bindsNum": 2,
            "evicted": ["ns/old"],
            "taskStatusNums": {"ns/j": {"Binding": 2}},
            "podGroupPhases": {"ns/j": "Inqueue"},
        },
        "observed": {
            "binds": {"ns/p0": "n1", "ns/p1": "n2"},
            "evicted": ["ns/old"],
            "afterActions": [
                {
                    "action": "allocate",
                    "tasks": {"ns/j": {"ns/p0": "Binding@n1", "ns/p1": "Binding@n2"}},
                    "phases": {"ns/j": "Inqueue"},
                }
            ],
            "afterClose": {
                "podGroups": {"ns/j": {"phase": "Inqueue", "running": 0, "failed": 0, "succeeded": 0}},
                "queues": {"q": {"allocated": {"cpu": "2000m"}}},
            },
        },
    }


def test_outcome_that_agrees_has_no_differences() -> None:
    assert comparing.session_differences(exact_case(), OUTCOME) == []


SPOILED: dict[str, tuple[list[str], object]] = {
    "node of a bind": (["observed", "binds", "ns/p0"], "n2"),
    "expected bind": (["expect", "bindMap", "ns/p0"], "n2"),
    "number of binds": (["expect", "bindsNum"], 3),
    "evictions": (["observed", "evicted"], ["ns/old", "ns/old"]),
    "expected evictions": (["expect", "evicted"], []),
    "status counts": (["expect", "taskStatusNums", "ns/j"], {"Binding": 1}),
    "phase": (["expect", "podGroupPhases", "ns/j"], "Running"),
    "phase at close": (["observed", "afterClose", "podGroups", "ns/j", "phase"], "Pending"),
    "condition at close": (["observed", "afterClose", "podGroups", "ns/j", "conditions"], [{"type": "Scheduled"}]),
    "counter at close": (["observed", "afterClose", "podGroups", "ns/j", "running"], 1),
    "queue at close": (["observed", "afterClose", "queues", "q", "allocated", "cpu"], "3"),
}


@pytest.mark.parametrize(("path", "value"), SPOILED.values(), ids=SPOILED.keys())
def test_every_compared_field_can_make_a_case_fail(path: list[str], value: object) -> None:
    case = exact_case()
    *parents, last = path
    place = case
    for name in parents:
        place = place[name]
    place[last] = value
    assert comparing.session_differences(case, OUTCOME) != []


def test_unstable_fields_are_not_compared() -> None:
    case = exact_case()
    case["observed"]["binds"] = {}
    case["observed"]["afterActions"][0]["tasks"] = {}
    case["unstable"] = ["binds", "afterActions.tasks"]
    assert comparing.session_differences(case, OUTCOME) == []


INVARIANTS: dict[str, tuple[object, object]] = {
    "bindsNum": (2, 3),
    "boundPods": (["ns/p1", "ns/p0"], ["ns/p0"]),
    "bindsPerNodeSorted": ([1, 1], [2]),
    "nodesUsed": (["n2", "n1"], ["n1"]),
    "evicted": (["ns/old"], []),
    "phases": ({"ns/j": "Inqueue"}, {"ns/j": "Pending"}),
    "taskStatusNums": ({"ns/j": {"Binding": 2}}, {"ns/j": {"Binding": 1, "Pending": 1}}),
}


@pytest.mark.parametrize("name", INVARIANTS)
def test_invariants_bind_inexact_cases(name: str) -> None:
    right, wrong = INVARIANTS[name]
    case: JsonObject = {"exact": False, "observed": {"binds": {"other": "n9"}}}
    assert comparing.session_differences({**case, "invariants": {name: right}}, OUTCOME) == []
    assert comparing.session_differences({**case, "invariants": {name: wrong}}, OUTCOME) != []


# -- the reviewed list ---------------------------------------------------------------------------------------------


def test_reviewed_list_names_only_cases_that_exist() -> None:
    root = vectors.directory()
    if vectors.suite(root, "scheduler") is None:
        pytest.skip(f"no vectors in {root}; set CONFORMANCE_DIR")
    names = {f"{file.name}::{case['id']}" for file in vectors.scheduler_files(root) for case in file.cases}
    webhooks = vectors.suite(root, "webhooks")
    for path in webhooks.glob("*.json") if webhooks else ():
        names |= {f"{path.name}::{case['name']}" for case in orjson.loads(path.read_bytes())["cases"]}
    assert Exclusions.read().unused(names) == []
