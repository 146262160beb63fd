"""The unmodified kubectl reads: get in all forms, describe, explain, events, logs, version."""

from __future__ import annotations

import json

import pytest

from tests.localcluster.server.kubectl import Kubectl
from tests.localcluster.server.test_kubectl_writing import POD, config_map, job, pod, web


def test_get_prints_tables(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", manifest=[config_map(a="1"), web()])
    header, row = kubectl("get", "configmaps", "c").splitlines()
    assert header.split() == ["NAME", "DATA", "AGE"] and row.split()[:2] == ["c", "1"]
    wide = kubectl("get", "deploy", "-o", "wide").splitlines()
    assert wide[0].split() == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "CONTAINERS", "IMAGES", "SELECTOR"]
    assert wide[1].split()[-3:] == ["main", "nginx:1", "app=web"]
    assert kubectl("get", "nodes").splitlines()[0].split() == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert "configmap/c" in kubectl("get", "cm", "-o", "name").split()


def test_get_of_custom_resources_has_their_columns(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", manifest=job())
    table = kubectl("get", "vj").splitlines()
    assert table[0].split() == ["NAME", "STATUS", "MINAVAILABLE", "RUNNINGS", "AGE"]
    assert kubectl("get", "vcjob", "-o", "wide").splitlines()[0].split()[-1] == "QUEUE"
    assert kubectl("get", "jobs.batch.volcano.sh", "j", "-o", "jsonpath={.spec.queue}") == "default"


def test_get_in_other_forms(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", manifest=config_map(a="1"))
    assert kubectl.json("get", "cm", "c")["data"] == {"a": "1"}
    assert '  a: "1"' in kubectl("get", "cm", "c", "-o", "yaml")
    assert kubectl("get", "cm", "c", "-o", "jsonpath={.data.a}") == "1"
    assert kubectl("get", "cm", "c", "-o", "custom-columns=N:.metadata.name", "--no-headers").strip() == "c"
    assert kubectl("get", "cm", "c", "-o", "go-template={{.data.a}}") == "1"


def test_get_selects_and_crosses_namespaces(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", manifest=[pod("a", {"app": "x"}), pod("b", {"app": "w"})])
    assert kubectl("get", "pods", "-l", "app in (x,z)", "-o", "name").split() == ["pod/a"]
    assert kubectl("get", "pods", "-l", "app!=x", "-o", "name").split() == ["pod/b"]
    assert kubectl("get", "pods", "--field-selector", "metadata.name=b", "-o", "name").split() == ["pod/b"]
    everywhere = kubectl("get", "pods", "-A", "--field-selector", f"metadata.namespace={kubectl.namespace}")
    assert everywhere.splitlines()[0].split()[0] == "NAMESPACE" and len(everywhere.splitlines()) == 3
    refused = kubectl.try_("get", "pods", "--field-selector", "spec.nothing=1")
    assert refused.code == 1 and "field label not supported: spec.nothing" in refused.errors


def test_get_in_chunks_and_sorted(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", manifest=[config_map(name, a="1") for name in ("u", "v", "w")])
    listed = kubectl("get", "cm", "--chunk-size=1", "-o", "name").split()
    assert [name for name in listed if not name.endswith("kube-root-ca.crt")] == [
        "configmap/u",
        "configmap/v",
        "configmap/w",
    ]
    by_name = kubectl("get", "cm", "--sort-by=.metadata.name", "--no-headers").splitlines()
    assert [line.split()[0] for line in by_name][-3:] == ["u", "v", "w"]


def test_get_watches(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", manifest=config_map(a="1"))
    with kubectl.start("get", "configmap", "c", "--watch", "--no-headers", "--request-timeout=20s") as watching:
        assert watching.stdout is not None
        assert watching.stdout.readline().split()[:2] == ["c", "1"]
        kubectl("apply", "-f", "-", manifest=config_map(a="1", b="2"))
        assert watching.stdout.readline().split()[:2] == ["c", "2"]
        watching.terminate()


def test_get_of_what_is_not_there(kubectl: Kubectl) -> None:
    missing = kubectl.try_("get", "pod", "none")
    assert (missing.code, missing.errors.strip()) == (1, 'Error from server (NotFound): pods "none" not found')
    unknown = kubectl.try_("get", "things")
    assert unknown.code == 1 and 'the server doesn\'t have a resource type "things"' in unknown.errors
    assert kubectl("get", "pod", "none", "--ignore-not-found") == ""


def test_describe(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", manifest=[POD, web(), job()])
    told = kubectl("describe", "pod", "p")
    assert "Image:" in told and "busybox:1" in told and "Events:" in told
    assert "StrategyType:" in kubectl("describe", "deployment", "web")
    assert "Min Available:" in kubectl("describe", "vj", "j")
    assert "Allocatable:" in kubectl("describe", "node", "node-0")
    assert "Status:       Active" in kubectl("describe", "ns", kubectl.namespace)


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        (("pod.spec.containers.image",), "FIELD: image <string>"),
        (("deployment", "--recursive"), "progressDeadlineSeconds"),
        (("job.spec.tasks", "--api-version=batch.volcano.sh/v1alpha1"), "FIELD: tasks <[]Object>"),
        (("podgroup.spec.minMember",), "FIELD: minMember <integer>"),
        (("queue",), "KIND:       Queue"),
    ],
)
def test_explain(kubectl: Kubectl, arguments: tuple[str, ...], want: str) -> None:
    assert want in kubectl("explain", *arguments)


def test_api_resources_and_versions(kubectl: Kubectl) -> None:
    resources = kubectl("api-resources", "--no-headers")
    assert "deployments" in resources and "jobs.batch.volcano.sh" in kubectl("api-resources", "-o", "name")
    assert kubectl("api-resources", "--api-group=scheduling.volcano.sh", "-o", "name").split() == [
        "podgroups.scheduling.volcano.sh",
        "queues.scheduling.volcano.sh",
    ]
    assert "batch.volcano.sh/v1alpha1" in kubectl("api-versions").split()
    assert json.loads(kubectl("version", "-o", "json"))["serverVersion"]["major"] == "1"
    assert "is running at" in kubectl("cluster-info")


def test_can_i(kubectl: Kubectl) -> None:
    assert kubectl("auth", "can-i", "create", "pods").strip() == "yes"
    denied = kubectl.try_("auth", "can-i", "create", "pods", "--as", "nobody")
    assert (denied.code, denied.output.strip()) == (1, "no")
    refused = kubectl.try_("get", "pods", "--as", "nobody")
    assert refused.code == 1 and refused.errors.strip() == (
        'Error from server (Forbidden): pods is forbidden: User "nobody" cannot list resource "pods" in API group "" '
        f'in the namespace "{kubectl.namespace}"'
    )
    assert "kubernetes-admin" in kubectl("auth", "whoami")


def test_logs_and_events_of_a_simulated_pod(kubectl: Kubectl) -> None:
    kubectl("run", "hello", "--image=busybox", "--restart=Never", "--", "sh", "-c", "echo hello; exit 0")
    kubectl("wait", "pod/hello", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=20s")
    assert "hello" in kubectl("logs", "hello")
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "hello.1"},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "hello",
            "namespace": kubectl.namespace,
            "uid": kubectl.json("get", "pod", "hello")["metadata"]["uid"],
        },
        "reason": "Greeted",
        "message": "said hello",
        "type": "Normal",
    }
    kubectl("create", "-f", "-", manifest=event)
    assert "said hello" in kubectl("events", "--for", "pod/hello")
    assert "Greeted" in kubectl("get", "events", "--field-selector", "involvedObject.name=hello,type=Normal")
    assert "said hello" in kubectl("describe", "pod", "hello")
    assert kubectl("get", "pod", "hello", "--no-headers").split()[2] == "Completed"
