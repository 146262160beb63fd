"""Every way to find a cluster, and one clear line for every way not to."""

from __future__ import annotations

import asyncio
import base64
import sys
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from kubernetes_asyncio.config import incluster_config
from kubernetes_asyncio.config.exec_provider import ExecProvider

from stromboli.api import kinds
from stromboli.kube import connecting
from stromboli.kube.client import Client
from stromboli.kube.errors import ConfigurationError, Unauthorized, Unreachable
from stromboli.testing.apiserver import FakeApiServer
from tests.kube.certificates import Authority

ABSENT = "http://127.0.0.1:1"


@pytest.fixture(autouse=True)
def nothing_configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No configuration of the machine's owner leaks into a test."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def kubeconfig(
    server: str, user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "contexts": [
            {"name": "main", "context": {"cluster": "c", "user": "u"}},
            {"name": "other", "context": {"cluster": "other", "user": "u"}},
        ],
        "clusters": [
            {"name": "c", "cluster": {"server": server, **(cluster or {})}},
            {"name": "other", "cluster": {"server": ABSENT}},
        ],
        "users": [{"name": "u", "user": user or {}}],
    }


def written(path: Path, content: dict[str, Any]) -> str:
    path.write_text(yaml.safe_dump(content))
    return str(path)


async def reaches(**options: Any) -> bool:
    async with await Client.connect(qps=0, **options) as client:
        return b"gitVersion" in await client.request("GET", "/version")


# -- where configuration comes from ----------------------------------------------------------------------------------


async def test_the_flag_wins_over_the_environment(
    server: FakeApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", written(tmp_path / "env", kubeconfig(ABSENT)))
    assert await reaches(kubeconfig=written(tmp_path / "flag", kubeconfig(server.url)))


async def test_the_environment_wins_over_the_home_directory(
    server: FakeApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home" / ".kube").mkdir()
    written(tmp_path / "home" / ".kube" / "config", kubeconfig(ABSENT))
    monkeypatch.setenv("KUBECONFIG", written(tmp_path / "env", kubeconfig(server.url)))
    assert await reaches()


async def test_the_home_directory_is_looked_at(server: FakeApiServer, tmp_path: Path) -> None:
    (tmp_path / "home" / ".kube").mkdir()
    written(tmp_path / "home" / ".kube" / "config", kubeconfig(server.url))
    assert await reaches()


async def test_several_files_are_merged(server: FakeApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contexts, clusters = kubeconfig(server.url), kubeconfig(server.url)
    contexts["clusters"], clusters["contexts"] = [], []
    paths = [written(tmp_path / "one", contexts), written(tmp_path / "two", clusters), str(tmp_path / "absent")]
    monkeypatch.setenv("KUBECONFIG", ":".join(paths))
    assert await reaches()


async def test_the_master_flag_replaces_the_address(server: FakeApiServer, tmp_path: Path) -> None:
    path = written(tmp_path / "config", kubeconfig(ABSENT))
    assert await reaches(kubeconfig=path, master=server.url)
    assert await reaches(master=server.url.removeprefix("http://"))


async def test_a_context_may_be_chosen(server: FakeApiServer, tmp_path: Path) -> None:
    content = kubeconfig(ABSENT)
    content["clusters"][1]["cluster"]["server"] = server.url + "/"
    assert await reaches(kubeconfig=written(tmp_path / "config", content), context="other")


async def test_a_server_may_live_under_a_path(server: FakeApiServer) -> None:
    async with await Client.connect(master=f"{server.url}/k8s/clusters/c-1/") as client:
        assert client.server == f"{server.url}/k8s/clusters/c-1"


async def test_a_pod_uses_its_service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority(tmp_path)
    (tmp_path / "token").write_text("pods-token\n")
    async with FakeApiServer(token="pods-token", ssl_context=authority.server_context()) as server:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.port))
        monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
        monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(authority.path))
        assert await reaches()


# -- what is wrong with it -------------------------------------------------------------------------------------------


