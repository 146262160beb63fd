"""Several pre-binders in a row, and what is undone when a pod is not bound after all."""

from __future__ import annotations

import pytest

from stromboli.scheduler.binding import PreBindError, PreBinders, binding
from stromboli.scheduler.core.results import Bind, TaskRef

POD = TaskRef("ns", "p", "uid-p", "ns/job")
BIND = Bind(POD, "n0", annotations={"color": "red"})


class Recording:
    """A pre-binder that notes what it is asked, and may be needed or fail."""

    def __init__(self, name: str, notes: list[str], *, needed: bool = True, fails: bool = False) -> None:
        self.name, self.notes, self.needed, self.fails = name, notes, needed, fails

    def needs(self, bind: Bind) -> bool:
        return self.needed

    async def pre_bind(self, bind: Bind) -> None:
        self.notes.append(f"{self.name} prepares")
        if self.fails:
            raise PreBindError(f"{self.name} cannot")

    async def roll_back(self, bind: Bind) -> None:
        self.notes.append(f"{self.name} undoes")

    async def settle(self, bind: Bind) -> None:
        self.notes.append(f"{self.name} settles")


async def test_they_come_in_order_and_are_undone_in_reverse() -> None:
    notes: list[str] = []
    row = PreBinders(Recording("volumes", notes), Recording("devices", notes))
    await row.pre_bind(BIND)
    await row.roll_back(BIND)
    assert notes == ["volumes prepares", "devices prepares", "devices undoes", "volumes undoes"]


async def test_the_first_failure_undoes_those_before_it() -> None:
    notes: list[str] = []
    row = PreBinders(Recording("volumes", notes), Recording("devices", notes, fails=True), Recording("never", notes))
    with pytest.raises(PreBindError, match="devices cannot"):
        await row.pre_bind(BIND)
    assert notes == ["volumes prepares", "devices prepares", "volumes undoes"]


async def test_those_that_are_not_needed_are_not_asked() -> None:
    notes: list[str] = []
    row = PreBinders(Recording("volumes", notes, needed=False), Recording("devices", notes))
    assert row.needs(BIND)
    await row.pre_bind(BIND)
    await row.roll_back(BIND)
    assert notes == ["devices prepares", "devices undoes"]
    assert not PreBinders(Recording("volumes", notes, needed=False)).needs(BIND)


def test_a_binding_carries_the_pods_annotations_and_its_uid() -> None:
    assert binding(BIND)["metadata"] == {
        "namespace": "ns",
        "name": "p",
        "uid": "uid-p",
        "annotations": {"color": "red"},
    }
    assert "annotations" not in binding(Bind(POD, "n0"))["metadata"]
