"""``vcctl top``: the cluster at a glance. Queues with bars, jobs by phase, what waits and why, starts a minute.

``--once`` lists the cluster. The live view lists it once and keeps up by watching; it draws what it knows, and says
since when that has not been true where the cluster cannot be followed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from collections.abc import Iterable
from typing import TYPE_CHECKING

from stromboli.cli.commanding.errors import CommandError
from stromboli.cli.commanding.running import Invocation
from stromboli.cli.counting import counted
from stromboli.cli.vc import ages
from stromboli.cli.vc.drawing import screen
from stromboli.cli.vc.looking import look_once
from stromboli.kube.errors import ApiError

if TYPE_CHECKING:
    from stromboli.cli.commanding.kubeconfig import Target
    from stromboli.cli.vc.keeping import Keeper

HOME, REST_OF_LINE, REST_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"
"""To the upper left corner; clear what is right of the cursor, and what is below. Flickers less than clearing all."""


def show_top(invocation: Invocation) -> None:
    """Show the cluster until Ctrl-C; once with ``--once``."""
    interval = invocation.arguments.number("interval")
    if interval < 1:
        raise CommandError("--interval must be at least 1 second")
    with invocation.connect() as api:
        if invocation.arguments.on("once"):
            for line in screen(look_once(api, invocation.now()), _width(invocation)):
                invocation.say(line)
            return
        try:
            api.request("GET", "/version")  # a server that does not answer is told at once
        except ApiError:
            pass  # an answer is an answer
        target = api.target
    logging.getLogger("stromboli").addHandler(logging.NullHandler())  # what happens stands in the picture
    asyncio.run(_live(invocation, target, interval))


async def _live(invocation: Invocation, target: Target, interval: int) -> None:
    from stromboli.cli.commanding.staying import client_for
    from stromboli.cli.vc.keeping import Keeper

    async with client_for(target, invocation.target) as client:
        keeper = Keeper(client)
        async with keeper.running():
            await _listed(invocation, keeper, interval)
            true_at = invocation.now()
            while True:
                now = invocation.now()
                problem = keeper.problem
                true_at = true_at if problem else now
                note = f"Out of date for {ages.duration(now - true_at)}: {problem}" if problem else ""
                width, height = _width(invocation), _height(invocation)
                _draw(invocation, screen(keeper.look(now), width, height, note))
                await keeper.wait(interval)


async def _listed(invocation: Invocation, keeper: Keeper, interval: int) -> None:
    """Wait for the first listing; large clusters take a while, and somebody is looking."""
    while not await keeper.complete(interval):
        if invocation.terminal.out.isatty():
            _draw(invocation, [f"Listing the cluster: {counted(keeper.known, 'object')} so far"])


def _draw(invocation: Invocation, lines: Iterable[str]) -> None:
    """Put a picture in the place of the last one; elsewhere than on a terminal, below it."""
    out = invocation.terminal.out
    if out.isatty():
        out.write(HOME + f"{REST_OF_LINE}\n".join(lines) + REST_OF_SCREEN + "\n")
    else:
        out.write("\n".join(lines) + "\n\n")
    out.flush()


def _height(invocation: Invocation) -> int | None:
    """Lines that a terminal shows above the cursor; None, for no limit, where the output goes elsewhere."""
    return shutil.get_terminal_size().lines - 1 if invocation.terminal.out.isatty() else None


def _width(invocation: Invocation) -> int | None:
    """Columns of the terminal, or what COLUMNS says; None, for no limit, where the output goes elsewhere."""
    if invocation.terminal.out.isatty() or os.environ.get("COLUMNS"):
        return shutil.get_terminal_size().columns
    return None