@dataclass
class Broken:
    content: str
    want: str


def _without(*path: str | int) -> str:
    content: Any = kubeconfig(ABSENT)
    here = content
    for step in path[:-1]:
        here = here[step]
    del here[path[-1]]
    return yaml.safe_dump(content)


BROKEN = {
    "not YAML": Broken("{", "is not a kubeconfig"),
    "a list": Broken("[]", "is not a kubeconfig"),
    "plain text": Broken("hello", "is not a kubeconfig"),
    "empty": Broken("", "is not a kubeconfig"),
    "no current context": Broken(_without("current-context"), "has no current-context (contexts: main, other)"),
    "no contexts": Broken(_without("contexts"), "current-context 'main' does not exist (it has no contexts)"),
    "a context without a cluster": Broken(_without("contexts", 0, "context", "cluster"), "Expected key cluster"),
    "a cluster that is not there": Broken(_without("clusters", 0), "Expected object with name c"),
    "a cluster without an address": Broken(_without("clusters", 0, "cluster", "server"), "clusters[].cluster.server"),
    "an address that is none": Broken(yaml.safe_dump(kubeconfig("nonsense")), "clusters[].cluster.server"),
    "a certificate that is not there": Broken(
        yaml.safe_dump(kubeconfig("https://127.0.0.1:1", cluster={"certificate-authority": "/nowhere/ca.crt"})),
        "/nowhere/ca.crt",
    ),
    "a certificate that is none": Broken(
        yaml.safe_dump(
            kubeconfig("https://127.0.0.1:1", cluster={"certificate-authority-data": base64.b64encode(b"no").decode()})
        ),
        "cannot use the configured certificates",
    ),
    "an exec plugin that is not there": Broken(
        yaml.safe_dump(
            kubeconfig(
                ABSENT, {"exec": {"command": "/nowhere/plugin", "apiVersion": "client.authentication.k8s.io/v1"}}
            )
        ),
        "/nowhere/plugin",
    ),
}


@pytest.mark.parametrize("case", BROKEN.values(), ids=BROKEN.keys())
async def test_a_broken_kubeconfig_is_one_clear_line(tmp_path: Path, case: Broken) -> None:
    path = tmp_path / "config"
    path.write_text(case.content)
    with pytest.raises(ConfigurationError) as caught:
        await Client.connect(kubeconfig=str(path))
    assert case.want in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_a_missing_kubeconfig_is_named_with_where_it_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="--kubeconfig: no such file: /nowhere/config"):
        await Client.connect(kubeconfig="/nowhere/config")
    monkeypatch.setenv("KUBECONFIG", "/nowhere/config")
    with pytest.raises(ConfigurationError, match=r"\$KUBECONFIG: no such file"):
        await Client.connect()


async def test_a_directory_is_no_kubeconfig(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="must be a file"):
        await Client.connect(kubeconfig=str(tmp_path))


async def test_an_unknown_context_is_named_with_those_there_are(tmp_path: Path) -> None:
    path = written(tmp_path / "config", kubeconfig(ABSENT))
    with pytest.raises(ConfigurationError, match=r"context 'nope' does not exist \(contexts: main, other\)"):
        await Client.connect(kubeconfig=path, context="nope")


async def test_nothing_at_all_says_what_was_looked_for() -> None:
    with pytest.raises(ConfigurationError, match="no cluster to talk to.*pass --kubeconfig"):
        await Client.connect()


async def test_a_master_that_is_no_address_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="--master"):
        await Client.connect(master="https://")


# -- who we are ------------------------------------------------------------------------------------------------------


async def test_a_token_is_sent(server: FakeApiServer, tmp_path: Path) -> None:
    server.token = "secret"
    assert await reaches(kubeconfig=written(tmp_path / "good", kubeconfig(server.url, {"token": "secret"})))
    with pytest.raises(Unauthorized):
        await reaches(kubeconfig=written(tmp_path / "bad", kubeconfig(server.url, {"token": "wrong"})))


