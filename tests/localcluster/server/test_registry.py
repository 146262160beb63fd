"""The registry: what create, update, patch, list and watch do, with the real server's errors."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.localcluster.assembling import new_registry
from stromboli.localcluster.extending import AdmissionRequest, Answer, SubresourceRequest
from stromboli.localcluster.patching.patches import MergePatch, StrategicPatch
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.requests import WriteOptions
from stromboli.localcluster.selecting import selection
from stromboli.localcluster.statuses import StatusError
from stromboli.localcluster.storage import Object
from tests.localcluster.server.objects import WIDGETS, deployment, pod, registry_with_widgets, widget


async def refusal(awaitable: Any) -> StatusError:
    with pytest.raises(StatusError) as refused:
        await awaitable
    return refused.value


async def test_create_sets_what_is_the_servers() -> None:
    registry = new_registry()
    given = pod()
    given["metadata"] |= {
        "uid": "mine",
        "creationTimestamp": "2020-01-01T00:00:00Z",
        "deletionTimestamp": "2020-01-01T00:00:00Z",
    }
    obj = await registry.create(kinds.PODS, given)
    metadata = obj["metadata"]
    assert (obj["apiVersion"], obj["kind"]) == ("v1", "Pod")
    assert metadata["uid"] not in ("", "mine") and metadata["creationTimestamp"] > "2020-01-01"
    assert "deletionTimestamp" not in metadata and "managedFields" not in metadata
    assert metadata["resourceVersion"] == str(registry.store.revision)
    assert given["metadata"]["uid"] == "mine"


async def test_create_refuses_a_resource_version() -> None:
    error = await refusal(
        new_registry().create(
            kinds.PODS, {**pod(), "metadata": {"name": "p", "namespace": "x", "resourceVersion": "7"}}
        )
    )
    assert (error.code, error.message) == (400, "resourceVersion should not be set on objects to be created")


async def test_names_are_generated_and_stay_unique() -> None:
    registry = new_registry()
    given = pod()
    given["metadata"] = {"namespace": "default", "generateName": "job-"}
    names = {(await registry.create(kinds.PODS, given))["metadata"]["name"] for _ in range(5)}
    assert len(names) == 5 and all(name.startswith("job-") and len(name) == 9 for name in names)


async def test_a_taken_name_is_refused() -> None:
    registry = new_registry()
    await registry.create(kinds.PODS, pod())
    error = await refusal(registry.create(kinds.PODS, pod()))
    assert error.to_wire() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "code": 409,
        "reason": "AlreadyExists",
        "message": 'pods "p" already exists',
        "details": {"name": "p", "kind": "pods"},
    }


async def test_a_missing_object_is_refused_with_its_group() -> None:
    error = await refusal(new_registry().get(kinds.DEPLOYMENTS, "default", "d"))
    assert error.message == 'deployments.apps "d" not found'
    assert error.details == {"name": "d", "group": "apps", "kind": "deployments"}


async def test_a_kind_that_is_not_served_is_not_found() -> None:
    error = await refusal(new_registry().list(WIDGETS))
    assert (error.code, error.message) == (404, "the server could not find the requested resource")


INVALID: dict[str, tuple[Kind, Object, str]] = {
    "a name in capitals": (
        kinds.CONFIG_MAPS,
        {"metadata": {"name": "Bad", "namespace": "x"}},
        'ConfigMap "Bad" is invalid: metadata.name: Invalid value: "Bad": a lowercase RFC 1123 subdomain must '
        "consist of "
        "lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
        "'example.com', regex used for validation is "
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ),
    "no name": (
        kinds.CONFIG_MAPS,
        {"metadata": {"namespace": "x"}},
        'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required',
    ),
    "no containers": (
        kinds.PODS,
        {"metadata": {"name": "p", "namespace": "x"}, "spec": {}},
        'Pod "p" is invalid: spec.containers: Required value',
    ),
    "no image": (
        kinds.PODS,
        pod(containers=[{"name": "a"}]),
        'Pod "p" is invalid: spec.containers[0].image: Required value',
    ),
    "two containers of one name": (
        kinds.PODS,
        pod(containers=[{"name": "a", "image": "x"}, {"name": "a", "image": "x"}]),
        'Pod "p" is invalid: spec.containers[1].name: Duplicate value: "a"',
    ),
    "more requested than allowed": (
        kinds.PODS,
        pod(containers=[{"name": "a", "image": "x", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}]),
        'Pod "p" is invalid: spec.containers[0].resources.requests: Invalid value: "2": must be less than or '
        "equal to cpu "
        "limit of 1",
    ),
    "a mount without volume": (
        kinds.PODS,
        pod(containers=[{"name": "a", "image": "x", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]),
        'Pod "p" is invalid: spec.containers[0].volumeMounts[0].name: Not found: "v"',
    ),
    "an unknown restart policy": (
        kinds.PODS,
        pod(restartPolicy="Sometimes"),
        'Pod "p" is invalid: spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "Never", '
        '"OnFailure"',
    ),
    "a selector that does not select": (
        kinds.DEPLOYMENTS,
        deployment(selector={"matchLabels": {"a": "b"}}),
        'Deployment.apps "d" is invalid: spec.template.metadata.labels: Invalid value: {"app":"d"}: `selector` '
        "does not "
        "match template `labels`",
    ),
    "a service without ports": (
        kinds.SERVICES,
        {"metadata": {"name": "s", "namespace": "x"}, "spec": {}},
        'Service "s" is invalid: spec.ports: Required value',
    ),
    "a job that restarts for ever": (
        kinds.BATCH_JOBS,
        {"metadata": {"name": "j", "namespace": "x"}, "spec": {"template": {"spec": pod()["spec"]}}},
        'Job.batch "j" is invalid: spec.template.spec.restartPolicy: Unsupported value: "Always": supported values: '
        '"OnFailure", "Never"',
    ),
    "a bad label": (
        kinds.CONFIG_MAPS,
        {"metadata": {"name": "c", "namespace": "x", "labels": {"a": "b c"}}},
        'ConfigMap "c" is invalid: metadata.labels: Invalid value: "b c": a valid label must be an empty '
        "string or consist "
        "of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
        "'MyValue',  or 'my_value',  or '12345', regex used for validation is "
        "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
    ),
}


@pytest.mark.parametrize("name", INVALID)
async def test_invalid_objects_are_refused_with_field_and_reason(name: str) -> None:
    kind, obj, want = INVALID[name]
    registry = new_registry()
    error = await refusal(registry.create(kind, obj))
    assert (error.code, error.reason, error.message) == (422, "Invalid", want)
    assert error.details["kind"] == kind.kind and error.details["causes"]
    assert registry.store.list(kind) == []


UNHANDLED: dict[str, tuple[Object, str]] = {
    "a wrong type": (
        {"spec": {"replicas": "x"}},
        'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go '
        "struct field "
        "DeploymentSpec.spec.replicas of type int32",
    ),
    "an unknown field": (
        {"spec": {"foo": 1, "replicas": 1}},
        'Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: unknown field "spec.foo"',
    ),
    "metadata that is no object": (
        {"metadata": "x"},
        'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go '
        "struct field "
        "Deployment.metadata of type v1.ObjectMeta",
    ),
    "another version": (
        {"apiVersion": "v1"},
        "the API version in the data (v1) does not match the expected API version (apps/v1)",
    ),
    "another kind": ({"kind": "Pod"}, "the kind in the data (Pod) does not match the expected kind (Deployment)"),
    "another namespace": (
        {"metadata": {"name": "d", "namespace": "other"}},
        "the namespace of the provided object does not match the namespace sent on the request (other != default)",
    ),
}


@pytest.mark.parametrize("name", UNHANDLED)
async def test_what_cannot_be_decoded_is_a_bad_request(name: str) -> None:
    change, want = UNHANDLED[name]
    options = WriteOptions(field_validation="Strict")
    error = await refusal(new_registry().create(kinds.DEPLOYMENTS, {**deployment(), **change}, "default", options))
    assert (error.code, error.reason, error.message) == (400, "BadRequest", want)


async def test_unknown_fields_are_warned_of_or_silently_dropped() -> None:
    registry = new_registry()
    warnings: list[str] = []
    obj = await registry.create(
        kinds.PODS, pod("a", foo=1), options=WriteOptions(field_validation="Warn", warn=warnings.append)
    )
    assert warnings == ['unknown field "spec.foo"'] and "foo" not in obj["spec"]
    assert "foo" not in (await registry.create(kinds.PODS, pod("b", foo=1)))["spec"]


async def test_update_with_an_old_revision_is_a_conflict() -> None:
    registry = new_registry()
    old = await registry.create(kinds.PODS, pod())
    await registry.patch(kinds.PODS, "default", "p", MergePatch({"metadata": {"labels": {"a": "b"}}}))
    error = await refusal(registry.update(kinds.PODS, old))
    assert (error.code, error.reason) == (409, "Conflict")
    assert error.message == (
        'Operation cannot be fulfilled on pods "p": the object has been modified; please apply your changes to '
        "the latest "
        "version and try again"
    )


async def test_update_of_another_incarnation_is_a_conflict() -> None:
    registry = new_registry()
    old = await registry.create(kinds.PODS, pod())
    await registry.delete(kinds.PODS, "default", "p")
    new = await registry.create(kinds.PODS, pod())
    stale = {**old, "metadata": {**old["metadata"], "resourceVersion": ""}}
    error = await refusal(registry.update(kinds.PODS, stale))
    uids = (old["metadata"]["uid"], new["metadata"]["uid"])
    assert "Precondition failed: UID in precondition: {}, UID in object meta: {}".format(*uids) in error.message


async def test_an_update_that_changes_nothing_writes_nothing() -> None:
    registry = new_registry()
    obj = await registry.create(kinds.PODS, pod())
    assert await registry.update(kinds.PODS, obj) == obj
    assert registry.store.revision == int(obj["metadata"]["resourceVersion"])


async def test_what_a_pod_runs_is_fixed_but_images_are_not() -> None:
    registry = new_registry()
    await registry.create(kinds.PODS, pod())
    patch = StrategicPatch({"spec": {"containers": [{"name": "main", "image": "busybox:2"}]}})
    assert (await registry.patch(kinds.PODS, "default", "p", patch))["spec"]["containers"][0]["image"] == "busybox:2"
    error = await refusal(registry.patch(kinds.PODS, "default", "p", MergePatch({"spec": {"nodeName": "n"}})))
    assert "spec: Forbidden: pod updates may not change fields other than" in error.message


async def test_spec_and_status_are_written_apart() -> None:
    registry = new_registry()
    obj = await registry.create(kinds.DEPLOYMENTS, deployment())
    both = {"spec": {"replicas": 5}, "status": {"replicas": 3}}
    spec = await registry.patch(kinds.DEPLOYMENTS, "default", "d", MergePatch(both))
    assert (spec["spec"]["replicas"], spec["status"], spec["metadata"]["generation"]) == (5, {}, 2)
    both["spec"]["replicas"] = 7
    status = await registry.patch(kinds.DEPLOYMENTS, "default", "d", MergePatch(both), subresource="status")
    assert (status["spec"]["replicas"], status["status"]["replicas"]) == (5, 3)
    assert status["metadata"]["generation"] == 2 and obj["metadata"]["generation"] == 1


async def test_custom_resources_need_a_revision_to_be_updated_and_lose_status_on_create() -> None:
    registry = await registry_with_widgets()
    obj = await registry.create(WIDGETS, {**widget(), "status": {"ready": 1}})
    assert "status" not in obj
    error = await refusal(registry.update(WIDGETS, widget()))
    assert error.message == (
        'Widget.example.com "w" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update'
    )
    with_status = await registry.update(WIDGETS, {**obj, "status": {"ready": 2}}, subresource="status")
    assert with_status["status"] == {"ready": 2}


async def test_dry_runs_answer_but_store_nothing() -> None:
    registry = new_registry()
    dry = WriteOptions(dry_run=True)
    assert (await registry.create(kinds.PODS, pod(), options=dry))["metadata"]["uid"]
    assert registry.store.list(kinds.PODS) == []
    obj = await registry.create(kinds.PODS, pod())
    assert (await refusal(registry.create(kinds.PODS, pod(), options=dry))).reason == "AlreadyExists"
    patch = MergePatch({"metadata": {"labels": {"a": "b"}}})
    assert (await registry.patch(kinds.PODS, "default", "p", patch, dry))["metadata"]["labels"] == {"a": "b"}
    assert await registry.get(kinds.PODS, "default", "p") == obj


async def test_scale_reads_and_writes_replicas() -> None:
    registry = new_registry()
    await registry.create(kinds.DEPLOYMENTS, deployment())
    scale = await registry.patch(
        kinds.DEPLOYMENTS, "default", "d", MergePatch({"spec": {"replicas": 4}}), subresource="scale"
    )
    assert (scale["kind"], scale["spec"], scale["status"]) == (
        "Scale",
        {"replicas": 4},
        {"replicas": 0, "selector": "app=d"},
    )
    assert (await registry.get(kinds.DEPLOYMENTS, "default", "d"))["spec"]["replicas"] == 4
    error = await refusal(
        registry.update(kinds.DEPLOYMENTS, {**scale, "spec": {"replicas": -1}}, "default", subresource="scale")
    )
    assert (
        error.message
        == 'Scale.autoscaling "d" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0'
    )


async def test_scale_of_a_custom_resource_follows_its_definition() -> None:
    registry = await registry_with_widgets()
    await registry.create(WIDGETS, widget())
    await registry.patch(WIDGETS, "default", "w", MergePatch({"spec": {"replicas": 2}}), subresource="scale")
    assert (await registry.get(WIDGETS, "default", "w"))["spec"]["replicas"] == 2


SELECTED: dict[str, tuple[str, str, set[str]]] = {
    "everything": ("", "", {"a", "b"}),
    "a label": ("app=x", "", {"a"}),
    "a set of values": ("app in (x, y)", "", {"a"}),
    "an absent label": ("!app", "", {"b"}),
    "a name": ("", "metadata.name=b", {"b"}),
    "unbound pods": ("", "spec.nodeName=", {"b"}),
    "not on a node": ("", "spec.nodeName!=n", {"b"}),
    "a phase and a scheduler": ("", "status.phase=Pending,spec.schedulerName=volcano", {"b"}),
    "both": ("app", "spec.nodeName=n", {"a"}),
}


@pytest.mark.parametrize("name", SELECTED)
async def test_lists_select_by_labels_and_fields(name: str) -> None:
    labels, fields, want = SELECTED[name]
    registry = new_registry()
    bound = pod("a", nodeName="n")
    bound["metadata"]["labels"] = {"app": "x"}
    await registry.create(kinds.PODS, bound)
    await registry.create(kinds.PODS, pod("b", schedulerName="volcano"))
    chosen = selection(registry.served(kinds.PODS), labels, fields)
    found = await registry.list(kinds.PODS, "default", chosen)
    assert {obj["metadata"]["name"] for obj in found.objects} == want


@pytest.mark.parametrize(
    ("labels", "fields", "want"),
    [("a in", "", "unable to parse requirement"), ("", "spec.foo=1", "field label not supported: spec.foo")],
)
async def test_selectors_that_cannot_be_used_are_bad_requests(labels: str, fields: str, want: str) -> None:
    with pytest.raises(StatusError, match=want) as refused:
        selection(new_registry().served(kinds.PODS), labels, fields)
    assert refused.value.code == 400


async def test_nodes_without_the_flag_are_schedulable_to_selectors() -> None:
    registry = new_registry()
    await registry.create(kinds.NODES, {"metadata": {"name": "n"}})
    chosen = selection(registry.served(kinds.NODES), "", "spec.unschedulable=false")
    assert len((await registry.list(kinds.NODES, None, chosen)).items) == 1


class Recording:
    """Admission that labels what it sees, refuses what is named so, and remembers both passes."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str]] = []

    async def mutate(self, request: AdmissionRequest) -> Object | None:
        self.seen.append(("mutate", request.operation, request.subresource))
        if request.obj is not None:
            request.obj["metadata"].setdefault("labels", {})["admitted"] = "yes"
            request.obj["spec"]["unknown"] = 1
        return None

    async def validate(self, request: AdmissionRequest) -> None:
        self.seen.append(("validate", request.operation, request.subresource))
        if request.name == "refused":
            raise StatusError(403, "Forbidden", "no")


