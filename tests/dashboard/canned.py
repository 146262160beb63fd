"""The canned cluster and its golden view. ``python -m tests.dashboard.canned`` writes the golden anew."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import yaml

from stromboli.api import core
from stromboli.dashboard.objects import Job, pod_sight
from stromboli.dashboard.sights import Sight
from stromboli.dashboard.starts import Starts
from stromboli.dashboard.viewing import view

HERE = Path(__file__).parent
GOLDEN = HERE / "golden" / "view.json"
NOW = core.timestamp("2026-01-01T00:30:00Z")
STRUCTS: dict[str, type[Any]] = {
    "Queue": core.Queue,
    "PodGroup": core.PodGroup,
    "Node": core.Node,
    "HyperNode": core.HyperNode,
    "Event": core.Event,
    "Job": Job,
}


def documents() -> list[dict[str, Any]]:
    """The objects of the canned cluster as plain data."""
    return list(yaml.safe_load_all((HERE / "cluster.yaml").read_text()))


def sight() -> Sight:
    """The canned cluster."""

    def all_of(kind: str) -> Iterator[Any]:
        for document in documents():
            if document["kind"] == kind:
                yield (
                    pod_sight(orjson.dumps(document)) if kind == "Pod" else core.from_builtins(STRUCTS[kind], document)
                )

    return Sight(
        queues=list(all_of("Queue")),
        groups=list(all_of("PodGroup")),
        jobs=list(all_of("Job")),
        pods=list(all_of("Pod")),
        nodes=list(all_of("Node")),
        hyper_nodes=list(all_of("HyperNode")),
        events=list(all_of("Event")),
    )


def seen() -> str:
    """The view of the canned cluster, as the golden has it."""
    starts = Starts()
    for moment in (NOW - 100, NOW - 7, NOW - 7, NOW - 1):
        starts.bound(moment, NOW)
    made = orjson.loads(orjson.dumps(view(sight(), starts.pace(NOW))))
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    GOLDEN.write_text(seen())
