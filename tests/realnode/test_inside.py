"""A run ends when one of its programs does, with what that program said last."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from e2e.realcluster.daemons import Daemon, DaemonError
from e2e.realnode.inside import Site
from e2e.realnode.surroundings import Settings


def site(place: Path) -> Site:
    """A site of which nothing was started."""
    return Site(Settings("run", place, {"kubelet": Path("/bin/false")}, []))


async def test_a_program_that_ends_by_itself_ends_the_block(tmp_path: Path) -> None:
    running = site(tmp_path)
    command = ["/bin/sh", "-c", "echo out of order; exit 3"]
    running.nodes[0].keep(await Daemon.start("node-1-kubelet", command, tmp_path))
    with pytest.raises(DaemonError, match=r"node-1-kubelet ended with exit code 3\nout of order"):
        async with running.watched():
            await asyncio.Event().wait()


async def test_what_goes_wrong_in_the_block_is_raised_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="^the suite$"):
        async with site(tmp_path).watched():
            raise ValueError("the suite")


async def test_while_all_run_the_block_goes_on_to_its_end(tmp_path: Path) -> None:
    running = site(tmp_path)
    daemon = await Daemon.start("node-1-kubelet", ["/bin/sleep", "60"], tmp_path)
    running.nodes[0].keep(daemon)
    async with running.watched():
        reached = True
    await daemon.stop()
    assert reached
