"""The shipped job plugins: spec 02 sections 21 and 22."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_ssh_public_key

from stromboli.api import kinds
from stromboli.controllers.job import plugins, pods
from stromboli.controllers.job.plugins import PluginError, Replica
from stromboli.controllers.job.plugins.arguments import Value, read
from stromboli.controllers.job.plugins.ssh import Ssh
from stromboli.controllers.job.plugins.svc import Svc, host_data
from stromboli.kube.json import JsonObject
from tests.controllers.building import JobBuilder, job

TEMPLATE = {"spec": {"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}]}}


def decorated(builder: JobBuilder, index: int = 0) -> JsonObject:
    """The pod of the first task's replica with all plugins of the job applied."""
    model = builder.model()
    pod = pods.build(model, model.spec.tasks[0], index)
    for plugin in plugins.configured(model):
        plugin.decorate(pod, Replica(model, model.spec.tasks[0], index))
    return pod


def every(pod: JsonObject) -> list[JsonObject]:
    return [*pod["spec"]["containers"], *pod["spec"]["initContainers"]]


def test_an_unknown_plugin_is_named_with_those_that_exist() -> None:
    with pytest.raises(PluginError, match="failed to get plugin telepathy: .*env, ssh, svc"):
        plugins.configured(job().spec(plugins={"telepathy": []}).model())


def test_the_order_is_fixed_whatever_the_job_says() -> None:
    found = plugins.configured(job().spec(plugins={"svc": [], "ssh": [], "env": []}).model())
    assert [plugin.name for plugin in found] == ["env", "ssh", "svc"]


def test_env_tells_every_container_its_index() -> None:
    for container in every(decorated(job().task("t", 3, template=TEMPLATE).spec(plugins={"env": []}), 2)):
        assert container["env"] == [{"name": "VK_TASK_INDEX", "value": "2"}, {"name": "VC_TASK_INDEX", "value": "2"}]


def test_svc_gives_names_hosts_and_files() -> None:
    pod = decorated(job().task("task-1", 1, template=TEMPLATE).spec(plugins={"svc": []}))
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("job1-task-1-0", "job1")
    assert pod["spec"]["volumes"] == [{"name": "job1-svc", "configMap": {"name": "job1-svc"}}]
    for container in every(pod):
        assert [one["name"] for one in container["env"]] == ["VC_TASK_1_HOSTS", "VC_TASK_1_NUM"]
        reference = container["env"][0]["valueFrom"]["configMapKeyRef"]
        assert reference == {"name": "job1-svc", "key": "VC_TASK_1_HOSTS"}
        assert container["volumeMounts"] == [{"name": "job1-svc", "mountPath": "/etc/volcano"}]


def test_svc_keeps_a_host_name_of_the_template_which_all_replicas_share() -> None:
    template = {"spec": {**TEMPLATE["spec"], "hostname": "h", "subdomain": "s"}}
    builder = job().task("t", 3, template=template).spec(plugins={"svc": []})
    assert (decorated(builder)["spec"]["hostname"], decorated(builder)["spec"]["subdomain"]) == ("h", "s")
    assert host_data(builder.model()) == {"t.host": "h.s", "VC_T_HOSTS": "h.s", "VC_T_NUM": "1"}


def test_svc_host_data_follows_the_scale() -> None:
    assert host_data(job().task("my-task", 2).task("idle", 0).model()) == {
        "my_task.host": "job1-my-task-0.job1\njob1-my-task-1.job1",
        "VC_MY_TASK_HOSTS": "job1-my-task-0.job1,job1-my-task-1.job1",
        "VC_MY_TASK_NUM": "2",
        "idle.host": "",
        "VC_IDLE_HOSTS": "",
        "VC_IDLE_NUM": "0",
    }


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        ([], ["configmaps", "services", "networkpolicies"]),
        (["--disable-network-policy=true"], ["configmaps", "services"]),
        (["-disable-network-policy"], ["configmaps", "services"]),
        (["--bogus", "--disable-network-policy"], ["configmaps", "services", "networkpolicies"]),
    ],
)
def test_svc_objects(arguments: list[str], want: list[str]) -> None:
    assert [one.kind.plural for one in Svc(arguments).attachments(job().task("t", 1).model())] == want


def test_svc_service_is_headless_and_selects_the_jobs_pods() -> None:
    selector = {"volcano.sh/job-name": "job1", "volcano.sh/job-namespace": "default"}
    service = next(one for one in Svc([]).attachments(job().model()) if one.kind is kinds.SERVICES).build()
    assert service["spec"] == {"clusterIP": "None", "selector": selector}
    published = next(
        one for one in Svc(["--publish-not-ready-addresses"]).attachments(job().model()) if one.kind is kinds.SERVICES
    )
    assert published.build()["spec"]["publishNotReadyAddresses"] is True


