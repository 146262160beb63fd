"""A job under whose name no Service can be made ends at once, and its owner reads what to call it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from stromboli.api import kinds
from stromboli.controllers.job import derived
from stromboli.controllers.job.plugins import Attachment, configured
from tests.controllers.building import JobBuilder, job
from tests.controllers.stage import stage


def with_svc(name: str) -> JobBuilder:
    return job(name).task("worker", 1).spec(plugins={"svc": []})


def with_ray(name: str) -> JobBuilder:
    return job(name).task("head", 1).spec(plugins={"ray": []})


@dataclass(frozen=True, slots=True)
class Case:
    """A job, the Service that is named after it, and the longest name that would do; 0 when this one does."""

    builder: JobBuilder
    service: str
    longest: int = 0


CASES: dict[str, Case] = {
    "a name like any other": Case(with_svc("train-1"), "train-1"),
    "as long as it may be": Case(with_svc("a" * 63), "a" * 63),
    "too long": Case(with_svc("a" * 64), "a" * 64, 63),
    "begins with a digit": Case(with_svc("1train"), "1train", 63),
    "with a dot": Case(with_svc("train.one"), "train.one", 63),
    "as long as it may be with what is added": Case(with_ray("a" * 54), "a" * 54 + "-head-svc"),
    "too long with what is added": Case(with_ray("a" * 55), "a" * 55 + "-head-svc", 54),
}


def service_of(builder: JobBuilder) -> Attachment:
    model = builder.model()
    [found] = [one for plugin in configured(model) for one in plugin.attachments(model) if one.kind == kinds.SERVICES]
    return found


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_is_to_be_done_about_the_name(case: Case) -> None:
    service = service_of(case.builder)
    assert service.name == case.service
    told = derived.remedy(service, case.builder.model())
    assert bool(told) == bool(case.longest)
    if told:
        assert told.startswith("metadata.name: ")
        assert f"called {case.service} after it" in told
        assert told.endswith(f"of at most {case.longest} characters")


def test_objects_with_milder_rules_are_left_to_the_server() -> None:
    model = with_svc("train.one").model()
    others = [one for plugin in configured(model) for one in plugin.attachments(model) if one.kind != kinds.SERVICES]
    assert {one.kind.kind for one in others} == {"ConfigMap", "NetworkPolicy"}
    assert not [one for one in others if derived.remedy(one, model)]


@pytest.mark.parametrize("case", [one for one in CASES.values() if one.longest], ids=lambda case: case.service)
async def test_the_job_ends_at_once_with_the_remedy(case: Case) -> None:
    name = case.builder.wire["metadata"]["name"]
    async with stage() as scene:
        message = f'Service "{case.service}" is invalid: metadata.name: Invalid value'
        scene.server.faults.fail(422, verb="create", kind=kinds.SERVICES, times=None, reason="Invalid", message=message)
        scene.submit(case.builder)
        await scene.until(lambda: scene.phase(name) == "Terminated")
        for told in (scene.events.messages(name, "PluginError")[0], scene.status(name)["state"]["message"]):
            assert message in told
            assert f"metadata.name: the Service of the job is called {case.service} after it" in told
            assert f"of at most {case.longest} characters" in told
        assert scene.server.count("create", kinds.SERVICES) == 1, "nothing else would come of trying again"
        assert not scene.pods(name)
