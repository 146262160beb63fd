"""The unmodified kubectl writes: create, apply, patch, scale, label, delete, dry runs, bad input."""

from __future__ import annotations

from typing import Any

import pytest

from tests.localcluster.server.kubectl import Kubectl


def config_map(called: str = "c", /, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": called}, "data": data}


def pod(name: str, labels: dict[str, str]) -> dict[str, Any]:
    """A pod that no scheduler takes."""
    spec = {"schedulerName": "nobody", "containers": [{"name": "main", "image": "busybox:1"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


POD = pod("p", {"app": "p"})


def web(replicas: int = 1, image: str = "nginx:1") -> dict[str, Any]:
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": image, "ports": [{"containerPort": 80}]}]},
        },
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def job(**spec: Any) -> dict[str, Any]:
    task = {"name": "t", "replicas": 1, "template": {"spec": {"containers": [{"name": "main", "image": "busybox:1"}]}}}
    wanted = {"schedulerName": "volcano", "minAvailable": 1, "tasks": [task], **spec}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j"}, "spec": wanted}


CREATE = {
    "configmap": ("configmap", "x", "--from-literal=a=b"),
    "secret": ("secret", "generic", "x", "--from-literal=a=b"),
    "service account": ("serviceaccount", "x"),
    "deployment": ("deployment", "x", "--image=nginx", "--replicas=0"),
    "job": ("job", "x", "--image=busybox", "--", "true"),
    "cron job": ("cronjob", "x", "--image=busybox", "--schedule=* * * * *", "--", "true"),
    "service": ("service", "clusterip", "x", "--tcp=80:8080"),
    "role": ("role", "x", "--verb=get", "--resource=pods"),
    "role binding": ("rolebinding", "x", "--role=x", "--user=somebody"),
    "quota": ("quota", "x", "--hard=pods=100"),
    "disruption budget": ("pdb", "x", "--selector=app=x", "--min-available=50%"),
    "token": ("token", "default"),
}


@pytest.mark.parametrize("name", CREATE)
def test_create(kubectl: Kubectl, name: str) -> None:
    if name == "token":
        kubectl("wait", "serviceaccount/default", "--for=create", "--timeout=10s")
    assert kubectl("create", *CREATE[name]).strip()


def test_create_and_replace_from_a_file(kubectl: Kubectl) -> None:
    assert kubectl("create", "-f", "-", manifest=config_map(a="1")).strip() == "configmap/c created"
    again = kubectl.try_("create", "-f", "-", manifest=config_map(a="1"))
    assert (again.code, again.errors.strip()) == (
        1,
        'Error from server (AlreadyExists): error when creating "STDIN": configmaps "c" already exists',
    )
    assert kubectl("replace", "-f", "-", manifest=config_map(a="2")).strip() == "configmap/c replaced"
    assert kubectl("get", "cm", "c", "-o", "jsonpath={.data.a}") == "2"


def test_apply_creates_changes_and_removes(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", "-", manifest=[web(), job()]).splitlines() == [
        "deployment.apps/web created",
        "job.batch.volcano.sh/j created",
    ]
    assert kubectl("apply", "-f", "-", manifest=[web(), job()]).splitlines() == [
        "deployment.apps/web unchanged",
        "job.batch.volcano.sh/j unchanged",
    ]
    changed = web(image="nginx:2")
    del changed["spec"]["template"]["spec"]["containers"][0]["ports"]
    assert kubectl("apply", "-f", "-", manifest=[changed, job(queue="q")]).splitlines() == [
        "deployment.apps/web configured",
        "job.batch.volcano.sh/j configured",
    ]
    container = kubectl.json("get", "deploy", "web")["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == "nginx:2" and "ports" not in container
    assert kubectl("get", "vj", "j", "-o", "jsonpath={.spec.queue}") == "q"


def test_server_side_apply_conflicts_and_force(kubectl: Kubectl) -> None:
    server_side = ("apply", "--server-side", "-f", "-")
    assert kubectl(*server_side, manifest=web()).strip() == "deployment.apps/web serverside-applied"
    refused = kubectl.try_(*server_side, "--field-manager=other", manifest=web(replicas=2))
    assert refused.code == 1
    assert 'Apply failed with 1 conflict: conflict with "kubectl": .spec.replicas' in refused.errors
    kubectl(*server_side, "--field-manager=other", "--force-conflicts", manifest=web(replicas=2))
    assert kubectl("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}") == "2"
    managers = kubectl.json("get", "deploy", "web", "--show-managed-fields")["metadata"]["managedFields"]
    assert {"kubectl", "other"} <= {entry["manager"] for entry in managers}


def test_from_client_side_to_server_side_apply(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", manifest=[web(), POD])
    kubectl("apply", "--server-side", "-f", "-", manifest=[web(), POD])
    assert kubectl("diff", "-f", "-", manifest=[web(), POD]) == ""
    assert kubectl("apply", "-f", "-", manifest=[web(), POD]).count("unchanged") == 2


PATCHES = {
    "strategic": ("strategic", '{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"new"}]}}}}'),
    "merge": ("merge", '{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"new"}]}}}}'),
    "json": ("json", '[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"new"}]'),
}


@pytest.mark.parametrize("name", PATCHES)
def test_patch(kubectl: Kubectl, name: str) -> None:
    kind, patch = PATCHES[name]
    kubectl("apply", "-f", "-", manifest=web(replicas=0))
    assert kubectl("patch", "deploy", "web", "--type", kind, "-p", patch).strip() == "deployment.apps/web patched"
    container = kubectl.json("get", "deploy", "web")["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == "new" and ("ports" in container) is (name != "merge")


def test_label_annotate_scale_and_set(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", manifest=web(replicas=0))
    assert kubectl("label", "deploy", "web", "tier=front").strip() == "deployment.apps/web labeled"
    taken = kubectl.try_("label", "deploy", "web", "tier=back")
    assert taken.code == 1 and "already has a value" in taken.errors
    kubectl("label", "deploy", "web", "tier-")
    kubectl("annotate", "deploy", "web", "note=x")
    assert kubectl("scale", "deploy", "web", "--replicas=3").strip() == "deployment.apps/web scaled"
    unmet = kubectl.try_("scale", "deploy", "web", "--current-replicas=7", "--replicas=1")
    assert unmet.code == 1 and "Expected replicas to be 7, was 3" in unmet.errors
    kubectl("set", "image", "deploy/web", "main=nginx:9")
    found = kubectl.json("get", "deploy", "web")
    assert found["spec"]["replicas"] == 3 and found["metadata"]["annotations"]["note"] == "x"
    assert "tier" not in found["metadata"].get("labels", {})
    assert found["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:9"


def test_edit(kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch) -> None:
    kubectl("apply", "-f", "-", manifest=config_map(a="1"))
    monkeypatch.setenv("KUBE_EDITOR", 'sed -i \'s/a: "1"/a: "2"/\'')
    assert kubectl("edit", "configmap", "c").strip() == "configmap/c edited"
    assert kubectl("get", "cm", "c", "-o", "jsonpath={.data.a}") == "2"


def test_dry_run_on_the_server(kubectl: Kubectl) -> None:
    made = kubectl("apply", "--dry-run=server", "-f", "-", "-o", "jsonpath={.spec.restartPolicy}", manifest=POD)
    assert made == "Always"
    assert kubectl.try_("get", "pod", "p").code == 1
    refused = kubectl.try_("create", "--dry-run=server", "-f", "-", manifest=pod("Bad", {}))
    assert refused.code == 1 and 'The Pod "Bad" is invalid: metadata.name' in refused.errors
    kubectl("apply", "-f", "-", manifest=POD)
    assert "(server dry run)" in kubectl("delete", "pod", "p", "--dry-run=server")
    assert kubectl.try_("get", "pod", "p").code == 0


def test_delete_in_three_ways(kubectl: Kubectl) -> None:
    for policy in ("background", "foreground"):
        kubectl("apply", "-f", "-", manifest=web())
        kubectl("wait", "deploy/web", "--for=condition=Available", "--timeout=20s")
        assert "deleted" in kubectl("delete", "deploy", "web", f"--cascade={policy}", "--timeout=20s")
        kubectl("wait", "pod", "-l", "app=web", "--for=delete", "--timeout=20s")
        assert kubectl("get", "rs,pods", "-l", "app=web", "-o", "name") == ""
    kubectl("apply", "-f", "-", manifest=web())
    kubectl("wait", "deploy/web", "--for=condition=Available", "--timeout=20s")
    kubectl("delete", "deploy", "web", "--cascade=orphan", "--timeout=20s")
    (replica_set,) = kubectl.json("get", "rs", "-l", "app=web")["items"]
    assert not replica_set["metadata"].get("ownerReferences")


def test_delete_of_many_and_of_nothing(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", manifest=[config_map("a", x="1"), config_map("b", x="1"), POD])
    assert kubectl("delete", "cm", "a", "b").count("deleted") == 2
    assert kubectl("delete", "pod", "--all", "--force", "--grace-period=0").count("deleted") == 1
    missing = kubectl.try_("delete", "cm", "a")
    assert (missing.code, missing.errors.strip()) == (1, 'Error from server (NotFound): configmaps "a" not found')
    assert kubectl.try_("delete", "cm", "a", "--ignore-not-found").code == 0


def test_wait(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", manifest=POD)
    kubectl("wait", "pod/p", "--for=jsonpath={.status.phase}=Pending", "--timeout=10s")
    late = kubectl.try_("wait", "pod/p", "--for=condition=Ready", "--timeout=1s")
    assert late.code == 1 and "timed out waiting for the condition" in late.errors
    kubectl("wait", "crd/jobs.batch.volcano.sh", "--for=condition=Established", "--timeout=10s")


def test_rollout(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", manifest=web())
    assert "successfully rolled out" in kubectl("rollout", "status", "deploy/web", "--timeout=20s")
    assert "restarted" in kubectl("rollout", "restart", "deploy/web")
    kubectl("rollout", "status", "deploy/web", "--timeout=20s")


BAD: dict[str, tuple[object, str]] = {
    "a wrong type in a built-in kind": (
        {**web(), "spec": {**web()["spec"], "replicas": "three"}},
        'Error from server (BadRequest): error when creating "STDIN": Deployment in version "v1" cannot be '
        "handled as a "
        "Deployment: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
    ),
    "a wrong type in a custom resource": (
        job(tasks="many"),
        'The Job "j" is invalid: spec.tasks: Invalid value: "string": spec.tasks in body must be of type '
        'array: "string"',
    ),
    "an unknown field": (
        job(prioritty=1),
        'Error from server (BadRequest): error when creating "STDIN": Job in version "v1alpha1" cannot be '
        "handled as a Job: "
        'strict decoding error: unknown field "spec.prioritty"',
    ),
    "an unknown kind": (
        {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "x"}},
        'no matches for kind "Thing" in version "v1"',
    ),
    "a missing image": (
        {**POD, "spec": {"containers": [{"name": "a"}]}},
        'The Pod "p" is invalid: spec.containers[0].image: Required value',
    ),
    "a bad quantity": (
        {**POD, "spec": {"containers": [{"name": "a", "image": "i", "resources": {"limits": {"cpu": "lots"}}}]}},
        "quantities must match the regular expression",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_manifests_are_refused_with_the_real_text(kubectl: Kubectl, name: str) -> None:
    manifest, want = BAD[name]
    refused = kubectl.try_("create", "-f", "-", manifest=manifest)
    assert refused.code == 1 and want in refused.errors


def test_unknown_fields_are_only_warned_of_when_asked(kubectl: Kubectl) -> None:
    result = kubectl.try_("create", "--validate=warn", "-f", "-", manifest=job(prioritty=1))
    assert result.code == 0 and 'Warning: unknown field "spec.prioritty"' in result.errors


def test_an_outdated_object_is_a_conflict(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", manifest=config_map(a="1"))
    old = kubectl("get", "cm", "c", "-o", "yaml")
    kubectl("patch", "cm", "c", "--type=merge", "-p", '{"data":{"a":"2"}}')
    refused = kubectl.try_("replace", "-f", "-", text=old)
    assert refused.code == 1
    assert (
        'Error from server (Conflict): error when replacing "STDIN": Operation cannot be fulfilled on '
        'configmaps "c": the '
        "object has been modified; please apply your changes to the latest version and try again"
    ) in refused.errors
