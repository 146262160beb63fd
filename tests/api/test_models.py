"""Models: nothing is lost on the way through, wrong types are named by field."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api import batch, config, core, crds, flow, phases, scheduling, shard, topologies, topology
from stromboli.api.corev1 import containers, pods
from stromboli.api.meta import LabelSelector, ObjectMeta, Resource
from stromboli.api.modelling import FieldError, InvalidObject, Model, without_nulls
from tests.api.references import Json, needs_references, reference_objects

MODELS: dict[tuple[str, str], type[Resource]] = {
    (definition.resource.KIND.api_version, definition.resource.KIND.kind): definition.resource
    for definition in crds.DEFINITIONS
}

EXAMPLES: list[Any] = [
    pytest.param(document, id=f"{file}-{document['kind']}-{number}")
    for number, (file, document) in enumerate(reference_objects())
    if (document.get("apiVersion"), document["kind"]) in MODELS
]


@needs_references
def test_there_are_examples_of_most_kinds() -> None:
    assert len(EXAMPLES) > 30
    assert {param.values[0]["kind"] for param in EXAMPLES} >= {"Job", "CronJob", "PodGroup", "Queue", "JobFlow"}


@needs_references
@pytest.mark.parametrize("document", EXAMPLES)
def test_examples_pass_through_a_model_without_loss(document: Json) -> None:
    model = MODELS[document["apiVersion"], document["kind"]]
    before = copy.deepcopy(document)
    assert model.from_wire(document).to_wire() == without_nulls(before)
    assert document == before


@needs_references
@pytest.mark.parametrize("document", EXAMPLES)
def test_examples_use_only_fields_that_the_models_know_but_for_one_typo(document: Json) -> None:
    model = MODELS[document["apiVersion"], document["kind"]]
    assert set(unknown_fields(model.from_wire(document))) <= {"priorityClass"}


def unknown_fields(value: object) -> list[str]:
    if isinstance(value, Model):
        return list(value.model_extra or ()) + [name for item in vars(value).values() for name in unknown_fields(item)]
    if isinstance(value, list):
        return [name for item in value for name in unknown_fields(item)]
    if isinstance(value, dict):
        return [name for item in value.values() for name in unknown_fields(item)]
    return []


def test_an_empty_object_says_only_what_it_is() -> None:
    assert batch.Job.from_wire({}).to_wire() == {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}


def test_unknown_fields_survive_at_any_depth() -> None:
    wire = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "spec": {"tasks": [{"template": {"spec": {"containers": [], "novelty": {"x": [1]}}}}], "future": True},
        "metadata": {"managedFields": [{"manager": "m"}]},
    }
    assert batch.Job.from_wire(wire).to_wire() == wire


def test_null_is_absence_everywhere() -> None:
    queue = scheduling.Queue.from_wire(
        {"metadata": {"creationTimestamp": None}, "spec": {"guarantee": {}}, "status": {"allocated": None}}
    )
    assert queue.status.allocated == {}
    assert queue.to_wire()["spec"] == {"guarantee": {}}
    assert queue.to_wire()["status"] == {}


ABSENT_IS_NOT_ZERO: dict[str, tuple[type[Model], str, str, object]] = {
    "a finished job is deleted at once": (batch.JobSpec, "ttl_seconds_after_finished", "ttlSecondsAfterFinished", 0),
    "no task is needed": (batch.TaskSpec, "min_available", "minAvailable", 0),
    "no exit code": (batch.LifecyclePolicy, "exit_code", "exitCode", 0),
    "tier 0 is a tier": (topologies.NetworkTopologySpec, "highest_tier_allowed", "highestTierAllowed", 0),
    "not suspended": (batch.CronJobSpec, "suspend", "suspend", False),
    "no history": (batch.CronJobSpec, "successful_jobs_history_limit", "successfulJobsHistoryLimit", 0),
    "nothing is reclaimed": (scheduling.QueueSpec, "reclaimable", "reclaimable", False),
    "no minimum resources": (scheduling.PodGroupSpec, "min_resources", "minResources", {}),
    "no sub-groups needed": (scheduling.SubGroupPolicySpec, "min_sub_groups", "minSubGroups", 0),
    "an empty selector": (scheduling.SubGroupPolicySpec, "label_selector", "labelSelector", {}),
    "a flow that depends on nothing": (flow.Flow, "depends_on", "dependsOn", {}),
}


@pytest.mark.parametrize("name", ABSENT_IS_NOT_ZERO)
def test_absent_and_zero_differ_where_they_must(name: str) -> None:
    model, attribute, alias, zero = ABSENT_IS_NOT_ZERO[name]
    absent, present = model.from_wire({}), model.from_wire({alias: zero})
    assert getattr(absent, attribute) is None
    assert getattr(present, attribute) is not None
    assert absent.to_wire() == {}
    assert present.to_wire() == {alias: zero}


def test_absent_plain_fields_read_as_zero() -> None:
    task = batch.TaskSpec.from_wire({})
    assert (task.replicas, task.name, task.policies, task.template.spec.containers) == (0, "", [], [])
    assert batch.Job().status.state.phase == ""


def test_what_is_filled_later_is_written() -> None:
    job = batch.Job.from_wire({"metadata": {"name": "j"}})
    job.metadata.labels["a"] = "b"
    job.spec.tasks.append(batch.TaskSpec(name="t", replicas=2))
    job.status.state.phase = phases.JobPhase.RUNNING
    wire = job.to_wire()
    assert wire["metadata"] == {"name": "j", "labels": {"a": "b"}}
    assert wire["spec"] == {"tasks": [{"name": "t", "replicas": 2}]}
    assert wire["status"] == {"state": {"phase": "Running"}}


def test_setting_none_removes_a_field() -> None:
    job = batch.JobSpec.from_wire({"minSuccess": 3})
    job.min_success = None
    assert job.to_wire() == {}


def test_objects_built_in_code_have_the_wire_s_names() -> None:
    template = pods.PodTemplateSpec(
        spec=pods.PodSpec(
            containers=[containers.Container(name="c", ports=[containers.ContainerPort(container_port=1)])],
            host_network=True,
            set_hostname_as_fqdn=True,
        )
    )
    assert template.to_wire() == {
        "spec": {
            "containers": [{"name": "c", "ports": [{"containerPort": 1}]}],
            "hostNetwork": True,
            "setHostnameAsFQDN": True,
        }
    }


def test_identity_and_look_ups() -> None:
    job = batch.Job.from_wire(
        {
            "metadata": {"name": "j", "namespace": "ns", "uid": "u"},
            "spec": {"tasks": [{"name": "a", "replicas": 2}, {"name": "b", "replicas": 3}]},
        }
    )
    assert (job.key, job.namespace, job.uid) == (("ns", "j"), "ns", "u")
    task = job.spec.task("b")
    assert task is not None
    assert task.replicas == 3
    assert job.spec.task("c") is None
    assert job.spec.total_replicas == 5


def test_owner_references_control_and_block() -> None:
    job = batch.Job(metadata=ObjectMeta(name="j", uid="u"))
    assert job.owner_reference().to_wire() == {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": "j",
        "uid": "u",
        "controller": True,
        "blockOwnerDeletion": True,
    }


WRONG: dict[str, tuple[type[Model], Json, list[FieldError]]] = {
    "text for a number": (
        batch.Job,
        {"spec": {"tasks": [{"replicas": "3"}]}},
        [FieldError("spec.tasks[0].replicas", "must be an integer, not '3'")],
    ),
    "a number for text": (
        batch.Job,
        {"metadata": {"labels": {"tier": 1}}},
        [FieldError("metadata.labels.tier", "must be a string, not 1")],
    ),
    "a boolean for a number": (
        batch.JobSpec,
        {"maxRetry": True},
        [FieldError("maxRetry", "must be an integer, not True")],
    ),
    "text for a boolean": (
        batch.CronJobSpec,
        {"suspend": "no"},
        [FieldError("suspend", "must be true or false, not 'no'")],
    ),
    "an object for a list": (batch.JobSpec, {"tasks": {}}, [FieldError("tasks", "must be a list, not {}")]),
    "a list for an object": (batch.Job, {"spec": []}, [FieldError("spec", "must be an object, not []")]),
    "a fraction for a whole number": (
        batch.TaskSpec,
        {"replicas": 1.5},
        [FieldError("replicas", "must be an integer, not 1.5")],
    ),
    "a list for a quantity": (
        scheduling.QueueSpec,
        {"capability": {"cpu": []}},
        [FieldError("capability.cpu", "must be a number or a string, not []")],
    ),
    "two things at once": (
        scheduling.QueueSpec,
        {"weight": "1", "reclaimable": 1},
        [
            FieldError("weight", "must be an integer, not '1'"),
            FieldError("reclaimable", "must be true or false, not 1"),
        ],
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_types_are_named_by_field(name: str) -> None:
    model, wire, want = WRONG[name]
    with pytest.raises(InvalidObject) as caught:
        model.from_wire(wire)
    assert sorted(caught.value.errors) == sorted(want)
    assert str(caught.value).startswith(f"{model.__name__}: {want[0].path}: ")


def test_quantities_may_be_numbers_or_text_and_stay_as_written() -> None:
    wire = {"capability": {"cpu": 4, "memory": "8Gi", "nvidia.com/gpu": 1.5}}
    assert scheduling.QueueSpec.from_wire(wire).to_wire() == wire


def test_policy_events_are_the_list_and_the_single_one_without_repeats() -> None:
    policy = batch.LifecyclePolicy(event="PodFailed", events=["PodEvicted", "PodFailed"])
    assert policy.triggers() == ["PodEvicted", "PodFailed"]
    assert batch.LifecyclePolicy(event="*").triggers() == ["*"]


def test_topology_is_hard_unless_it_says_soft() -> None:
    assert topologies.NetworkTopologySpec().hard
    assert not topologies.NetworkTopologySpec(mode="soft").hard


TWINS: dict[type[Model], type[core.Struct]] = {
    scheduling.PodGroup: core.PodGroup,
    scheduling.Queue: core.Queue,
    topology.HyperNode: core.HyperNode,
    shard.NodeShard: core.NodeShard,
}


def paths(schema: Json, path: str = "") -> list[str]:
    found = []
    for name, inner in schema.get("properties", {}).items():
        found += [f"{path}.{name}", *paths(inner, f"{path}.{name}")]
    return found + (paths(schema["items"], path + "[]") if "items" in schema else [])


def struct_paths(struct: Any, path: str = "") -> list[str]:
    found = []
    match struct:
        case msgspec.inspect.StructType():
            for field in struct.fields:
                found += [f"{path}.{field.encode_name}", *struct_paths(field.type, f"{path}.{field.encode_name}")]
        case msgspec.inspect.VarTupleType():
            found += struct_paths(struct.item_type, path + "[]")
        case msgspec.inspect.UnionType():
            found += [item for option in struct.types for item in struct_paths(option, path)]
    return found


@pytest.mark.parametrize("model", TWINS)
def test_hot_twins_have_every_field_of_the_model_s_spec_and_status(model: type[Model]) -> None:
    (crd,) = (
        crd
        for definition, crd in zip(crds.DEFINITIONS, crds.custom_resource_definitions(), strict=True)
        if definition.resource is model
    )
    wire: Json = crd
    schema = wire["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    want = {path for path in paths(schema) if path.startswith((".spec", ".status"))}
    found = set(struct_paths(msgspec.inspect.type_info(TWINS[model])))
    unread = {path for path in want - found if not path.startswith(".status.conditions")}
    assert unread == set()


selectors = st.builds(
    LabelSelector,
    match_labels=st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
)
pod_groups = st.builds(
    scheduling.PodGroupSpec,
    min_member=st.integers(0, 9),
    queue=st.text(max_size=5),
    min_resources=st.none() | st.dictionaries(st.sampled_from(["cpu", "memory"]), st.integers(0, 9) | st.just("1Gi")),
    sub_group_policy=st.lists(
        st.builds(
            scheduling.SubGroupPolicySpec,
            sub_group_size=st.none() | st.integers(1, 4),
            label_selector=st.none() | selectors,
        ),
        max_size=2,
    ),
)


@given(pod_groups)
def test_models_read_back_what_they_wrote_and_twins_agree(spec: scheduling.PodGroupSpec) -> None:
    wire = spec.to_wire()
    assert scheduling.PodGroupSpec.from_wire(wire).to_wire() == wire
    twin = core.from_builtins(core.PodGroupSpec, wire)
    assert (twin.min_member, twin.queue, twin.min_resources) == (spec.min_member, spec.queue, spec.min_resources)
    assert [policy.sub_group_size for policy in twin.sub_group_policy] == [
        policy.sub_group_size for policy in spec.sub_group_policy
    ]


def test_colocation_ratios_distinguish_absent_from_zero() -> None:
    assert config.MemoryQos.from_wire({"highRatio": 0}).to_wire() == {"highRatio": 0}
    assert config.MemoryQos.from_wire({}).high_ratio is None
