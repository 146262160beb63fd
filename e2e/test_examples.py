"""``examples/jobs``: each is taken by the API server as it stands, and runs to its end on simulated nodes."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from e2e.cluster import Cluster
from stromboli.api.kinds import CONFIG_MAPS, JOBS

EXAMPLES = {
    path.stem: list(yaml.safe_load_all(path.read_text()))
    for path in sorted((Path(__file__).parents[1] / "examples" / "jobs").glob("*.yaml"))
}
KINDS = {kind.kind: kind for kind in (CONFIG_MAPS, JOBS)}
pytestmark = pytest.mark.simulated_nodes


@pytest.mark.parametrize("example", EXAMPLES)
async def test_an_example_runs_to_its_end(cluster: Cluster, example: str) -> None:
    for obj in EXAMPLES[example]:
        await cluster.create(KINDS[obj["kind"]], obj)
    [name] = [obj["metadata"]["name"] for obj in EXAMPLES[example] if obj["kind"] == JOBS.kind]
    job = await cluster.phase_is(name, "Completed", "Failed", "Terminated", "Aborted")
    assert job["status"]["state"]["phase"] == "Completed"
    assert job["status"].get("retryCount", 0) == 0
