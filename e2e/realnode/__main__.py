"""``python -m e2e.realnode``: the chart on real nodes, in namespaces of their own. Needs root.

``--build`` only provides programs and images. ``--keep`` leaves the cluster running until Ctrl-C instead of running the
suite. Further arguments go to pytest.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from e2e.realcluster import binaries, suites
from e2e.realcluster.controlplane import PROGRAMS
from e2e.realnode import control_groups, images, leftovers, prerequisites
from e2e.realnode.confinement import entering
from e2e.realnode.inside import PROJECT, say
from e2e.realnode.leftovers import Marks, Sight
from e2e.realnode.surroundings import KEPT, NAMESPACES_FILE, Settings

NEEDED = (*PROGRAMS, "kube-scheduler", "kube-proxy", "kubelet", "kubectl", "coredns", "helm")
GONE_SECONDS = 60.0
POLL_SECONDS = 0.1


async def run(arguments: argparse.Namespace) -> int:
    """The whole of it; answers the exit code."""
    await prerequisites.provide(say)
    programs = await binaries.provide(NEEDED, say)
    archives = await asyncio.to_thread(images.provide, say)
    if arguments.build:
        return 0
    started = time.monotonic()
    name = f"stromboli-e2e-node-{os.getpid()}"
    directory = Path(tempfile.mkdtemp(prefix=f"{name}-"))
    settings = Settings(name, directory, programs, archives, arguments.keep, arguments.pytest)
    before, groups = await leftovers.look(name), control_groups.containers()
    failed = True
    try:
        control_groups.make(name)
        code = await _confined(settings)
        failed = code != 0
    except asyncio.CancelledError:
        failed = False
        raise
    finally:
        clean = await _clean(settings, before, groups, keep_logs=failed)
    say(f"all in all {time.monotonic() - started:.0f} s")
    return code or (0 if clean else 1)


async def _confined(settings: Settings) -> int:
    """Run :mod:`e2e.realnode.inside` in namespaces of its own; when this is cancelled, they end."""
    path = settings.directory / "settings.json"
    settings.write(path)
    for place in (settings.volatile, settings.logs):
        place.mkdir()
    process = await asyncio.create_subprocess_exec(
        *entering([sys.executable, "-m", "e2e.realnode.inside", path]),
        stdin=asyncio.subprocess.DEVNULL,
        cwd=PROJECT,
        # A terminal's Ctrl-C is for this process, which ends the other.
        start_new_session=True,
    )
    if settings.keep:
        say(f"to look around: nsenter --all --target $(pgrep --parent {process.pid})")
    try:
        return await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _clean(settings: Settings, before: Sight, groups: frozenset[Path], *, keep_logs: bool) -> bool:
    """Take away what no namespace holds, and look for what is left; answers whether that is nothing."""
    marks = Marks(settings.name, _namespaces(settings.directory))
    await _until(lambda: not any(leftovers.belonging(leftovers.processes(), marks)))
    await control_groups.remove(settings.name, groups)
    await asyncio.to_thread(_remove, settings.directory, KEPT if keep_logs else ())
    if keep_logs:
        say(f"logs and audit log are kept in {settings.directory}")
    left = leftovers.leftovers(before, await leftovers.look(settings.name), marks)
    for line in left:
        say(f"left behind: {line}")
    if not left:
        say("nothing is left behind: no process, mount, network, rule, control group or setting")
    return not left


def _namespaces(directory: Path) -> frozenset[str]:
    """The namespaces that were entered; none when that failed."""
    path = directory / NAMESPACES_FILE
    entered = frozenset(json.loads(path.read_text())) if path.is_file() else frozenset()
    return entered - leftovers.namespaces_of("self")


async def _until(condition: Callable[[], bool]) -> None:
    """Wait for a condition, but not for ever: what is wrong then is said by who looks next."""
    deadline = time.monotonic() + GONE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            return
        await asyncio.sleep(POLL_SECONDS)


def _remove(directory: Path, kept: tuple[str, ...]) -> None:
    for path in directory.iterdir():
        if path.name in kept:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    if not kept:
        directory.rmdir()


async def _until_signalled(arguments: argparse.Namespace) -> int:
    """Run until the end or the first signal; further signals do not disturb the cleaning."""
    task = asyncio.ensure_future(run(arguments))
    signals: list[int] = []

    def end(number: int) -> None:
        signals.append(number)
        if len(signals) == 1:
            say("interrupted; cleaning up")
            task.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, end, number)
    try:
        return await task
    except asyncio.CancelledError:
        return 130


def main() -> int:
    """Entry; answers the exit code."""
    parser = argparse.ArgumentParser(prog="python -m e2e.realnode", description=__doc__)
    parser.add_argument("--build", action="store_true", help="only provide programs and images")
    parser.add_argument("--keep", action="store_true", help="keep the cluster until Ctrl-C; run no tests")
    arguments, for_pytest = parser.parse_known_args()
    arguments.pytest = for_pytest
    return suites.exit_code("e2e-node", _until_signalled(arguments))


if __name__ == "__main__":
    sys.exit(main())
