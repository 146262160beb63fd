"""``python -m e2e.realcluster``: build what is missing, start the control plane, install the chart, run the suite.

``--build`` only builds. ``--keep`` leaves the control plane running until Ctrl-C instead of running the suite. Further
arguments go to pytest. With ``E2E_KUBECONFIG=FILE`` the suite runs on that cluster (:mod:`e2e.realcluster.borrowing`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from e2e.realcluster import auditing, binaries, borrowing, installing, suites
from e2e.realcluster.cluster import NEEDED, RealCluster
from e2e.realcluster.rendering import Release, render
from stromboli.cli.stack import ADMISSIONS
from stromboli.kube.json import JsonObject

VALUES: JsonObject = {
    "custom": {
        "enabled_admissions": ADMISSIONS,
        "leader_elect_enable": True,
        "scheduler_schedule_period": "200ms",
        # A killed leader's lease runs out in seconds, so that tests that kill need not wait longer; not in so few that
        # a busy machine loses it.
        **{
            f"{component}_extra_args": [
                "--leader-elect-lease-duration=10s",
                "--leader-elect-renew-deadline=8s",
                "--leader-elect-retry-period=1s",
            ]
            for component in ("controller", "scheduler")
        },
    }
}


def say(line: str) -> None:
    """Tell the user what happens."""
    print(f"e2e: {line}", flush=True)


async def run(arguments: argparse.Namespace) -> int:
    """The whole of it; answers the exit code."""
    release = Release("volcano")
    if (given := os.environ.get(borrowing.VARIABLE)) and not (arguments.build or arguments.keep):
        return await borrowing.run(Path(given), release, VALUES, arguments.pytest, say)
    found = await binaries.provide([*NEEDED, "helm"], say)
    if arguments.build:
        return 0
    directory = Path(tempfile.mkdtemp(prefix="stromboli-e2e-"))
    started = time.monotonic()
    objects = await render(found["helm"], release, VALUES)
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(RealCluster(directory, found))
        installation = await installing.install(cluster, objects, release)
        (directory / "processes.json").write_text(json.dumps(installation.arguments))
        say(f"control plane ready in {time.monotonic() - started:.1f} s: KUBECONFIG={cluster.kubeconfig}")
        async with asyncio.TaskGroup() as tasks:
            supervisor = tasks.create_task(cluster.supervise())
            if arguments.keep:
                await asyncio.Event().wait()
            code = await _suite(cluster, installation.environment, arguments.pytest)
            supervisor.cancel()
        cluster.check()
        if code == 0 and not arguments.pytest:
            code = _judge(cluster, objects, release)
    if code == 0:
        shutil.rmtree(directory)
    else:
        say(f"logs and audit log are kept in {directory}")
    return code


async def _suite(cluster: RealCluster, environment: Mapping[str, str], arguments: Sequence[str]) -> int:
    started = time.monotonic()
    environment = {
        **os.environ,
        **environment,
        borrowing.VARIABLE: str(cluster.kubeconfig),
        "E2E_PROCESSES": str(cluster.directory / "processes.json"),
        "E2E_API_SERVER_PID": str(cluster.api_server_pid),
    }
    code = await suites.run_pytest(arguments, environment)
    say(f"the suite took {time.monotonic() - started:.0f} s")
    return code


def _judge(cluster: RealCluster, objects: Sequence[JsonObject], release: Release) -> int:
    with cluster.audit_log.open() as log:
        findings = auditing.check(log, objects, release.namespace, auditing.EXPECTED_UNUSED)
    for line in findings.lines:
        say(line)
    if findings.lines:
        say("the chart's roles are not what the processes use; see e2e/realcluster/auditing.py")
    return 1 if findings.lines else 0


def main() -> int:
    """Entry; answers the exit code."""
    parser = argparse.ArgumentParser(prog="python -m e2e.realcluster", description=__doc__)
    parser.add_argument("--build", action="store_true", help="only build what is missing")
    parser.add_argument("--keep", action="store_true", help="keep the control plane until Ctrl-C; run no tests")
    arguments, arguments_of_pytest = parser.parse_known_args()
    arguments.pytest = arguments_of_pytest
    return suites.exit_code("e2e", suites.until_signalled(run(arguments)))


if __name__ == "__main__":
    sys.exit(main())
