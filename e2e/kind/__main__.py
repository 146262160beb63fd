"""``python -m e2e.kind``: make a cluster, load the image, install the chart, run the suite, take the cluster away.

``--keep`` leaves the cluster there and says how to reach and to delete it. Further arguments go to pytest.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from e2e.kind import planning, prerequisites
from e2e.kind.planning import Plan
from e2e.realcluster import binaries, suites
from e2e.realnode.commands import CommandError, run
from e2e.realnode.releasing import Helm
from images import build

STEP_SECONDS = 1800.0


def say(line: str) -> None:
    """Tell the user what happens."""
    print(f"e2e-kind: {line}", flush=True)


async def main_task(keep: bool, arguments: Sequence[str]) -> int:
    """The whole of it; answers the exit code."""
    helm = binaries.helm()
    prerequisites.check(found_helm=helm)
    await prerequisites.check_daemon()
    assert helm is not None
    directory = Path(tempfile.mkdtemp(prefix="stromboli-kind-"))
    image = build.parse(["--output", "unused"], os.environ).reference
    plan = Plan(f"stromboli-{os.getpid()}", directory, image)
    code = 1
    try:
        code = await _on_a_cluster(plan, helm, arguments)
    finally:
        if keep:
            say(f"KUBECONFIG={plan.kubeconfig}; when done: {' '.join(plan.delete)}")
        else:
            await _take_away(plan, failed=code != 0)
    return code


async def _on_a_cluster(plan: Plan, helm: Path, arguments: Sequence[str]) -> int:
    say(f"making cluster {plan.name}")
    await run(*plan.create, stdin=plan.create_input, seconds=STEP_SECONDS)
    for command in plan.load(planning.archive()):
        say(" ".join(command[:3]))
        await run(*command, seconds=STEP_SECONDS)
    say("installing the chart")
    await Helm(helm, plan.kubeconfig, planning.RELEASE).install(values=planning.values())
    return await suites.run_pytest(suites.chosen(planning.NOT_HERE, arguments), plan.environment(os.environ))


async def _take_away(plan: Plan, *, failed: bool) -> None:
    """Delete the cluster whatever happened before, with its logs kept if it failed."""
    try:
        if failed:
            await run(*plan.export_logs)
            say(f"logs are kept in {plan.directory / 'logs'}")
    except CommandError as error:
        say(f"no logs: {error}")
    finally:
        await run(*plan.delete)
    if not failed:
        shutil.rmtree(plan.directory)


def main() -> int:
    """Entry; answers the exit code."""
    parser = argparse.ArgumentParser(prog="python -m e2e.kind", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave the cluster there")
    options, arguments = parser.parse_known_args()
    return suites.exit_code("e2e-kind", suites.until_signalled(main_task(options.keep, arguments)))


if __name__ == "__main__":
    sys.exit(main())
