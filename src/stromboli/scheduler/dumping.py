"""Writes down what the mirror holds, on SIGUSR1 to a file and on SIGUSR2 to the log (spec 04 section 34).

One JSON document a line: nodes, HyperNodes by tier, tier names, real nodes of each HyperNode, HyperNodes, jobs. The
dump is taken between two cycles.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import orjson

from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.records import Job, Node
from stromboli.scheduler.core.tables import NodeTable
from stromboli.scheduler.feeding import Feed

log = logging.getLogger(__name__)

Sink: TypeAlias = Callable[[bytes], None]


def documents(mirror: Mirror) -> Iterator[object]:
    """The documents of a dump, in order."""
    nodes = [node for node in mirror.node_list if node is not None]
    view = mirror.hyper_nodes.view(mirror.node_list, mirror.nodes.generation)
    yield {node.name: _node(mirror, mirror.nodes, node) for node in nodes}
    yield {
        tier: sorted(name for name, known in view.by_name.items() if known.tier == tier) for tier in sorted(view.tiers)
    }
    yield {known.tier_name: known.tier for known in view.by_name.values() if known.tier_name}
    by_row = {node.row: node.name for node in nodes}
    yield {name: [by_row[row] for row in rows.tolist() if row in by_row] for name, rows in view.rows.items()}
    yield {
        name: {"tier": known.tier, "parent": known.parent, "children": sorted(known.children)}
        for name, known in view.by_name.items()
    }
    yield {job.id: _job(job) for job in mirror.jobs.values()}


def render(mirror: Mirror) -> bytes:
    """The documents, one a line."""
    return b"".join(
        orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_APPEND_NEWLINE)
        for document in documents(mirror)
    )


def _node(mirror: Mirror, table: NodeTable, node: Node) -> dict[str, object]:
    amounts = mirror.columns.amounts
    return {
        "allocatable": amounts(table.allocatable[node.row]),
        "idle": amounts(table.idle[node.row]),
        "used": amounts(table.used[node.row]),
        "releasing": amounts(table.releasing[node.row]),
        "labels": dict(node.labels),
        "tasks": sorted(node.tasks),
    }


def _job(job: Job) -> dict[str, object]:
    return {
        "queue": job.queue_name,
        "phase": job.phase.word,
        "minMember": job.min_member,
        "priority": job.priority,
        "podGroup": job.pod_group is not None,
        "tasks": {task.key: {"status": task.status.word, "node": task.node_name} for task in job.tasks.values()},
        "subJobs": {
            sub_job.id: sorted(task.key for task in sub_job.tasks.values()) for sub_job in job.sub_jobs.values()
        },
    }


def to_directory(directory: Path, now: Callable[[], float]) -> Sink:
    """A sink that writes ``snapshot-<unix seconds>.json``."""

    def write(content: bytes) -> None:
        path = directory / f"snapshot-{int(now())}.json"
        try:
            path.write_bytes(content)
        except OSError as error:
            log.error("the cache could not be written to %s: %s", path, error.strerror or error)
        else:
            log.info("the cache was written to %s", path)

    return write


def to_log(content: bytes) -> None:
    """A sink that logs each document."""
    for line in content.splitlines():
        log.info("cache: %s", line.decode())


@contextmanager
def on_signals(mirror: Mirror, feed: Feed, sinks: Mapping[signal.Signals, Sink]) -> Iterator[None]:
    """While the block runs, each signal dumps the mirror to its sink."""
    loop = asyncio.get_running_loop()

    def dump(sink: Sink) -> None:
        sink(render(mirror))

    for number, sink in sinks.items():
        loop.add_signal_handler(number, feed.submit, dump, sink)
    try:
        yield
    finally:
        for number in sinks:
            loop.remove_signal_handler(number)
