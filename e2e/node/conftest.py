"""The cluster that :mod:`e2e.realnode` has started, as fixtures; the other fixtures are those of the whole suite."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import pytest_asyncio

from e2e.cluster import Cluster, eventually
from e2e.node.kubectl import Kubectl
from e2e.node.workloads import Workloads
from e2e.realnode.releasing import Helm
from e2e.realnode.surroundings import VARIABLE, Surroundings
from stromboli.api.kinds import DEPLOYMENTS
from stromboli.kube.client import Client

AVAILABLE_SECONDS = 300.0
TEST_SECONDS = 900
# Without real nodes there is nothing to test here: `pytest e2e` leaves this directory to `make e2e-node`.
collect_ignore_glob = [] if VARIABLE in os.environ else ["*"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Containers take their time, and Helm and drains wait for them: more than the rest of the suite has."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.timeout(TEST_SECONDS), append=False)


@pytest.fixture(scope="session")
def surroundings() -> Surroundings:
    """What the tool says about the cluster."""
    if VARIABLE not in os.environ:
        pytest.fail("these tests need real nodes: run `make e2e-node`, or `python -m e2e.realnode FILE` as root")
    return Surroundings.read(Path(os.environ[VARIABLE]))


@pytest.fixture(scope="session")
def helm(surroundings: Surroundings) -> Helm:
    """Helm, for the release that is installed."""
    return Helm(surroundings.programs["helm"], surroundings.kubeconfig)


@pytest_asyncio.fixture(autouse=True, loop_scope="session")
async def whole_control_plane(client: Client, helm: Helm) -> None:
    """A test starts when all three processes are there: the one before may have killed or moved some of them."""

    async def unavailable() -> list[str]:
        found = await client.list(DEPLOYMENTS, helm.release.namespace)
        return [item["metadata"]["name"] for item in found if not item["status"].get("availableReplicas")]

    await eventually(unavailable, lambda seen: not seen, within=AVAILABLE_SECONDS, what="all Deployments Available")


@pytest.fixture
def kubectl(surroundings: Surroundings, cluster: Cluster) -> Kubectl:
    """kubectl, in the test's namespace."""
    return Kubectl(surroundings.programs["kubectl"], surroundings.kubeconfig, cluster.namespace)


@pytest.fixture
def workloads(surroundings: Surroundings) -> Workloads:
    """Jobs whose containers have an image that the nodes have."""
    return Workloads(surroundings.workload_image)
