"""The shipped job plugins: spec 02 sections 21 and 22."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_ssh_public_key

from stromboli.api import kinds
from stromboli.controllers.job import plugins, pods
from stromboli.controllers.job.plugins import PluginError, Replica
from stromboli.controllers.job.plugins.arguments import Value, read
from stromboli.controllers.job.plugins.ssh import Ssh
from stromboli.controllers.job.plugins.svc import Svc, host_data
from stromboli.controllers.job.refusals import Refused
from stromboli.kube.json import JsonObject
from tests.controllers.building import JobBuilder, job
from tests.controllers.job.test_planning import steps, view

TEMPLATE = {"spec": {"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}]}}


def decorated(builder: JobBuilder, index: int = 0, task: str | None = None) -> JsonObject:
    """The pod of a replica (of the first task unless named) with all plugins of the job applied."""
    model = builder.model()
    spec = next(one for one in model.spec.tasks if task in (None, one.name))
    pod = pods.PodMaker(model, spec).make(index)
    for plugin in plugins.configured(model):
        plugin.decorate(pod, Replica(model, spec, index))
    return pod


def env(container: JsonObject) -> dict[str, str]:
    return {one["name"]: one["value"] for one in container.get("env") or ()}


def every(pod: JsonObject) -> list[JsonObject]:
    return [*pod["spec"]["containers"], *pod["spec"]["initContainers"]]


def test_an_unknown_plugin_is_named_with_those_that_exist() -> None:
    with pytest.raises(PluginError, match="failed to get plugin telepathy: .*env, .*ssh, svc, tensorflow"):
        plugins.configured(job().spec(plugins={"telepathy": []}).model())


def test_the_order_is_fixed_whatever_the_job_says() -> None:
    wanted: dict[str, list[str]] = {name: [] for name in ("svc", "hcclrank", "ssh", "env", "pytorch", "mpi")}
    found = plugins.configured(job().spec(plugins=wanted).model())
    assert [plugin.name for plugin in found] == ["mpi", "pytorch", "env", "ssh", "svc", "hcclrank"]


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


def train(**plugin: list[str]) -> JobBuilder:
    return job("train-123").task("ps", 2).task("worker", 2).task("chief", 1).spec(plugins=plugin)


def test_tensorflow_describes_the_cluster_and_the_pods_place_in_it() -> None:
    [container] = decorated(train(tensorflow=["--port=5000"]), 0, "worker")["spec"]["containers"]
    assert env(container)["TF_CONFIG"] == (
        '{"cluster":{"ps":["train-123-ps-0.train-123:5000","train-123-ps-1.train-123:5000"],'
        '"worker":["train-123-worker-0.train-123:5000","train-123-worker-1.train-123:5000"],'
        '"chief":["train-123-chief-0.train-123:5000"]},"task":{"type":"worker","index":0}}'
    )


def test_tensorflow_leaves_a_single_pod_alone_and_names_other_tasks_as_they_are() -> None:
    single = decorated(job().task("worker", 1).spec(plugins={"tensorflow": []}))
    assert "env" not in single["spec"]["containers"][0]
    other = decorated(train(tensorflow=["--worker=nobody"]), 1, "worker")
    assert '"task":{"type":"worker","index":1}' in env(other["spec"]["containers"][0])["TF_CONFIG"]
    assert '"worker":[' not in env(other["spec"]["containers"][0])["TF_CONFIG"]


def torch(*arguments: str) -> JobBuilder:
    builder = job("test-pytorch").task("master", 1).task("worker", 2, template=TEMPLATE).task("extra", 2)
    return builder.spec(plugins={"pytorch": list(arguments)})


@pytest.mark.parametrize(
    ("task", "index", "rank"), [("master", 0, "0"), ("worker", 0, "1"), ("worker", 1, "2"), ("extra", 0, None)]
)
def test_pytorch_ranks(task: str, index: int, rank: str | None) -> None:
    for container in decorated(torch(), index, task)["spec"]["containers"]:
        found = env(container)
        assert found.pop("RANK", None) == rank
        assert found == {
            "MASTER_ADDR": "test-pytorch-master-0.test-pytorch",
            "MASTER_PORT": "23456",
            "WORLD_SIZE": "3",
        }
        assert container["ports"] == [{"name": "pytorchjob-port", "containerPort": 23456}]


def test_pytorch_without_a_master_changes_nothing() -> None:
    pod = decorated(job().task("worker", 2).spec(plugins={"pytorch": []}))
    assert pod["spec"]["containers"][0].keys() == {"name", "image"}


def test_pytorch_workers_may_wait_for_their_master() -> None:
    asked = torch("--wait-master-enabled", "--wait-master-timeout=60", "--port=1234")
    names_of = [one["name"] for one in decorated(asked, 0, "worker")["spec"]["initContainers"]]
    assert names_of == ["i", "wait-for-master"]
    script = decorated(asked, 0, "worker")["spec"]["initContainers"][1]["command"][2]
    assert "nc -z test-pytorch-master-0.test-pytorch 1234" in script
    assert "-ge 60" in script
    assert "initContainers" not in decorated(asked, 0, "master")["spec"]
    assert len(decorated(torch(), 0, "worker")["spec"]["initContainers"]) == 1


def test_pytorch_does_not_wait_twice() -> None:
    template = {"spec": {"containers": [{"name": "a"}], "initContainers": [{"name": "wait-for-master"}]}}
    builder = job().task("master", 1).task("worker", 1, template=template)
    pod = decorated(builder.spec(plugins={"pytorch": ["--wait-master-enabled"]}), 0, "worker")
    assert pod["spec"]["initContainers"] == [{"name": "wait-for-master"}]


def test_mpi_tells_the_master_its_workers() -> None:
    builder = (
        job("j").task("master", 1, template=TEMPLATE).task("worker", 2, template=TEMPLATE).spec(plugins={"mpi": []})
    )
    for container in every(decorated(builder)):
        assert env(container) == {"MPI_HOST": "j-worker-0.j,j-worker-1.j"}
        assert container["ports"] == [{"name": "mpijob-port", "containerPort": 22}]
    for container in every(decorated(builder, 1, "worker")):
        assert "env" not in container
        assert container["ports"] == [{"name": "mpijob-port", "containerPort": 22}]


def test_mpi_without_workers_changes_nothing_and_exposed_ports_stay() -> None:
    alone = decorated(job().task("master", 1).spec(plugins={"mpi": []}))
    assert alone["spec"]["containers"][0].keys() == {"name", "image"}
    template = {"spec": {"containers": [{"name": "a", "ports": [{"name": "ssh", "containerPort": 22}]}]}}
    pod = decorated(job().task("worker", 1, template=template).spec(plugins={"mpi": []}))
    assert pod["spec"]["containers"][0]["ports"] == [{"name": "ssh", "containerPort": 22}]


def cluster() -> JobBuilder:
    head = {
        "spec": {"containers": [{"name": "head", "ports": [{"name": "mine", "containerPort": 8265}]}, {"name": "x"}]}
    }
    worker = {"spec": {"containers": [{"name": "worker"}]}}
    return job().task("head", 1, template=head).task("worker", 2, template=worker).spec(plugins={"ray": []})


def test_ray_starts_head_and_workers() -> None:
    head, other = decorated(cluster())["spec"]["containers"]
    assert head["command"] == [
        "sh",
        "-c",
        "ray start --head --block --dashboard-host=0.0.0.0 --port=6379 --dashboard-port=8265"
        " --ray-client-server-port=10001",
    ]
    assert [(one["name"], one["containerPort"]) for one in head["ports"]] == [
        ("mine", 8265),
        ("gcs", 6379),
        ("client-server", 10001),
    ]
    assert other == {"name": "x"}
    [worker] = decorated(cluster(), 1, "worker")["spec"]["containers"]
    assert worker["command"] == ["sh", "-c", "ray start --block --address=job1-head-0.job1:6379"]


def test_ray_without_a_head_refuses_the_job() -> None:
    with pytest.raises(PluginError, match="job job1 doesn't have head task head"):
        decorated(job().task("worker", 1).spec(plugins={"ray": []}))


def test_ray_service_targets_numbers() -> None:
    model = cluster().model()
    [service] = plugins.configured(model)[0].attachments(model)
    assert (service.name, service.kind) == ("job1-head-svc", kinds.SERVICES)
    ports = service.build()["spec"]["ports"]
    assert [(one["name"], one["port"], one["targetPort"]) for one in ports] == [
        ("gcs", 6379, 6379),
        ("dashboard", 8265, 8265),
        ("client-server", 10001, 10001),
    ]


@pytest.mark.parametrize(
    ("masters", "task", "index", "want"),
    [(3, "master", 2, "2"), (2, "worker", 1, "3"), (0, "worker", 1, "1"), (1, "other", 0, None)],
)
def test_hcclrank_counts_masters_first(masters: int, task: str, index: int, want: str | None) -> None:
    builder = job().task("master", masters).task("worker", 2).task("other", 1).spec(plugins={"hcclrank": []})
    assert decorated(builder, index, task)["metadata"]["annotations"].get("hccl/rankIndex") == want


def test_hcclrank_takes_over_a_rank_that_is_known() -> None:
    by_pytorch = job().task("master", 1).task("worker", 2).spec(plugins={"hcclrank": [], "pytorch": []})
    assert decorated(by_pytorch, 1, "worker")["metadata"]["annotations"]["hccl/rankIndex"] == "2"
    template = {"metadata": {"annotations": {"hccl/rankIndex": "7"}}, "spec": {"containers": [{"name": "a"}]}}
    by_hand = job().task("worker", 1, template=template).spec(plugins={"hcclrank": []})
    assert decorated(by_hand)["metadata"]["annotations"]["hccl/rankIndex"] == "7"


class Broken:
    """Somebody's plugin, with a fault."""

    name = "broken"
    order = 50
    marked = False

    def __init__(self, arguments: Sequence[str]) -> None:
        if "at-once" in arguments:
            raise RuntimeError("boom")

    def decorate(self, pod: JsonObject, replica: Replica) -> None:
        raise KeyError("gone")

    def attachments(self, job: object) -> Sequence[plugins.Attachment]:
        return ()


@pytest.mark.parametrize(("arguments", "want"), [(["at-once"], "RuntimeError: boom"), (["later"], "gone")])
def test_a_foreign_plugins_fault_is_refused_in_the_jobs_own_name(
    arguments: list[str], want: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = EntryPoint("broken", f"{__name__}:Broken", plugins.ENTRY_POINTS)
    monkeypatch.setattr(plugins, "entry_points", lambda group: [point])
    plugins._available.cache_clear()
    try:
        model = job().task("t", 1).phase("Running").spec(plugins={"broken": arguments}).model()
        with pytest.raises((PluginError, Refused), match=want):
            seen = view(job().task("t", 1).phase("Running"), plugins=plugins.configured(model))
            steps(seen)
    finally:
        plugins._available.cache_clear()
