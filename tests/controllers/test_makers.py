"""Which controllers a command line makes."""

from __future__ import annotations

import pytest

from stromboli.controllers.assembling import CONTROLLERS, Parts, enabled
from stromboli.controllers.informers import SharedInformers
from stromboli.controllers.metrics import ControllerMetrics
from stromboli.controllers.options import PROGRAM, Options
from stromboli.process import flags
from stromboli.telemetry.metrics import Metrics
from stromboli.testing.apiserver import FakeApiServer
from tests.controllers.stage import RecordedEvents

EVERY_DAY = {name for name in CONTROLLERS if name != "sharding-controller"}


async def made(*arguments: str) -> set[str]:
    options = flags.parse(Options, arguments, program=PROGRAM)
    options.check()
    async with FakeApiServer() as server, await server.client() as client:
        parts = Parts(options, client, SharedInformers(client), RecordedEvents(), ControllerMetrics(Metrics()))
        return set(enabled(parts))


CASES: dict[str, tuple[list[str], set[str]]] = {
    "nothing said": ([], EVERY_DAY),
    "everything": (["--controllers=*"], set(CONTROLLERS)),
    "two": (["--controllers=hyperNode-controller,+cronjob-controller"], {"hyperNode-controller", "cronjob-controller"}),
    "names are exact": (["--controllers=hypernode-controller"], set()),
    "all but one": (["--controllers=*,-jobflow-controller"], set(CONTROLLERS) - {"jobflow-controller"}),
    "no jobs": (
        ["--feature-gates=VolcanoJobSupport=false"],
        EVERY_DAY - {"job-controller", "cronjob-controller"},
    ),
    "no cron jobs": (["--feature-gates=CronVolcanoJobSupport=false"], EVERY_DAY - {"cronjob-controller"}),
}


@pytest.mark.parametrize(("arguments", "want"), CASES.values(), ids=CASES.keys())
async def test_what_is_made(arguments: list[str], want: set[str]) -> None:
    assert await made(*arguments) == want


async def test_sharding_that_cannot_be_configured_keeps_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    assert await made("--controllers=*", "--scheduler-configs=one:two") == EVERY_DAY
    assert "expected 7 colon-separated parts" in caplog.text
