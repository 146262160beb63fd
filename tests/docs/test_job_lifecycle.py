"""``docs/guide/job-lifecycle.md``: what is generated is up to date, and every example is accepted and understood."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Any

import jsonpatch
import pytest
import yaml

from stromboli.api.batch import Job
from stromboli.api.phases import USER_JOB_EVENTS, JobAction, JobPhase
from stromboli.controllers.job import documenting, podgroups, policies
from stromboli.controllers.job.documenting import COLUMNS, REASONS, outcomes
from stromboli.controllers.job.phases import TABLE, Rule
from tests.webhooks.building import cluster, decide, queue

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "job-lifecycle.md"
EXAMPLES = [yaml.safe_load(one) for one in re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)]


def test_what_is_generated_is_up_to_date() -> None:
    page = PAGE.read_text()
    assert documenting.renewed(page) == page, f"run python -m stromboli.controllers.job.documenting {PAGE}"


def test_the_command_renews_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{documenting.BEGIN}\nold\n{documenting.END}\nafter\n")
    assert documenting.main([str(page)]) == 0
    assert page.read_text().startswith("before\n") and page.read_text().endswith("after\n")
    assert "stateDiagram" in page.read_text()
    assert "old" not in page.read_text()
    assert documenting.main([]) == 1
    assert "PAGE" in capsys.readouterr().err
    with pytest.raises(ValueError, match="needs a line"):
        documenting.renewed("no marks")


def test_the_columns_tell_of_every_action_and_of_one_thing_each() -> None:
    told = [action for actions in COLUMNS.values() for action in actions]
    assert sorted(told) == sorted(JobAction)
    for row, actions in product(TABLE.values(), COLUMNS.values()):
        assert len({row[action] for action in actions}) == 1, actions


def test_there_are_words_for_every_transition_and_for_no_other() -> None:
    rules = {(phase, step.rule) for phase, row in TABLE.items() for step in row.values()}
    by_pods = {(rule, after) for phase, rule in rules for after in outcomes(phase, rule) - {phase} if not goes(rule)}
    assert by_pods == set(REASONS)


def goes(rule: Rule) -> bool:
    """Whether the rule leads to its phase whatever the pods do."""
    return rule.value.startswith("→")


def test_every_phase_but_the_first_is_led_to() -> None:
    assert {after for _, after in documenting.transitions()} == set(JobPhase)


def test_every_event_that_users_may_name_is_explained() -> None:
    explained = set(re.findall(r"^\| `([A-Za-z*]+)` \| ", PAGE.read_text(), flags=re.MULTILINE))
    assert explained >= USER_JOB_EVENTS


def admitted(obj: dict[str, Any]) -> dict[str, Any]:
    """The job as admission lets it in."""
    named = {**obj, "metadata": {"namespace": "default", **obj["metadata"]}}
    known = cluster(queue("default"))
    completed = jsonpatch.apply_patch(named, list(decide("/jobs/mutate", named, known=known).patch))
    verdict = decide("/jobs/validate", completed, known=known)
    assert verdict.allowed, verdict.message
    return dict(completed)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda one: one["metadata"]["name"])
def test_an_example_is_accepted_and_understood(example: dict[str, Any]) -> None:
    job = Job.from_wire(admitted(example))
    policies.check(job)
    assert podgroups.build(job, {})["spec"]["minMember"] == job.spec.min_available
    assert not job.model_extra and not job.spec.model_extra
    assert not any(task.model_extra for task in job.spec.tasks), "a field that nobody reads"


def test_there_is_an_example_of_everything() -> None:
    text = yaml.safe_dump_all(EXAMPLES)
    for field in (
        "policies",
        "exitCode",
        "timeout",
        "maxRetry",
        "minSuccess",
        "dependsOn",
        "partitionPolicy",
        "ttlSecondsAfterFinished",
    ):
        assert f"{field}:" in text
