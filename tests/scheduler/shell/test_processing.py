"""The process around the scheduler: checking a configuration, leading, losing the lead, starting over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from stromboli.api import kinds
from stromboli.kube.client import Client
from stromboli.kube.json import JsonObject
from stromboli.process.running import StartupError
from stromboli.scheduler import processing, registering
from stromboli.scheduler.core import cycle as core_cycle
from stromboli.scheduler.core.results import CycleResult
from stromboli.scheduler.options import Environment, Options
from stromboli.scheduler.policies import Policies
from stromboli.scheduler.processing import Process
from stromboli.testing.builders import node
from tests.scheduler.shell.stage import PERIOD, Stage, gang


def process(**flags: object) -> Process:
    options = Options(
        schedule_period=PERIOD,
        cache_dumper=False,
        leader_elect_lease_duration=1.0,
        leader_elect_renew_deadline=0.5,
        leader_elect_retry_period=0.05,
    )
    for name, value in flags.items():
        setattr(options, name, value)
    registry = registering.load()
    return Process(options, registry, Policies("", registry.known), Environment())


@asynccontextmanager
async def running(candidate: Process, client: Client) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(candidate.run(client))
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, StartupError):
            await task


async def test_only_the_leader_works_and_the_next_takes_over_when_it_stops(stage: Stage) -> None:
    stage.put(node("n1").offer(cpu=20, memory="80Gi"), *gang("first", 2))
    async with running(process(), stage.client):
        await stage.until(lambda: stage.bound("first") == 2)
        lists = stage.server.count("watch", kinds.PODS)
        async with running(process(), stage.client):
            await stage.until(lambda: stage.server.count("get", kinds.LEASES) >= 3, "the second candidate waits")
            assert stage.server.count("watch", kinds.PODS) == lists, "a stand-by watches nothing"
    async with running(process(), stage.client):
        stage.put(*gang("second", 2, born=2000))
        await stage.until(lambda: stage.bound("second") == 2)
    assert stage.bind_calls() == 4


def lease(stage: Stage) -> JsonObject:
    return stage.server.get(kinds.LEASES, "volcano", "volcano-system")


async def test_lost_lease_ends_the_process_with_one_line(stage: Stage) -> None:
    async with running(process(), stage.client) as task:
        await stage.until(lambda: lease(stage)["spec"]["holderIdentity"], "leading")
        taken = lease(stage)
        stage.server.put(kinds.LEASES, {**taken, "spec": {**taken["spec"], "holderIdentity": "somebody-else"}})
        with pytest.raises(StartupError, match="somebody-else holds it"):
            async with asyncio.timeout(10):
                await task


async def test_without_election_no_lease_is_touched(stage: Stage) -> None:
    stage.put(node("n1").offer(cpu=2, memory="8Gi"), *gang("job", 2))
    async with running(process(leader_elect=False), stage.client):
        await stage.until(lambda: stage.bound("job") == 2)
    assert stage.server.count(kind=kinds.LEASES) == 0


async def test_cycle_that_fails_in_the_middle_starts_over_from_the_api_server(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stage.put(node("n1").offer(cpu=2, memory="8Gi"), *gang("job", 2))
    decide, failures = core_cycle.run, list[str]()

    def fail_once(*args: Any, **kwargs: Any) -> CycleResult:
        result = decide(*args, **kwargs)
        if not failures:
            failures.append(result.session_id)
            raise RuntimeError("a defect")
        return result

    monkeypatch.setattr(core_cycle, "run", fail_once)
    async with running(process(leader_elect=False), stage.client):
        await stage.until(lambda: stage.bound("job") == 2)
    assert len(failures) == 1
    assert "starting over from the API server" in caplog.text


async def test_readiness_waits_for_the_caches_of_a_leader(stage: Stage) -> None:
    candidate = process(leader_elect=False)
    assert candidate.health.failures(readiness=True)["caches"] is None, "a stand-by is ready"
    held = stage.server.faults.hold(verb="list", kind=kinds.PODS, times=None)
    stage.server.streaming_lists = False
    async with running(candidate, stage.client):
        await stage.until(lambda: held.hits > 0, "list under way")
        assert "pods" in str(candidate.health.failures(readiness=True)["caches"])
        held.release()
        await stage.until(lambda: candidate.health.failures(readiness=True)["caches"] is None, "ready")


def options_for(path: Path, content: str | None) -> Options:
    if content is not None:
        path.write_text(content)
    return Options(check_config=str(path))


async def test_check_config_prints_the_effective_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = "actions: allocate\ntiers:\n- plugins:\n  - {name: gang, enableJobOrder: false}\n"
    await processing.serve(options_for(tmp_path / "p.yaml", content))
    assert capsys.readouterr().out == (
        "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n    enableJobOrder: false\n"
    )


BEHIND = "actions: reclaim\ntiers:\n- plugins:\n  - name: conformance\n- plugins:\n  - name: proportion\n"
AGREEING = "actions: reclaim\ntiers:\n- plugins:\n  - name: conformance\ntiersAgreeOnVictims: true\n"


async def test_check_config_warns_of_plugins_that_are_not_heard(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await processing.serve(options_for(tmp_path / "p.yaml", BEHIND))
    printed = capsys.readouterr()
    assert printed.out == BEHIND
    assert printed.err.startswith(f"{tmp_path / 'p.yaml'}: warning: reclaim: proportion in a later tier is asked")


MISTYPED = (
    "actions: allocate\ntiers:\n- plugins:\n  - name: binpack\n    arguments:\n      binpack.wieght: 3\n"
    "  - name: gang\n    arguments:\n      weight: 3\n"
    "configurations:\n- name: enqueue\n  arguments:\n    weight: 1\n"
)


async def test_check_config_warns_of_arguments_in_the_words_of_lint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.yaml"
    await processing.serve(options_for(path, MISTYPED))
    assert capsys.readouterr() == (
        MISTYPED,
        f"{path}: warning: binpack: argument 'binpack.wieght' is not known; did you mean 'binpack.weight'?\n"
        f"{path}: warning: gang: argument 'weight' has no effect: the plugin takes none\n"
        f"{path}: warning: configurations: enqueue: argument 'weight' is not known; it takes none\n",
    )


@pytest.mark.parametrize("content", [AGREEING, BEHIND + "tiersAgreeOnVictims: true\n"], ids=["one tier", "two tiers"])
async def test_check_config_shows_that_tiers_agree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    await processing.serve(options_for(tmp_path / "p.yaml", content))
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == (content, "")


UNUSABLE = {
    "missing file": (None, "cannot be read"),
    "unknown action": ("actions: alocate", "did you mean allocate?"),
    "unknown plugin": ("actions: allocate\ntiers: [{plugins: [{name: gagn}]}]", "did you mean gang?"),
}


@pytest.mark.parametrize(("content", "want"), UNUSABLE.values(), ids=UNUSABLE.keys())
async def test_check_config_refuses_what_would_not_do_what_it_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None, want: str
) -> None:
    with pytest.raises(StartupError) as refused:
        await processing.serve(options_for(tmp_path / "p.yaml", content))
    assert "p.yaml" in str(refused.value)
    assert want in str(refused.value)
    assert capsys.readouterr().out == ""


async def test_unusable_kubeconfig_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="kubeconfig"):
        await processing.serve(Options(kubeconfig=str(tmp_path / "nowhere")))