def test_svc_config_map_is_stale_after_scaling() -> None:
    [before] = [one for one in Svc([]).attachments(job().task("t", 1).model()) if one.always]
    [after] = [one for one in Svc([]).attachments(job().task("t", 2).model()) if one.always]
    assert not before.stale(before.build())
    assert after.stale(before.build())


def secret(arguments: Sequence[str], builder: JobBuilder) -> dict[str, str]:
    [attachment] = Ssh(arguments).attachments(builder.model())
    return {name: base64.b64decode(data).decode() for name, data in attachment.build()["data"].items()}


def test_ssh_draws_a_key_pair_that_fits() -> None:
    found = secret([], job().task("t", 1))
    assert set(found) == {"id_rsa", "id_rsa.pub", "authorized_keys", "config"}
    assert found["id_rsa"].startswith("-----BEGIN RSA PRIVATE KEY-----")
    assert found["id_rsa.pub"] == found["authorized_keys"]
    assert found["id_rsa.pub"].endswith("\n")
    private: Any = load_pem_private_key(found["id_rsa"].encode(), None)
    public: Any = load_ssh_public_key(found["id_rsa.pub"].encode())
    assert private.key_size == 2048
    assert private.public_key().public_numbers() == public.public_numbers()


def test_ssh_takes_given_keys_as_they_are() -> None:
    found = secret(["--ssh-private-key=PRIVATE", "--ssh-public-key", "PUBLIC"], job().task("t", 1))
    assert (found["id_rsa"], found["id_rsa.pub"], found["authorized_keys"]) == ("PRIVATE", "PUBLIC", "PUBLIC")


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        ([], "22"),
        (["--ssh-port=2026"], "2026"),
        (["--ssh-port=-10"], "22"),
        (["--ssh-port=65536"], "22"),
        (["--ssh-port=many"], "22"),
        (["--no-root"], "22"),
    ],
)
def test_ssh_config_lists_every_host_with_its_port(arguments: list[str], want: str) -> None:
    assert Ssh(arguments).config(job().task("m", 1).task("w", 1).model()) == (
        "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
        f"Host job1-m-0\n  HostName job1-m-0.job1\n  Port {want}\n"
        f"Host job1-w-0\n  HostName job1-w-0.job1\n  Port {want}\n"
    )


def test_ssh_keys_stay_while_the_hosts_stay() -> None:
    [one] = Ssh([]).attachments(job().task("t", 1).model())
    [scaled] = Ssh([]).attachments(job().task("t", 2).model())
    written = one.build()
    assert not one.stale(written)
    assert scaled.stale(written)


@pytest.mark.parametrize(
    ("path", "mode"), [([], 0o600), (["--ssh-key-file-path=/home/user/.ssh"], 0o644)], ids=["root", "user"]
)
def test_ssh_mounts_the_secret(path: list[str], mode: int) -> None:
    pod = decorated(job().task("t", 1, template=TEMPLATE).spec(plugins={"ssh": path}))
    [volume] = pod["spec"]["volumes"]
    assert volume["secret"]["defaultMode"] == mode
    assert {"key": "config", "path": ".ssh/config"} in volume["secret"]["items"]
    where = path[0].partition("=")[2] if path else "/root/.ssh"
    for container in every(pod):
        assert container["volumeMounts"] == [{"name": "job1-ssh", "mountPath": where, "subPath": ".ssh"}]


DEFAULTS: dict[str, Value] = {"name": "d", "port": 7, "on": False}
ARGUMENTS: dict[str, tuple[list[str], dict[str, Value]]] = {
    "nothing": ([], {}),
    "one dash or two": (["-name=a", "--port=8"], {"name": "a", "port": 8}),
    "the value as the next token": (["--name", "a", "--port", "8"], {"name": "a", "port": 8}),
    "a bare boolean": (["--on", "--port=8"], {"on": True, "port": 8}),
    "a boolean spelled out": (["--on=F"], {"on": False}),
    "other bases": (["--port=0x10"], {"port": 16}),
    "an unknown flag ends it": (["--name=a", "--what=1", "--port=8"], {"name": "a"}),
    "a bad number ends it and keeps the default": (["--port=x", "--name=a"], {}),
    "a bad boolean ends it and keeps the default": (["--on=maybe", "--name=a"], {}),
    "a flag without its value": (["--name"], {}),
    "the first plain word ends it": (["word", "--name=a"], {}),
    "two dashes end it": (["--", "--name=a"], {}),
    "a later flag wins": (["--name=a", "--name=b"], {"name": "b"}),
    "an empty value": (["--name="], {"name": ""}),
}


@pytest.mark.parametrize(("arguments", "want"), ARGUMENTS.values(), ids=ARGUMENTS.keys())
def test_arguments(arguments: list[str], want: dict[str, Value]) -> None:
    assert read("test", arguments, DEFAULTS) == {**DEFAULTS, **want}
