"""Which server and which credentials a command uses, and one clear line when there are none."""

from __future__ import annotations

import asyncio
import base64
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from stromboli.api.kinds import JOBS, QUEUES
from stromboli.cli.commanding.api import Api
from stromboli.cli.commanding.kubeconfig import find
from stromboli.kube.errors import ConfigurationError, Unauthorized, Unreachable
from stromboli.testing.apiserver import FakeApiServer
from tests.cli.driving import drive
from tests.kube.certificates import Authority

Config = dict[str, Any]


def config(user: Config | None = None, cluster: Config | None = None, context: Config | None = None) -> Config:
    """A kubeconfig of one cluster, user and context."""
    return {
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", **(context or {})}}],
    }


def write(directory: Path, content: Config | str, name: str = "config") -> Path:
    """Write a kubeconfig."""
    path = directory / name
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def test_without_anything_it_is_the_local_server() -> None:
    assert find("", "", {"HOME": "/nonexistent"}).server == "http://localhost:8080"
    assert find("", "", {"HOME": "/nonexistent", "KUBERNETES_MASTER": "1.2.3.4:80"}).server == "http://1.2.3.4:80"


def test_without_a_kubeconfig_it_is_said_where_one_belongs() -> None:
    with pytest.raises(Unreachable, match="there is no kubeconfig: give --kubeconfig, set KUBECONFIG, or put one at"):
        Api(replace(find("", "", {"HOME": "/nonexistent"}), server="http://127.0.0.1:1")).get(QUEUES, "default")


def test_master_replaces_the_server_and_keeps_the_credentials(tmp_path: Path) -> None:
    target = find(str(write(tmp_path, config({"token": "t"}))), "https://other:1", {})
    assert (target.server, target.authorization) == ("https://other:1", "Bearer t")


