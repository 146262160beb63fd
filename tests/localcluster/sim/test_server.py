"""The assembled cluster over HTTPS, in this process."""

from __future__ import annotations

import os
import re
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
import yaml

from stromboli.localcluster.bootstrap import ManifestError
from stromboli.localcluster.datadirectory import DataDirectoryInUse, holder
from stromboli.localcluster.options import ClusterSettings
from stromboli.localcluster.server import LocalCluster
from stromboli.localcluster.statefile import StateFileError
from stromboli.telemetry.listening import ListenError
from tests.localcluster.sim.simulation import config_map, pod


class Caller:
    """An HTTPS client of a cluster, with a token or without."""

    def __init__(self, session: aiohttp.ClientSession, cluster: LocalCluster) -> None:
        self._session = session
        self._cluster = cluster
        self._tls = ssl.create_default_context(cadata=cluster.credentials.ca.certificate.decode())
        self.token: str = cluster.credentials.admin_token

    async def call(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        """Status and JSON (or text) of an answer."""
        sent = {"Content-Type": "application/json", **(headers or {})}
        if self.token:
            sent["Authorization"] = f"Bearer {self.token}"
        data = orjson.dumps(body) if body is not None else None
        async with self._session.request(
            method, self._cluster.url + path, data=data, headers=sent, ssl=self._tls
        ) as response:
            text = await response.read()
            return response.status, orjson.loads(text) if "json" in response.content_type else text.decode()

    async def first_line(self, path: str) -> str:
        """The first event of a watch."""
        headers = {"Authorization": f"Bearer {self.token}"}
        async with self._session.get(self._cluster.url + path, headers=headers, ssl=self._tls) as response:
            return (await response.content.readline()).decode()


@asynccontextmanager
async def calling(cluster: LocalCluster) -> AsyncIterator[Caller]:
    async with aiohttp.ClientSession() as session:
        yield Caller(session, cluster)


def quick(directory: Path, **more: Any) -> ClusterSettings:
    """Settings of a cluster that starts fast."""
    return ClusterSettings(data_dir=directory / "data", crds="none", **more)


async def test_a_kubeconfig_leads_to_the_cluster(tmp_path: Path) -> None:
    async with LocalCluster(quick(tmp_path), nodes=2) as cluster:
        config = yaml.safe_load(cluster.kubeconfig.read_text())
        assert config["clusters"][0]["cluster"]["server"] == cluster.url
        assert config["users"][0]["user"] == {"token": cluster.credentials.admin_token}
        assert cluster.kubeconfig.stat().st_mode & 0o077 == 0
        ready = orjson.loads((cluster.directory / "ready").read_bytes())
        assert (ready["server"], ready["kubeconfig"]) == (cluster.url, str(cluster.kubeconfig))
        async with calling(cluster) as caller:
            code, nodes = await caller.call("GET", "/api/v1/nodes")
            assert code == 200
            assert [node["metadata"]["name"] for node in nodes["items"]] == ["node-0", "node-1"]
    assert not (tmp_path / "data" / "ready").exists()


async def test_without_a_directory_nothing_is_left_behind() -> None:
    async with LocalCluster(ClusterSettings(crds="none"), nodes=1) as cluster:
        directory = cluster.directory
        assert cluster.kubeconfig.exists()
    assert not directory.exists()


async def test_strangers_see_health_only(tmp_path: Path) -> None:
    async with LocalCluster(quick(tmp_path)) as cluster, calling(cluster) as caller:
        for token in ("", "wrong"):
            caller.token = token
            code, status = await caller.call("GET", "/api/v1/pods")
            assert (code, status["reason"]) == (401, "Unauthorized")
        caller.token = ""
        assert await caller.call("GET", "/readyz") == (200, "ok")


async def test_a_service_account_may_what_its_role_allows(tmp_path: Path) -> None:
    async with LocalCluster(quick(tmp_path)) as cluster, calling(cluster) as caller:
        path = "/api/v1/namespaces/default/serviceaccounts/default/token"
        code, answer = await caller.call("POST", path, {"spec": {}})
        assert code == 201
        admin, caller.token = caller.token, answer["status"]["token"]
        code, status = await caller.call("GET", "/api/v1/namespaces/default/pods")
        assert (code, status["message"]) == (
            403,
            'pods is forbidden: User "system:serviceaccount:default:default" cannot list resource "pods" in API group '
            '"" in the namespace "default"',
        )
        mine, caller.token = caller.token, admin
        group = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"
        binding = {
            "metadata": {"name": "b"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}],
        }
        assert (await caller.call("POST", group, binding))[0] == 201
        caller.token = mine
        assert (await caller.call("GET", "/api/v1/namespaces/default/pods"))[0] == 200
        assert (await caller.call("GET", "/api/v1/namespaces/kube-system/pods"))[0] == 403


async def test_always_allow_still_wants_to_know_who_asks(tmp_path: Path) -> None:
    settings = quick(tmp_path, authorization_mode="AlwaysAllow")
    async with LocalCluster(settings) as cluster, calling(cluster) as caller:
        _, answer = await caller.call("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", {"spec": {}})
        caller.token = answer["status"]["token"]
        assert (await caller.call("GET", "/api/v1/pods"))[0] == 200
        caller.token = ""
        assert (await caller.call("GET", "/api/v1/pods"))[0] == 401


