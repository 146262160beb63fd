"""Which policy is in force at start and after the file changes: the table of spec 04 section 3.4."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from stromboli.process.running import StartupError
from stromboli.scheduler.core.policy import DEFAULT_POLICY, Policy
from stromboli.scheduler.core.policy_file import Known
from stromboli.scheduler.policies import Policies
from stromboli.testing.clocks import FakeClock

KNOWN = Known(actions=dict.fromkeys(["enqueue", "allocate", "backfill"]), plugins=dict.fromkeys(["gang", "priority"]))
GOOD = "actions: allocate\ntiers: [{plugins: [{name: gang}]}]\n"
BETTER = "actions: allocate, backfill\n"
BAD = "actions: alocate\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "policy.yaml"


def policies(path: Path | str, clock: FakeClock | None = None, *, strict: bool = False) -> Policies:
    return Policies(str(path), KNOWN, strict=strict, clock=clock or FakeClock())


def write(path: Path, content: str) -> None:
    path.write_text(content)


def remove(path: Path) -> None:
    path.unlink()


def refusal(loaded: Policies) -> str | None:
    return loaded.refused


def in_force(loaded: Policies) -> tuple[str, ...]:
    return loaded.current.actions


def test_without_a_file_the_built_in_policy_is_in_force() -> None:
    loaded = policies("")
    loaded.load()
    assert loaded.current == DEFAULT_POLICY
    assert loaded.refused is None


def test_without_a_file_strict_refuses_to_start() -> None:
    with pytest.raises(StartupError, match="--scheduler-conf"):
        policies("", strict=True).load()


def test_good_file_is_in_force(path: Path) -> None:
    write(path, GOOD)
    loaded = policies(path)
    loaded.load()
    assert in_force(loaded) == ("allocate",)
    assert loaded.current.tiers[0][0].name == "gang"


UNUSABLE = {
    "missing": None,
    "unknown action": BAD,
    "unknown plugin": GOOD.replace("gang", "gangs"),
    "not YAML": "{",
    "empty": "",
}


@pytest.mark.parametrize("strict", [False, True], ids=["lenient", "strict"])
@pytest.mark.parametrize("content", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_unusable_file_ends_the_start_with_one_line(path: Path, content: str | None, strict: bool) -> None:
    if content is not None:
        write(path, content)
    with pytest.raises(StartupError) as refused:
        policies(path, strict=strict).load()
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


async def test_changed_content_is_in_force_from_then_on(path: Path) -> None:
    write(path, GOOD)
    clock = FakeClock()
    loaded = policies(path, clock)
    loaded.load()
    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(loaded.follow())
        write(path, BETTER)
        await clock.advance(5)
        assert in_force(loaded) == ("allocate", "backfill")
        following.cancel()


async def test_change_for_the_worse_keeps_what_was_and_a_repair_is_taken(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(path, GOOD)
    clock = FakeClock()
    loaded = policies(path, clock)
    loaded.load()
    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(loaded.follow())
        write(path, BAD)
        await clock.advance(5)
        assert in_force(loaded) == ("allocate",)
        assert "did you mean allocate?" in str(refusal(loaded))
        assert "the policy loaded before stays in force" in caplog.text
        remove(path)
        await clock.advance(5)
        assert in_force(loaded) == ("allocate",)
        write(path, BETTER)
        await clock.advance(5)
        assert in_force(loaded) == ("allocate", "backfill")
        assert refusal(loaded) is None
        following.cancel()


async def test_warnings_are_logged_once_at_start_and_at_each_change(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def warnings(policy: Policy) -> list[str]:
        return [f"{len(policy.actions)} actions"]

    write(path, GOOD)
    clock = FakeClock()
    loaded = Policies(str(path), KNOWN, clock=clock, warnings=warnings)
    loaded.load()
    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(loaded.follow())
        await clock.advance(5)
        write(path, BAD)
        await clock.advance(5)
        write(path, BETTER)
        await clock.advance(5)
        following.cancel()
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert told == [f"policy {path}: 1 actions", f"policy {path}: 2 actions"]


async def test_noise_in_the_folder_reloads_nothing(path: Path) -> None:
    write(path, GOOD)
    clock = FakeClock()
    loaded = policies(path, clock)
    loaded.load()
    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(loaded.follow())
        write(path.parent / "neighbour", "noise")
        write(path, GOOD)
        await clock.advance(5)
        assert loaded.generation == 1
        following.cancel()


async def test_change_for_the_worse_ends_a_strict_process(path: Path) -> None:
    write(path, GOOD)
    clock = FakeClock()
    loaded = policies(path, clock, strict=True)
    loaded.load()
    following = asyncio.create_task(loaded.follow())
    write(path, BAD)
    await clock.advance(5)
    with pytest.raises(StartupError, match="alocate"):
        await following


async def test_unknown_plugin_in_a_changed_file_is_named_in_the_log_and_skipped(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(path, GOOD)
    clock = FakeClock()
    loaded = policies(path, clock)
    loaded.load()
    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(loaded.follow())
        write(path, "actions: allocate, backfill\ntiers: [{plugins: [{name: gagn}]}]\n")
        await clock.advance(5)
        assert in_force(loaded) == ("allocate", "backfill")
        assert refusal(loaded) is None
        assert "'gagn' is not known; did you mean gang?" in caplog.text
        assert "It is left out" in caplog.text
        following.cancel()