async def test_a_token_file_that_was_rotated_is_read_again(server: FakeApiServer, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first\n")
    server.token = "first"
    path = written(tmp_path / "config", kubeconfig(server.url, {"tokenFile": "token"}))
    async with await Client.connect(kubeconfig=path, qps=0) as client:
        await client.list(kinds.PODS)
        client._connection.credentials._checked -= connecting.TOKEN_CHECK_SECONDS
        (tmp_path / "token").write_text("second\n")
        server.token = "second"
        await client.list(kinds.PODS)


async def test_an_exec_plugin_is_asked_again_when_its_token_is_refused(server: FakeApiServer, tmp_path: Path) -> None:
    credential = tmp_path / "credential.json"

    def issue(token: str) -> None:
        answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": token}}
        credential.write_bytes(orjson.dumps(answer))

    plugin = {
        "command": sys.executable,
        "args": ["-c", f"print(open({str(credential)!r}).read())"],
        "apiVersion": "client.authentication.k8s.io/v1",
    }
    issue("first")
    server.token = "first"
    path = written(tmp_path / "config", kubeconfig(server.url, {"exec": plugin}))
    async with await Client.connect(kubeconfig=path, qps=0) as client:
        await client.list(kinds.PODS)
        client._connection.credentials._checked -= 10
        issue("second")
        server.token = "second"
        await client.list(kinds.PODS)


async def test_a_watch_that_is_refused_leaves_a_token_for_the_next_one(server: FakeApiServer, tmp_path: Path) -> None:
    path = tmp_path / "config"
    server.token = "first"
    written(path, kubeconfig(server.url, {"token": "first"}))
    async with await Client.connect(kubeconfig=str(path), qps=0) as client:
        client._connection.credentials._checked -= 10
        server.token = "second"
        written(path, kubeconfig(server.url, {"token": "second"}))
        with pytest.raises(Unauthorized):
            await anext(client.watch(kinds.PODS))
        async with aclosing(client.watch(kinds.PODS)) as events:
            server.put(kinds.PODS, {"metadata": {"name": "a", "namespace": "ns"}})
            assert (await anext(events)).type == "ADDED"


async def test_an_exec_plugin_that_hangs_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(self: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(connecting, "CREDENTIALS_TIMEOUT", 0.1)
    monkeypatch.setattr(ExecProvider, "run", hang)
    plugin = {"command": "plugin", "apiVersion": "client.authentication.k8s.io/v1"}
    path = written(tmp_path / "config", kubeconfig(ABSENT, {"exec": plugin}))
    with pytest.raises(ConfigurationError, match=r"did not answer within 0\.1 s"):
        await Client.connect(kubeconfig=path)


async def test_a_refused_token_is_not_asked_for_over_and_over(server: FakeApiServer, tmp_path: Path) -> None:
    server.token = "right"
    path = written(tmp_path / "config", kubeconfig(server.url, {"token": "wrong"}))
    async with await Client.connect(kubeconfig=path, qps=0) as client:
        with pytest.raises(Unauthorized):
            await client.list(kinds.PODS)


async def test_certificates_are_checked_on_both_sides(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.issue("client")
    user = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
    trusted = {"certificate-authority": str(authority.path)}
    async with FakeApiServer(ssl_context=authority.server_context(wants_client=True)) as server:
        assert await reaches(kubeconfig=written(tmp_path / "good", kubeconfig(server.url, user, trusted)))
        assert await reaches(
            kubeconfig=written(tmp_path / "skip", kubeconfig(server.url, user, {"insecure-skip-tls-verify": True}))
        )
        for name, content in {
            "without trust": kubeconfig(server.url, user),
            "without a client certificate": kubeconfig(server.url, cluster=trusted),
        }.items():
            async with await Client.connect(kubeconfig=written(tmp_path / name, content)) as client:
                with pytest.raises(Unreachable):
                    await client.request("GET", "/version", timeout=0.2)