async def test_admission_changes_then_accepts_every_write() -> None:
    admission = Recording()
    registry = new_registry()
    registry.admission = admission
    obj = await registry.create(kinds.PODS, pod())
    assert obj["metadata"]["labels"] == {"admitted": "yes"} and "unknown" not in obj["spec"]
    assert (await refusal(registry.create(kinds.PODS, pod("refused")))).message == "no"
    assert len(registry.store.list(kinds.PODS)) == 1
    await registry.patch(kinds.PODS, "default", "p", MergePatch({"status": {"phase": "Running"}}), subresource="status")
    await registry.delete(kinds.PODS, "default", "p")
    assert admission.seen[-4:] == [
        ("mutate", "UPDATE", "status"),
        ("validate", "UPDATE", "status"),
        ("mutate", "DELETE", ""),
        ("validate", "DELETE", ""),
    ]


class Vandal:
    """Admission that changes everything it can reach, and then refuses."""

    async def mutate(self, request: AdmissionRequest) -> Object | None:
        if request.obj is not None:
            for part in ("metadata", "spec", "status"):
                request.obj[part].clear()
        return None

    async def validate(self, request: AdmissionRequest) -> None:
        raise StatusError(403, "Forbidden", "no")


@pytest.mark.parametrize("subresource", ["", "status"])
async def test_a_refused_write_leaves_the_stored_object_as_it_is(subresource: str) -> None:
    registry = new_registry()
    before = await registry.create(kinds.DEPLOYMENTS, deployment())
    copy = orjson.dumps(before)
    registry.admission = Vandal()
    patch = MergePatch({"spec": {"replicas": 3}, "status": {"replicas": 3}})
    with pytest.raises((StatusError, KeyError)):
        await registry.patch(kinds.DEPLOYMENTS, "default", "d", patch, subresource=subresource)
    assert orjson.dumps(await registry.get(kinds.DEPLOYMENTS, "default", "d")) == copy