def test_the_home_file_is_found_and_its_context_names_a_namespace(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    write(tmp_path / ".kube", config(context={"namespace": "team"}))
    assert find("", "", {"HOME": str(tmp_path)}).namespace == "team"


def test_the_first_of_several_files_wins(tmp_path: Path) -> None:
    other = config({"token": "second"}, {"server": "https://second:1"}) | {"current-context": "other"}
    first = write(tmp_path, config({"token": "first"}), "first")
    second = write(tmp_path, other, "second")
    target = find("", "", {"KUBECONFIG": f"{first}:{tmp_path / 'missing'}:{second}"})
    assert (target.server, target.authorization) == ("https://10.0.0.1:6443", "Bearer first")


def test_file_names_are_relative_to_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file\n")
    (tmp_path / "ca.crt").write_bytes(b"pem")
    path = write(tmp_path, config({"tokenFile": "token"}, {"certificate-authority": "ca.crt"}))
    target = find(str(path), "", {})
    assert (target.authorization, target.ca) == ("Bearer from-file", b"pem")


def test_a_password_is_sent_as_basic_authentication(tmp_path: Path) -> None:
    target = find(str(write(tmp_path, config({"username": "a", "password": "b"}))), "", {})
    assert target.authorization == "Basic " + base64.b64encode(b"a:b").decode()


def test_an_exec_plugin_is_asked(tmp_path: Path) -> None:
    plugin = tmp_path / "plugin.py"
    plugin.write_text("import os; print('{\"status\": {\"token\": \"' + os.environ['WORD'] + '\"}}')")
    user = {"exec": {"command": sys.executable, "args": [str(plugin)], "env": [{"name": "WORD", "value": "spoken"}]}}
    assert find(str(write(tmp_path, config(user))), "", {}).authorization == "Bearer spoken"


COMPLAINTS: dict[str, tuple[Config | str, str]] = {
    "no YAML": ("{", "is not YAML: "),
    "nothing": ("", "is empty; it must have clusters, users and contexts"),
    "no current context": (config() | {"current-context": ""}, "current-context is not set (known: here)"),
    "a context that is not there": (
        config() | {"current-context": "there"},
        "current-context 'there' does not exist (known: here); choose another",
    ),
    "a cluster that is not there": (
        config(context={"cluster": "d"}),
        "contexts[].context.cluster 'd' does not exist (known: c); choose another",
    ),
    "no server": (config(cluster={"server": ""}), "clusters[].cluster.server is missing; add the address"),
    "an address that is none": (config(cluster={"server": "ftp://x"}), "'ftp://x' is not an address of an API server"),
    "a certificate file that is not there": (
        config(cluster={"certificate-authority": "missing.crt"}),
        "certificate-authority: [Errno 2]",
    ),
    "an address with a port that is none": (
        config(cluster={"server": "https://a:99999"}),
        "'https://a:99999' is not",
    ),
    "an address that is cut off": (config(cluster={"server": "https://[::1"}), "'https://[::1' is not an address"),
    "an address with a blank": (config(cluster={"server": "https://a/b c"}), "'https://a/b c' is not an address"),
    "an address in other letters": (config(cluster={"server": "https://ü"}), "'https://ü' is not an address"),
    "sections that are no lists": (config() | {"clusters": 5}, "clusters is no list; check the file"),
    "contexts that are no list": (config() | {"contexts": {"a": 1}}, "contexts is no list; check the file"),
    "a token of two lines": (config({"token": "a\nb"}), "users[].user.token: a token is one line of ASCII characters"),
    "a token in other letters": (config({"token": "日"}), "users[].user.token: a token is one line of ASCII"),
    "a token that is no text": (config({"token": ["a"]}), "users[].user.token: a token is one line of ASCII"),
    "a plugin that is no map": (config({"exec": "x"}), "users[].user.exec: expected a map with"),
    "a plugin without a command": (
        config({"exec": {"args": ["x"]}}),
        "users[].user.exec: expected a map with",
    ),
    "a plugin with odd variables": (
        config({"exec": {"command": "true", "env": [1]}}),
        "users[].user.exec: true gave",
    ),
    "a plugin that is not there": (config({"exec": {"command": "/none"}}), "users[].user.exec: /none gave no"),
}


@pytest.mark.parametrize("name", COMPLAINTS)
def test_an_unusable_kubeconfig_is_told_in_one_line(tmp_path: Path, name: str) -> None:
    content, want = COMPLAINTS[name]
    with pytest.raises(ConfigurationError) as raised:
        find(str(write(tmp_path, content)), "", {})
    assert want in str(raised.value)
    assert "\n" not in str(raised.value)


async def test_certificates_of_both_sides_are_used(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.issue("somebody")
    async with FakeApiServer(ssl_context=authority.server_context(wants_client=True)) as server:
        cluster = {"server": server.url, "certificate-authority": "ca.crt"}
        user = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
        path = write(tmp_path, config(user, cluster))
        done = await drive(f"vcctl job list -k {path}", server)
        assert (done.code, done.out) == (0, "No resources found\n")
        stranger = write(tmp_path, config(user, {"server": server.url}), "stranger")
        done = await drive(f"vcctl job list -k {stranger}", server)
        assert done.code == 255
        assert "CERTIFICATE_VERIFY_FAILED" in done.err
        trusting = write(tmp_path, config(user, {"server": server.url, "insecure-skip-tls-verify": True}), "trusting")
        assert (await drive(f"vcctl job list -k {trusting}", server)).code == 0


async def test_a_refused_token_is_an_error_of_the_tree(tmp_path: Path) -> None:
    async with FakeApiServer(token="right") as server:
        path = write(tmp_path, config({"token": "wrong"}, {"server": server.url}))
        with Api(find(str(path), "", {})) as api, pytest.raises(Unauthorized):
            await asyncio.to_thread(api.list, JOBS)


async def test_long_lists_come_in_pages(server: FakeApiServer) -> None:
    for number in range(1201):
        server.put(JOBS, {"metadata": {"name": f"j{number:04}", "namespace": "ns"}})
    with Api(find("", server.url, {})) as api:
        assert len(await asyncio.to_thread(api.list, JOBS)) == 1201
    assert server.count("list", JOBS) == 3


async def test_a_busy_server_is_asked_again(server: FakeApiServer) -> None:
    server.faults.fail(429, verb="list", times=1, retry_after=1)
    with Api(find("", server.url, {})) as api:
        assert await asyncio.to_thread(api.list, JOBS) == []
    assert server.count("list", JOBS) == 2


async def test_a_connection_that_the_server_closed_is_replaced(server: FakeApiServer) -> None:
    with Api(find("", server.url, {})) as api:
        await asyncio.to_thread(api.list, JOBS)
        port = server.port
        await server.stop()
        with pytest.raises(Unreachable):
            await asyncio.to_thread(api.list, JOBS)
        await server.start(port)
        assert await asyncio.to_thread(api.list, JOBS) == []
