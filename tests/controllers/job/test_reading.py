"""A job is read once for each version, and its spec once for its content; nothing else is ever taken for them."""

from __future__ import annotations

import copy

import pytest

from stromboli.controllers.job import podgroups, status
from stromboli.controllers.job.memo import Memo
from stromboli.controllers.job.reading import LARGEST_KEPT, Reader
from stromboli.kube.json import JsonObject
from tests.controllers.building import job


def stored(version: int, /, *, uid: str = "u1", **spec: object) -> JsonObject:
    return copy.deepcopy(job().task("worker", 2).spec(**spec).meta(uid=uid, resourceVersion=str(version)).wire)


def test_a_version_is_read_once() -> None:
    reader = Reader()
    assert reader.read(stored(1)) is reader.read(stored(1))


def test_another_status_is_read_without_the_spec() -> None:
    reader = Reader()
    first = reader.read(stored(1))
    changed = stored(2)
    changed["status"] = {"state": {"phase": "Running"}, "running": 2}
    changed["metadata"]["annotations"] = {"a": "b"}
    second = reader.read(changed)
    assert second.spec is first.spec
    assert (second.status.state.phase, second.status.running, second.metadata.annotations) == ("Running", 2, {"a": "b"})
    assert second.to_wire() == changed
    assert first.status.state.phase == "", "what was read stays as it was"


def test_jobs_of_one_spec_share_it() -> None:
    reader = Reader()
    one, other = reader.read(stored(1)), reader.read(stored(2, uid="u2"))
    assert other.spec is one.spec
    assert (one.uid, other.uid) == ("u1", "u2")


def test_another_spec_is_read_anew() -> None:
    reader = Reader()
    assert reader.read(stored(1)).spec.max_retry == 3
    assert reader.read(stored(2, maxRetry=7)).spec.max_retry == 7
    assert reader.read(stored(3)).spec.max_retry == 3


def test_without_a_version_nothing_is_taken_for_granted() -> None:
    reader = Reader()
    one, other = stored(1), stored(1, maxRetry=7)
    del one["metadata"]["resourceVersion"], other["metadata"]["resourceVersion"]
    assert reader.read(one).spec.max_retry == 3
    assert reader.read(other).spec.max_retry == 7


def test_large_specs_are_not_kept() -> None:
    reader, long = Reader(), {"spec": {"containers": [{"name": "main", "args": ["x" * LARGEST_KEPT]}]}}
    wires = [job().task("worker", 1, template=long).meta(uid="u1", resourceVersion=str(n)).wire for n in (1, 2)]
    assert reader.read(wires[0]).spec is not reader.read(wires[1]).spec
    assert len(reader) == 1


def test_a_job_without_a_uid_is_read_and_not_remembered() -> None:
    reader = Reader()
    assert reader.read(stored(1, uid="")).name == "job1"
    assert len(reader) == 0


def test_what_cannot_be_read_is_refused_every_time() -> None:
    reader = Reader()
    reader.read(stored(1))
    wrong = stored(2, policies=[{"event": "PodFailed", "action": "RestartJob", "timeout": "soon"}])
    for _ in range(2):
        with pytest.raises(ValueError, match=r"spec\.policies\[0\]\.timeout"):
            reader.read(wrong)


def test_only_the_last_jobs_are_remembered() -> None:
    reader = Reader(most=2)
    first = reader.read(stored(1, uid="u1"))
    for uid in ("u2", "u3"):
        reader.read(stored(1, uid=uid))
    assert len(reader) == 2
    assert reader.read(stored(1, uid="u1")) is not first
    reader.forget("u1")
    reader.forget("nobody")
    assert len(reader) == 1


def test_an_answer_is_worked_out_once_for_an_object_and_what_was_given() -> None:
    memo, asked = Memo[int](most=2), list[str]()

    def answer(text: str) -> int:
        asked.append(text)
        return len(asked)

    one, like_it = ["a"], ["a"]
    assert [memo.of(one, lambda: answer("one")) for _ in range(3)] == [1, 1, 1]
    assert memo.of(like_it, lambda: answer("like it")) == 2, "equal is not the same"
    assert memo.of(one, lambda: answer("one, given"), given="else") == 3
    for other in (["b"], ["c"]):
        memo.of(other, lambda: answer("other"))
    assert len(memo) == 2
    assert memo.of(one, lambda: answer("one again"), given="else") == 6


def test_min_resources_follow_the_priorities_under_one_spec() -> None:
    def pods(cpu: str, priority: str) -> JsonObject:
        container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
        return {"spec": {"containers": [container], "priorityClassName": priority}}

    model = job().task("a", 1, template=pods("1", "x")).task("b", 1, template=pods("2", "y")).model()
    model.spec.min_available = 1
    for priorities, want in (({"x": 9}, "1"), ({"y": 9}, "2"), ({"x": 9}, "1")):
        assert podgroups.build(model, priorities)["spec"]["minResources"]["cpu"] == want


def test_a_recorded_status_is_that_of_its_own_job() -> None:
    one, other = job().phase("Running").model(), job().phase("Pending").model()
    assert status.recorded(one) is status.recorded(one)
    assert status.recorded(one)["state"]["phase"] == "Running"
    assert status.recorded(other)["state"]["phase"] == "Pending"
