"""Objects that cannot be read: their owners are told what is wrong, once, and they are taken up when it is mended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC
from typing import Any

import pytest

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.api.reasons import EventReason
from stromboli.controllers.cronjob.controller import CronJobController
from stromboli.controllers.hypernode.controller import HyperNodeController
from stromboli.controllers.informers import SharedInformers
from stromboli.controllers.jobflow.controller import JobFlowController
from stromboli.kube.json import JsonObject
from tests.controllers.stage import Stage, stage


class Nowhere:
    """Counts nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *given, **more: None


@dataclass
class Case:
    """An object with one wrong field, what is said of it, the field put right, and what shows that it was taken up."""

    kind: Kind
    make: Callable[[Stage, SharedInformers], Any]
    wrong: JsonObject
    says: str
    right: JsonObject
    taken_up: Callable[[Stage], object]


def template(replicas: object) -> JsonObject:
    return {"spec": {"tasks": [{"name": "t", "replicas": replicas, "template": {"spec": {"containers": []}}}]}}


CASES = {
    "a HyperNode": Case(
        kinds.HYPER_NODES,
        lambda scene, informers: HyperNodeController(scene.client, informers, scene.events),
        {"tier": "low", "members": []},
        "tier",
        {"tier": 1, "members": []},
        lambda scene: (scene.server.get(kinds.HYPER_NODES, "x").get("status") or {}).get("nodeCount") == 0,
    ),
    "a CronJob": Case(
        kinds.CRON_JOBS,
        lambda scene, informers: CronJobController(scene.client, informers, scene.events, zone=UTC),
        {"schedule": "* * * * *", "suspend": "no", "jobTemplate": template(1)},
        "spec.suspend: must be true or false, not 'no'",
        {"schedule": "not one", "suspend": False, "jobTemplate": template(1)},
        lambda scene: EventReason.UNPARSEABLE_SCHEDULE in scene.events.reasons("x"),
    ),
    "a JobFlow": Case(
        kinds.JOB_FLOWS,
        lambda scene, informers: JobFlowController(scene.client, informers, scene.events, Nowhere()),
        {"flows": [{"name": 3}]},
        "spec.flows[0].name: must be a string, not 3",
        {"flows": [{"name": "none"}]},
        lambda scene: scene.server.get(kinds.JOB_FLOWS, "x", "ns").get("status"),
    ),
}


def put(scene: Stage, kind: Kind, spec: JsonObject) -> None:
    namespace = {"namespace": "ns"} if kind.namespaced else {}
    scene.server.put(kind, {"metadata": {"name": "x", **namespace}, "spec": spec})


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_owner_is_told_once_for_each_version(case: Case) -> None:
    async with stage(start=False) as scene:
        put(scene, case.kind, case.wrong)
        await scene.run(lambda informers: case.make(scene, informers))

        def told() -> list[str]:
            return scene.events.messages("x", "Unreadable")

        await scene.until(told)
        assert case.says in told()[0]
        assert told()[0].endswith("; it is taken up again when that is corrected")
        put(scene, case.kind, {**case.wrong, "more": "of it"})
        await scene.until(lambda: len(told()) == 2)
        put(scene, case.kind, case.right)
        await scene.until(lambda: case.taken_up(scene))
        assert len(told()) == 2
