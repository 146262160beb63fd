"""The policy of ``stromboli up`` stands where vcctl looks for it, and follows the file."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from stromboli.api.kinds import CONFIG_MAPS
from stromboli.cli.publishing import KEY, NAMED, Publisher
from stromboli.cli.rehearsing.policies import CONF, CONFIG_MAP, NAMESPACE, choose
from stromboli.kube.json import JsonObject
from stromboli.scheduler.core.policy import DEFAULT_POLICY
from stromboli.testing.apiserver import FakeApiServer

POLICY = "actions: enqueue, allocate, reclaim\ntiers: [{plugins: [{name: gang}, {name: of-a-folder}]}]\n"
OTHER = "actions: allocate\ntiers: [{plugins: [{name: gang}]}]\n"


@pytest.fixture
def kubeconfig(server: FakeApiServer, tmp_path: Path) -> Path:
    """A kubeconfig of the fake API server."""
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    cluster, user = {"name": "c", "cluster": {"server": server.url}}, {"name": "u", "user": {}}
    path = tmp_path / "kubeconfig"
    path.write_text(
        yaml.safe_dump({"current-context": "c", "contexts": [context], "clusters": [cluster], "users": [user]})
    )
    return path


def data(server: FakeApiServer) -> JsonObject:
    """What the ConfigMap has."""
    found: JsonObject = server.get(CONFIG_MAPS, CONFIG_MAP, NAMESPACE)["data"]
    return found


def test_it_is_the_place_where_vcctl_looks() -> None:
    assert f"{NAMESPACE}/{CONFIG_MAP}" == NAMED
    assert KEY.endswith(CONF)


async def test_the_policy_file_is_followed(server: FakeApiServer, kubeconfig: Path, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    publisher = Publisher(kubeconfig, file)
    for written, want in ((POLICY, POLICY), ("actions: enq", POLICY), (OTHER, OTHER), (None, OTHER)):
        file.unlink(missing_ok=True)
        if written is not None:
            file.write_text(written)
        assert await publisher.publish() == ""
        assert data(server) == {KEY: want}


async def test_what_an_earlier_run_has_left_is_replaced(server: FakeApiServer, kubeconfig: Path) -> None:
    """Without a file the built-in policy is in force."""
    meta = {"name": CONFIG_MAP, "namespace": NAMESPACE}
    server.put(CONFIG_MAPS, {"metadata": meta, "data": {f"a{CONF}": POLICY, KEY: POLICY}})
    assert await Publisher(kubeconfig, None).publish() == ""
    (written,) = data(server).values()
    assert choose("", written).policy == DEFAULT_POLICY


async def test_what_is_in_force_is_written_once(server: FakeApiServer, kubeconfig: Path) -> None:
    publisher = Publisher(kubeconfig, None)
    await publisher.publish()
    server.remove(CONFIG_MAPS, CONFIG_MAP, NAMESPACE)
    await publisher.publish()
    assert server.objects(CONFIG_MAPS) == []


async def test_a_policy_that_cannot_be_written_down_is_told(server: FakeApiServer, kubeconfig: Path) -> None:
    server.faults.fail(403, verb="get", kind=CONFIG_MAPS, message="no")
    assert (await Publisher(kubeconfig, None).publish()).startswith(
        "vcctl does not know the policy: it could not be written down: no"
    )