class Meddling:
    """Admission during which somebody else writes, once."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.is_done = False

    async def mutate(self, request: AdmissionRequest) -> Object | None:
        if request.operation == "UPDATE" and not self.is_done:
            self.is_done = True
            await self.registry.patch(kinds.PODS, "default", "p", MergePatch({"metadata": {"labels": {"other": "1"}}}))
        return None

    async def validate(self, request: AdmissionRequest) -> None:
        return None


async def test_patches_are_tried_again_when_somebody_was_faster_and_updates_conflict() -> None:
    registry = new_registry()
    obj = await registry.create(kinds.PODS, pod())
    registry.admission = Meddling(registry)
    patched = await registry.patch(kinds.PODS, "default", "p", MergePatch({"metadata": {"labels": {"mine": "1"}}}))
    assert patched["metadata"]["labels"] == {"other": "1", "mine": "1"}
    registry.admission = None
    assert (await refusal(registry.update(kinds.PODS, obj))).reason == "Conflict"


async def test_handled_kinds_and_subresources_are_found_in_the_catalog() -> None:
    registry = new_registry()

    async def answer(request: SubresourceRequest) -> Answer:
        return Answer({"kind": "Review"})

    review = Kind("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False)
    registry.add_handled_kind(review, answer)
    served = registry.served(review)
    assert served.verbs == ("create",) and served.handler is not None
