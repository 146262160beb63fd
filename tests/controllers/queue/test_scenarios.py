"""Queues opening, closing and draining: spec 03 section 4.4."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from stromboli.api import kinds, names
from stromboli.controllers.queue.controller import QueueController
from stromboli.kube import json
from tests.controllers.stage import Stage, stage


@asynccontextmanager
async def queues(**options: Any) -> AsyncIterator[Stage]:
    """A stage with a queue controller, and the well-known queues open."""
    async with stage(start=False) as scene:
        await scene.run(
            lambda informers: QueueController(scene.client, informers, scene.events, scene.numbers, **options)
        )
        await scene.until(lambda: state(scene, "root") == "Open")
        yield scene


def add(scene: Stage, name: str, parent: str = "") -> None:
    scene.server.put(kinds.QUEUES, {"metadata": {"name": name}, "spec": {"weight": 1, "parent": parent}})


def state(scene: Stage, name: str) -> str:
    return str((scene.server.get(kinds.QUEUES, name).get("status") or {}).get("state", ""))


def closed_by_parent(scene: Stage, name: str) -> str | None:
    notes = json.metadata(scene.server.get(kinds.QUEUES, name)).get("annotations") or {}
    found: str | None = notes.get(names.CLOSED_BY_PARENT)
    return found


def command(scene: Stage, action: str, queue: str, uid: str = "") -> None:
    target = {"apiVersion": kinds.QUEUES.api_version, "kind": "Queue", "name": queue, "uid": uid}
    meta = {"name": f"{queue}-{action.lower()}-{len(scene.server.calls)}", "namespace": "default"}
    scene.server.put(kinds.COMMANDS, {"metadata": meta, "action": action, "target": target})


def group(scene: Stage, name: str, queue: str, phase: str = "Running") -> None:
    scene.server.put(
        kinds.POD_GROUPS,
        {"metadata": {"name": name, "namespace": "default"}, "spec": {"queue": queue}, "status": {"phase": phase}},
    )


async def test_root_and_default_are_made_and_opened() -> None:
    async with queues() as scene:
        await scene.until(lambda: state(scene, "default") == "Open")
        root = scene.server.get(kinds.QUEUES, "root")
        assert root["spec"] == {"weight": 1, "reclaimable": False}


async def test_losing_the_race_to_make_them_is_no_error() -> None:
    async with stage(start=False) as scene:
        scene.server.faults.fail(409, verb="create", kind=kinds.QUEUES, reason="AlreadyExists")
        scene.server.remove(kinds.QUEUES, "default")
        await scene.run(lambda informers: QueueController(scene.client, informers, scene.events, scene.numbers))
        await scene.until(lambda: state(scene, "default") == "Open")


async def test_a_queue_without_a_parent_goes_under_root() -> None:
    async with queues() as scene:
        add(scene, "q1")
        await scene.until(lambda: scene.server.get(kinds.QUEUES, "q1")["spec"]["parent"] == "root")
        await scene.until(lambda: state(scene, "q1") == "Open")


async def test_an_empty_queue_closes_at_once_and_says_so() -> None:
    async with queues() as scene:
        add(scene, "q1", "root")
        await scene.until(lambda: state(scene, "q1") == "Open")
        command(scene, "CloseQueue", "q1")
        await scene.until(lambda: state(scene, "q1") == "Closed")
        await scene.until(lambda: scene.events.messages("q1", "CloseQueue") == ["Close queue succeed"])
        assert not scene.server.objects(kinds.COMMANDS)


async def test_a_closing_queue_closes_when_its_last_group_goes() -> None:
    async with queues() as scene:
        add(scene, "q1", "root")
        group(scene, "g", "q1", "Completed")
        await scene.until(lambda: scene.numbers.counted.get("q1", {}).get("Completed") == 1)
        await scene.until(lambda: state(scene, "q1") == "Open")
        command(scene, "CloseQueue", "q1")
        await scene.until(lambda: state(scene, "q1") == "Closing")
        scene.server.remove(kinds.POD_GROUPS, "g", "default")
        await scene.until(lambda: state(scene, "q1") == "Closed")


async def test_children_close_and_open_with_their_parent_but_not_without() -> None:
    async with queues(max_requeue=1) as scene:
        add(scene, "q1", "root")
        add(scene, "q11", "q1")
        add(scene, "q12", "q1")
        await scene.until(lambda: [state(scene, name) for name in ("q1", "q11", "q12")] == ["Open"] * 3)
        command(scene, "CloseQueue", "q12")
        await scene.until(lambda: state(scene, "q12") == "Closed")
        command(scene, "CloseQueue", "q1")
        await scene.until(lambda: (state(scene, "q1"), state(scene, "q11")) == ("Closed", "Closed"))
        assert closed_by_parent(scene, "q11") == "true"

        command(scene, "OpenQueue", "q11")
        await scene.until(lambda: scene.events.messages("q11", "OpenQueue"))
        assert "Open the parent queue first" in scene.events.messages("q11", "OpenQueue")[0]
        assert state(scene, "q11") == "Closed"

        command(scene, "OpenQueue", "q1")
        await scene.until(lambda: (state(scene, "q1"), state(scene, "q11")) == ("Open", "Open"))
        await scene.until(lambda: closed_by_parent(scene, "q11") == closed_by_parent(scene, "q1") == "false")
        assert state(scene, "q12") == "Closed"


async def test_root_is_never_closed() -> None:
    async with queues() as scene:
        command(scene, "CloseQueue", "root")
        await scene.until(lambda: not scene.server.objects(kinds.COMMANDS))
        add(scene, "q1", "root")
        await scene.until(lambda: state(scene, "q1") == "Open")
        assert state(scene, "root") == "Open"
        assert "CloseQueue" not in scene.events.reasons("root")


async def test_a_command_for_an_earlier_queue_of_the_name_is_dropped() -> None:
    async with queues() as scene:
        add(scene, "q1", "root")
        await scene.until(lambda: state(scene, "q1") == "Open")
        command(scene, "CloseQueue", "q1", uid="earlier")
        await scene.until(lambda: not scene.server.objects(kinds.COMMANDS))
        add(scene, "q2", "root")
        await scene.until(lambda: state(scene, "q2") == "Open")
        assert state(scene, "q1") == "Open"


async def test_an_unheard_of_state_is_reported_and_the_others_go_on() -> None:
    async with queues(max_requeue=1) as scene:
        scene.server.put(
            kinds.QUEUES, {"metadata": {"name": "odd"}, "spec": {"parent": "root"}, "status": {"state": "Ajar"}}
        )
        await scene.until(lambda: scene.events.messages("odd", "SyncQueue"))
        assert "Ajar" in scene.events.messages("odd", "SyncQueue")[0]
        add(scene, "q1", "root")
        await scene.until(lambda: state(scene, "q1") == "Open")


async def test_state_is_written_only_when_it_changes() -> None:
    async with queues() as scene:
        add(scene, "q1", "root")
        await scene.until(lambda: state(scene, "q1") == "Open")
        for number in range(5):
            group(scene, f"g{number}", "q1")
        await scene.until(lambda: scene.numbers.counted.get("q1", {}).get("Running") == 5)
        writes = [call for call in scene.server.called("patch", kinds.QUEUES, "q1") if call.subresource == "status"]
        assert len(writes) == 1


async def test_a_deleted_queue_leaves_no_numbers() -> None:
    async with queues() as scene:
        add(scene, "q1", "root")
        await scene.until(lambda: "q1" in scene.numbers.counted)
        scene.server.remove(kinds.QUEUES, "q1")
        await scene.until(lambda: "q1" not in scene.numbers.counted)


async def test_a_state_that_cannot_be_written_is_told_and_tried_again() -> None:
    async with queues() as scene:
        add(scene, "q1", "root")
        await scene.until(lambda: state(scene, "q1") == "Open")
        refused = scene.server.faults.fail(500, verb="patch", kind=kinds.QUEUES, name="q1", times=2)
        command(scene, "CloseQueue", "q1")
        await scene.until(lambda: state(scene, "q1") == "Closed")
        assert refused.hits == 2
        await scene.until(lambda: scene.events.messages("q1", "CloseQueue")[-1:] == ["Close queue succeed"])
        assert scene.events.messages("q1", "CloseQueue")[0].startswith("Close queue failed for ")
        scene.server.faults.fail(500, verb="patch", kind=kinds.QUEUES, name="q1", skip=1)  # the mark comes first
        command(scene, "OpenQueue", "q1")
        await scene.until(lambda: state(scene, "q1") == "Open")
        assert scene.events.messages("q1", "OpenQueue")[0].startswith("Update queue status from Closed to Open failed")


async def test_a_group_that_moves_is_counted_where_it_is() -> None:
    async with queues() as scene:
        add(scene, "q1", "root")
        add(scene, "q2", "root")
        group(scene, "g", "q1")
        await scene.until(lambda: scene.numbers.counted.get("q1", {}).get("Running") == 1)
        group(scene, "g", "q2")
        await scene.until(lambda: scene.numbers.counted.get("q2", {}).get("Running") == 1)
        await scene.until(lambda: scene.numbers.counted["q1"]["Running"] == 0)


async def test_a_queue_put_under_a_closed_parent_closes() -> None:
    async with queues() as scene:
        add(scene, "q1", "root")
        await scene.until(lambda: state(scene, "q1") == "Open")
        command(scene, "CloseQueue", "q1")
        await scene.until(lambda: state(scene, "q1") == "Closed")
        add(scene, "late", "q1")
        await scene.until(lambda: state(scene, "late") == "Closed")
        assert closed_by_parent(scene, "late") == "true"


async def test_opening_under_a_closed_parent_is_told_once_and_happens_with_the_parent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with queues() as scene:
        add(scene, "q1", "root")
        add(scene, "q11", "q1")
        await scene.until(lambda: state(scene, "q11") == "Open")
        command(scene, "CloseQueue", "q11")
        await scene.until(lambda: state(scene, "q11") == "Closed")
        command(scene, "CloseQueue", "q1")
        await scene.until(lambda: state(scene, "q1") == "Closed")
        command(scene, "OpenQueue", "q11")
        await scene.until(lambda: "OpenQueue" in scene.events.reasons("q11"))
        [message] = scene.events.messages("q11", "OpenQueue")
        assert message.endswith("its parent queue q1 is closing or closed. Open the parent queue first.")
        command(scene, "OpenQueue", "q1")
        await scene.until(lambda: state(scene, "q11") == "Open")
        assert state(scene, "q1") == "Open"
    [line] = [record for record in caplog.records if "Failed to open queue" in record.getMessage()]
    assert line.exc_info is None


async def test_a_queue_whose_parent_comes_later_is_not_lost() -> None:
    async with queues(max_requeue=0) as scene:
        add(scene, "orphan", "missing")
        await scene.until(lambda: "SyncQueue" in scene.events.reasons("orphan"))
        add(scene, "missing", "root")
        command(scene, "CloseQueue", "missing")
        await scene.until(lambda: (state(scene, "missing"), state(scene, "orphan")) == ("Closed", "Closed"))


async def test_a_missing_parent_is_told_once_and_quietly(caplog: pytest.LogCaptureFixture) -> None:
    async with queues() as scene:
        add(scene, "orphan", "missing")
        await scene.until(lambda: scene.events.reasons("orphan"))
        for number in range(3):  # every change in the queue looks at it again
            group(scene, f"g{number}", "orphan")
            await scene.until(lambda: scene.numbers.counted["orphan"]["Running"] == number + 1)  # noqa: B023
        add(scene, "missing", "elsewhere")
        await scene.until(lambda: scene.events.reasons("missing"))
        assert scene.events.messages("orphan", "SyncQueue") == [
            "queue orphan: its parent queue missing does not exist. "
            "Create it, or set spec.parent to a queue that exists."
        ]
        told = [record for record in caplog.records if "orphan" in record.getMessage()]
        assert [(record.levelname, record.exc_info) for record in told] == [("WARNING", None)]


async def test_defect_4_many_changes_of_a_queue_are_few_passes_one_at_a_time() -> None:
    """Spec 03 section 13: requests did not collapse, and several workers were on one queue at once."""
    async with queues() as scene:
        add(scene, "q1", "root")
        await scene.until(lambda: state(scene, "q1") == "Open")
        held = scene.server.faults.hold(verb="patch", kind=kinds.QUEUES, name="q1")
        command(scene, "CloseQueue", "q1")
        await scene.until(lambda: held.hits)
        for number in range(200):
            group(scene, f"g{number}", "q1")
        add(scene, "q2", "root")
        await scene.until(lambda: state(scene, "q2") == "Open", "another queue is worked on meanwhile")
        assert len(scene.server.called("patch", kinds.QUEUES, "q1")) == 2, "nobody else is on that queue"
        held.release()
        await scene.until(lambda: state(scene, "q1") == "Closed", "it was empty when that was decided")
        await scene.until(lambda: scene.numbers.counted["q1"]["Running"] == 200)
        assert len(scene.server.called("patch", kinds.QUEUES, "q1")) <= 4


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
async def test_the_order_in_which_things_come_does_not_matter(order: tuple[int, ...]) -> None:
    async with queues() as scene:
        arrivals: list[Callable[[], object]] = [
            lambda: add(scene, "q1", "root"),
            lambda: add(scene, "q11", "q1"),
            lambda: group(scene, "g", "q11"),
        ]
        for arrival in order:
            arrivals[arrival]()
        await scene.until(lambda: (state(scene, "q1"), state(scene, "q11")) == ("Open", "Open"))
        await scene.until(lambda: scene.numbers.counted.get("q11", {}).get("Running") == 1)
        command(scene, "CloseQueue", "q1")
        await scene.until(lambda: (state(scene, "q1"), state(scene, "q11")) == ("Closed", "Closing"))
        scene.server.remove(kinds.POD_GROUPS, "g", "default")
        await scene.until(lambda: state(scene, "q11") == "Closed")


@pytest.mark.parametrize("n", range(8))
async def test_a_fault_at_any_write_changes_nothing_in_the_end(n: int) -> None:
    async with queues() as scene:
        for name, parent in (("q1", ""), ("q11", "q1")):
            add(scene, name, parent)
        scene.server.faults.fail(500, verb="patch", kind=kinds.QUEUES, skip=n)
        await scene.until(lambda: (state(scene, "q1"), state(scene, "q11")) == ("Open", "Open"))
        command(scene, "CloseQueue", "q1")
        await scene.until(lambda: (state(scene, "q1"), state(scene, "q11")) == ("Closed", "Closed"))
        command(scene, "OpenQueue", "q1")
        await scene.until(lambda: (state(scene, "q1"), state(scene, "q11")) == ("Open", "Open"))
        await scene.until(lambda: closed_by_parent(scene, "q11") == closed_by_parent(scene, "q1") == "false")
