"""The suite on a cluster that is there already: what is chosen, what is refused, whether its API server reaches us."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml
from e2e.realcluster import borrowing, kubeconfigs, reaching, suites
from e2e.realcluster.borrowing import Occupied
from e2e.realcluster.kubeconfigs import KubeconfigError
from e2e.realcluster.reaching import NotReachable

from stromboli.api import kinds
from stromboli.kube.client import Client
from stromboli.kube.json import JsonObject
from stromboli.localcluster.options import ClusterSettings
from stromboli.localcluster.server import LocalCluster
from stromboli.process.ports import free_port

SIMULATED: JsonObject = {"metadata": {"name": "node-0", "annotations": {"kwok.x-k8s.io/node": "fake"}}}
REAL: JsonObject = {"metadata": {"name": "worker"}}


@pytest.mark.parametrize(
    ("nodes", "own", "want"),
    [
        ([SIMULATED], True, ""),
        ([SIMULATED, REAL], True, "not simulated_nodes"),
        ([REAL], False, "not simulated_nodes and not own_processes"),
        ([], True, "not simulated_nodes"),
    ],
    ids=["simulated nodes", "a real one among them", "installed on real nodes", "no nodes"],
)
def test_what_cannot_be_there_is_not_chosen(nodes: list[JsonObject], own: bool, want: str) -> None:
    assert borrowing.expression(nodes, own_processes=own) == want


@pytest.mark.parametrize(
    ("expression", "given", "want"),
    [
        ("", [], [str(suites.SUITE)]),
        ("not a", ["-q"], ["-m", "not a", str(suites.SUITE), "-q"]),
        ("not a", ["e2e/test_jobs.py", "-q"], ["-m", "not a", "e2e/test_jobs.py", "-q"]),
    ],
)
def test_the_users_arguments_come_last(expression: str, given: list[str], want: list[str]) -> None:
    assert suites.chosen(expression, given) == want


def deployment(app: str, replicas: int = 1) -> JsonObject:
    template = {"metadata": {"labels": {"app": app}}}
    return {
        "metadata": {"name": app, "namespace": "elsewhere"},
        "spec": {"replicas": replicas, "template": template},
    }


def test_a_cluster_where_the_system_runs_is_refused_with_the_next_step() -> None:
    with pytest.raises(Occupied, match=r"Deployment elsewhere/volcano-scheduler.*E2E_RUNNING=1"):
        borrowing.require_free([deployment("web"), deployment("volcano-scheduler")])


def test_what_does_not_run_is_no_obstacle() -> None:
    borrowing.require_free([deployment("web"), deployment("volcano-scheduler", replicas=0)])


def kubeconfig(directory: Path, cluster: JsonObject, current: str = "here") -> Path:
    path = directory / "given"
    content = {
        "current-context": current,
        "contexts": [{"name": "here", "context": {"cluster": "one", "user": "me"}}],
        "clusters": [{"name": "other", "cluster": {"server": "https://other"}}, {"name": "one", "cluster": cluster}],
        "users": [{"name": "me", "user": {"token": "mine"}}],
    }
    path.write_text(yaml.safe_dump(content))
    return path


def test_the_kubeconfig_of_an_account_leads_to_the_same_cluster_with_its_token_only(tmp_path: Path) -> None:
    given = kubeconfig(
        tmp_path, {"server": "https://one:6443", "certificate-authority": "ca.crt", "proxy-url": "http://p"}
    )
    assert kubeconfigs.server(given) == "https://one:6443"
    kubeconfigs.write_for_token(tmp_path / "written", given, "robot")
    written = yaml.safe_load((tmp_path / "written").read_text())
    assert written["clusters"][0]["cluster"] == {
        "server": "https://one:6443",
        "certificate-authority": str(tmp_path / "ca.crt"),
        "proxy-url": "http://p",
    }
    assert [user["user"] for user in written["users"]] == [{"token": "robot"}]
    assert (tmp_path / "written").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("cluster", "current", "want"),
    [
        ({"server": "https://one"}, "gone", "no context 'gone'"),
        ({}, "here", "has no server"),
    ],
)
def test_a_kubeconfig_that_leads_nowhere_is_refused(
    tmp_path: Path, cluster: JsonObject, current: str, want: str
) -> None:
    with pytest.raises(KubeconfigError, match=want):
        kubeconfigs.server(kubeconfig(tmp_path, cluster, current))


def test_a_missing_kubeconfig_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match="cannot be read"):
        kubeconfigs.server(tmp_path / "none")


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with (
        LocalCluster(ClusterSettings(data_dir=tmp_path / "cluster", crds="none")) as cluster,
        await Client.connect(kubeconfig=str(cluster.kubeconfig), qps=0) as connected,
    ):
        yield connected


async def test_an_api_server_on_this_machine_reaches_us_and_nothing_is_left(client: Client) -> None:
    await reaching.check(client, reaching.address_towards("https://127.0.0.1:1"))
    assert await client.list(kinds.VALIDATING_WEBHOOKS) == []
    names = [item["metadata"]["name"] for item in await client.list(kinds.CONFIG_MAPS, "default")]
    assert not [name for name in names if name.startswith(reaching.LABEL)]


async def test_an_api_server_that_does_not_reach_us_says_why_and_what_to_do(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = f"https://127.0.0.1:{free_port()}/"
    make = reaching._configuration
    monkeypatch.setattr(reaching, "_configuration", lambda _url, authority: make(closed, authority))
    with pytest.raises(NotReachable, match=r"(?s)cannot call webhooks at .*failed calling webhook.*E2E_RUNNING=1"):
        await reaching.check(client, "127.0.0.1")
    assert await client.list(kinds.VALIDATING_WEBHOOKS) == []


def test_the_label_is_of_this_run_alone() -> None:
    assert reaching._object()["metadata"]["labels"] == {reaching.LABEL: str(os.getpid())}
