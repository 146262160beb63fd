"""What users do with kubectl, against the process as they start it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on PATH")

Kubectl = Callable[..., str]


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    data = tmp_path_factory.mktemp("cluster")
    command = [sys.executable, "-m", "stromboli.localcluster", f"--data-dir={data}", "--pod-run-seconds=0.2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready: ")
        yield data / "kubeconfig"
        process.terminate()
        assert process.wait(timeout=20) == 0


@pytest.fixture
def kubectl(kubeconfig: Path) -> Kubectl:
    def run(*arguments: str, stdin: str | None = None, fails: bool = False) -> str:
        command = ["kubectl", f"--kubeconfig={kubeconfig}", *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=50, check=False)
        assert (done.returncode != 0) is fails, done.stderr
        return done.stderr if fails else done.stdout

    return run


def test_a_deployment_rolls_out_and_back(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx:1", "--replicas=3")
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    kubectl("set", "image", "deployment/web", "nginx=nginx:2")
    kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    kubectl("rollout", "undo", "deployment/web")
    kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    images = kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
    assert images == "nginx:1"
    assert "REVISION" in kubectl("rollout", "history", "deployment/web")
    kubectl("delete", "deployment", "web", "--cascade=foreground", "--timeout=20s")
    assert kubectl("get", "pods", "-l", "app=web", "-o", "name") == ""


def test_a_job_completes_and_logs(kubectl: Kubectl) -> None:
    kubectl("create", "job", "hello", "--image=busybox", "--", "sh", "-c", "echo hello; sleep 0.3")
    kubectl("wait", "--for=condition=complete", "job/hello", "--timeout=20s")
    assert kubectl("logs", "job/hello") == "hello\n"
    kubectl("delete", "job", "hello", "--timeout=20s")


def test_logs_are_followed_to_the_end(kubectl: Kubectl) -> None:
    kubectl("run", "once", "--image=busybox", "--restart=Never", "--", "sh", "-c", "echo done; sleep 1")
    kubectl("wait", "--for=jsonpath={.status.phase}=Running", "pod/once", "--timeout=20s")
    assert kubectl("logs", "-f", "once") == "done\n"
    kubectl("delete", "pod", "once", "--timeout=20s")


def test_drain_respects_a_budget(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "kept", "--image=nginx", "--replicas=1")
    kubectl("create", "poddisruptionbudget", "kept", "--selector=app=kept", "--min-available=1")
    kubectl("rollout", "status", "deployment/kept", "--timeout=20s")
    node = kubectl("get", "pods", "-l", "app=kept", "-o", "jsonpath={.items[0].spec.nodeName}")
    refused = kubectl("drain", node, "--timeout=3s", fails=True)
    assert "Cannot evict pod as it would violate the pod's disruption budget" in refused
    kubectl("delete", "poddisruptionbudget", "kept")
    assert "drained" in kubectl("drain", node, "--timeout=20s")
    kubectl("uncordon", node)
    kubectl("delete", "deployment", "kept", "--timeout=20s")


def test_who_may_what(kubectl: Kubectl) -> None:
    assert "kubernetes-admin" in kubectl("auth", "whoami")
    kubectl("create", "serviceaccount", "robot")
    kubectl("create", "rolebinding", "robot", "--clusterrole=view", "--serviceaccount=default:robot")
    robot = "--as=system:serviceaccount:default:robot"
    assert kubectl("auth", "can-i", "list", "pods", robot) == "yes\n"
    refused = kubectl("run", "p", "--image=nginx", robot, fails=True)
    assert 'User "system:serviceaccount:default:robot" cannot create resource "pods"' in refused
    assert "pods/log" in kubectl("auth", "can-i", "--list", robot)
    token = kubectl("create", "token", "robot", "--duration=20m").strip()
    assert "system:serviceaccount:default:robot" in kubectl("auth", "whoami", "--token", token)


def test_a_namespace_goes_with_everything_in_it(kubectl: Kubectl) -> None:
    kubectl("create", "namespace", "short")
    kubectl("-n", "short", "run", "p", "--image=nginx")
    kubectl("-n", "short", "wait", "--for=condition=Ready", "pod/p", "--timeout=20s")
    kubectl("delete", "namespace", "short", "--timeout=30s")
    assert 'namespaces "short" not found' in kubectl("get", "namespace", "short", fails=True)


def test_quota_and_priority_refusals_reach_the_user(kubectl: Kubectl) -> None:
    kubectl("create", "namespace", "tight")
    kubectl("-n", "tight", "create", "quota", "q", "--hard=pods=0")
    assert "exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0" in kubectl(
        "-n", "tight", "run", "p", "--image=nginx", fails=True
    )
    overrides = '{"spec":{"priorityClassName":"x"}}'
    refused = kubectl("run", "p", "--image=nginx", f"--overrides={overrides}", fails=True)
    assert "no PriorityClass with name x was found" in refused


def test_own_kinds_are_served(kubectl: Kubectl) -> None:
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "q"},
        "spec": {"weight": 1},
    }
    kubectl("apply", "-f", "-", stdin=yaml.safe_dump(queue))
    assert kubectl("get", "queue", "q", "-o", "name") == "queue.scheduling.volcano.sh/q\n"


def test_a_cordoned_node_takes_no_pods(kubectl: Kubectl) -> None:
    nodes = kubectl("get", "nodes", "-o", "name").split()
    for node in nodes:
        kubectl("cordon", node)
    kubectl("run", "late", "--image=nginx")
    kubectl("wait", "--for=condition=PodScheduled=False", "pod/late", "--timeout=20s")
    for node in nodes:
        kubectl("uncordon", node)
    kubectl("wait", "--for=condition=Ready", "pod/late", "--timeout=20s")