async def test_a_pod_is_bound_runs_and_logs(tmp_path: Path) -> None:
    async with LocalCluster(quick(tmp_path, default_scheduler=False), nodes=1) as cluster, calling(cluster) as caller:
        pods = "/api/v1/namespaces/default/pods"
        wanted = pod("p", command=["sh", "-c", "echo hello; sleep 3600"], restartPolicy="Never")
        assert (await caller.call("POST", pods, wanted))[0] == 201
        target = {"apiVersion": "v1", "kind": "Node", "name": "node-0"}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": target}
        code, status = await caller.call("POST", f"{pods}/p/binding", binding)
        assert (code, status["status"]) == (201, "Success")
        query = "watch=1&timeoutSeconds=10&fieldSelector=metadata.name%3Dp,status.phase%3DRunning"
        assert '"phase":"Running"' in await caller.first_line(f"{pods}?{query}")
        assert await caller.call("GET", f"{pods}/p/log") == (200, "hello\n")
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
        assert (await caller.call("POST", f"{pods}/p/eviction", eviction))[0] == 201


async def test_who_am_i_over_https(tmp_path: Path) -> None:
    async with LocalCluster(quick(tmp_path)) as cluster, calling(cluster) as caller:
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        code, review = await caller.call("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body)
        assert (code, review["status"]["userInfo"]["username"]) == (201, "kubernetes-admin")


async def test_a_client_certificate_is_enough(tmp_path: Path) -> None:
    async with LocalCluster(quick(tmp_path)) as cluster, calling(cluster) as caller:
        caller.token = ""
        caller._tls.load_cert_chain(cluster.directory / "admin.crt", cluster.directory / "admin.key")
        assert (await caller.call("GET", "/api/v1/nodes"))[0] == 200


async def test_the_state_comes_back(tmp_path: Path) -> None:
    settings = quick(tmp_path, state_file=tmp_path / "state.json")
    async with LocalCluster(settings, nodes=1) as cluster, calling(cluster) as caller:
        code, made = await caller.call("POST", "/api/v1/namespaces/default/configmaps", config_map("kept"))
        assert code == 201
        token = caller.token
    async with LocalCluster(settings, nodes=1) as cluster, calling(cluster) as caller:
        assert caller.token == token
        code, found = await caller.call("GET", "/api/v1/namespaces/default/configmaps/kept")
        assert (code, found["metadata"]["uid"]) == (200, made["metadata"]["uid"])


async def test_custom_resources_come_back_with_their_definitions(tmp_path: Path) -> None:
    settings = ClusterSettings(data_dir=tmp_path / "data", state_file=tmp_path / "state.json")
    queues = "/apis/scheduling.volcano.sh/v1beta1/queues"
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}, "spec": {}}
    async with LocalCluster(settings) as cluster, calling(cluster) as caller:
        assert (await caller.call("POST", queues, queue))[0] == 201
    async with LocalCluster(settings) as cluster, calling(cluster) as caller:
        assert (await caller.call("GET", f"{queues}/q"))[0] == 200


async def test_a_corrupt_state_file_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text("{")
    with pytest.raises(StateFileError):
        async with LocalCluster(quick(tmp_path, state_file=tmp_path / "state.json")):
            raise AssertionError("started")
    assert (tmp_path / "state.json").read_text() == "{"
    assert not (tmp_path / "data" / "kubeconfig").exists()


async def test_a_port_in_use_stops_the_start(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ListenError, match=f"cannot listen on 127.0.0.1:{port}: the port is in use"):
            async with LocalCluster(quick(tmp_path, port=port)):
                raise AssertionError("started")
    assert not (tmp_path / "data" / "kubeconfig").exists()


async def test_one_data_directory_is_for_one_cluster(tmp_path: Path) -> None:
    async with LocalCluster(quick(tmp_path)) as first:
        before = first.kubeconfig.read_text()
        with pytest.raises(DataDirectoryInUse, match="is in use by another cluster"):
            async with LocalCluster(quick(tmp_path)):
                raise AssertionError("started")
        assert first.kubeconfig.read_text() == before
        assert holder(first.directory) == str(os.getpid())
    assert holder(tmp_path / "data") is None
    assert holder(tmp_path / "none") is None


async def test_manifests_are_created_at_start(tmp_path: Path) -> None:
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    (manifests / "a.yaml").write_text(yaml.safe_dump(config_map("a", namespace="ns")))
    (manifests / "z.yaml").write_text(
        yaml.safe_dump({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}})
    )
    async with LocalCluster(quick(tmp_path, manifests=manifests)) as cluster, calling(cluster) as caller:
        assert (await caller.call("GET", "/api/v1/namespaces/ns/configmaps/a"))[0] == 200


BAD_MANIFESTS = {
    "a kind that is not served": (
        "{kind: Thing, apiVersion: example.com/v1, metadata: {name: t}}",
        'bad.yaml: no matches for kind "Thing" in version "example.com/v1"',
    ),
    "not YAML": ("a: [", "bad.yaml: not YAML"),
    "no object": ("- 5", "bad.yaml: expected an object with apiVersion, kind and metadata"),
    "an object that is refused": (
        "{kind: List, items: [{kind: Pod, apiVersion: v1, metadata: {name: p}, spec: {containers: []}}]}",
        "spec.containers: Required value",
    ),
}


@pytest.mark.parametrize(("content", "want"), BAD_MANIFESTS.values(), ids=BAD_MANIFESTS.keys())
async def test_a_bad_manifest_is_named(tmp_path: Path, content: str, want: str) -> None:
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    (manifests / "bad.yaml").write_text(content)
    with pytest.raises(ManifestError, match=re.escape(want)):
        async with LocalCluster(quick(tmp_path, manifests=manifests)):
            raise AssertionError("started")
