"""Kinds that make pods: Deployment, ReplicaSet, StatefulSet, DaemonSet, ReplicationController, Job, CronJob."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stromboli.localcluster.schemas.validating import bad, unsupported
from stromboli.localcluster.statuses import Cause
from stromboli.localcluster.storage import Object
from stromboli.localcluster.strategies import podchecks, podspecs
from stromboli.localcluster.strategies.common import Plain, immutable, set_defaults, spec_of
from stromboli.localcluster.strategies.pods import template_metadata

CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
JOB_NAME = "batch.kubernetes.io/job-name"


def default_template(spec: dict[str, Any]) -> None:
    """Defaults of ``spec.template``."""
    podspecs.default(spec_of(spec_of(spec, "template")))


def check_template(spec: dict[str, Any], path: str = "spec.template") -> Iterator[Cause]:
    """What is wrong with ``spec.template``."""
    template = spec.get("template") or {}
    yield from template_metadata(template, f"{path}.metadata")
    yield from podchecks.check(template.get("spec") or {}, f"{path}.spec", is_template=True)


def check_selector(spec: dict[str, Any]) -> Iterator[Cause]:
    """A selector must select the template it goes with."""
    selector = spec.get("selector") or {}
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield bad("spec.selector", selector, "empty selector is invalid for deployment")
    elif any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        yield bad("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")


def check_counts(spec: dict[str, Any], *names: str) -> Iterator[Cause]:
    """Numbers that must not be negative."""
    for name in names:
        if (spec.get(name) or 0) < 0:
            yield bad(f"spec.{name}", spec[name], "must be greater than or equal to 0")


class _Replicated(Plain):
    """What kinds with a selector and a template have in common."""

    def default(self, obj: Object) -> None:
        spec = spec_of(obj)
        default_template(spec)
        self.default_spec(spec)

    def default_spec(self, spec: dict[str, Any]) -> None:
        """Defaults of the kind's own fields."""
        set_defaults(spec, replicas=1)

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"replicas": 0}

    def validate(self, obj: Object, old: Object | None) -> list[Cause]:
        spec = obj["spec"]
        causes = [*check_template(spec), *check_counts(spec, "replicas", "minReadySeconds", "revisionHistoryLimit")]
        if spec.get("selector") is not None:
            causes += check_selector(spec)
        if spec.get("template", {}).get("spec", {}).get("restartPolicy") != "Always":
            policy = spec["template"]["spec"].get("restartPolicy")
            causes.append(unsupported("spec.template.spec.restartPolicy", policy, ["Always"]))
        if old is not None:
            causes += immutable("spec.selector", spec.get("selector"), old["spec"].get("selector"))
        return causes


class ReplicaSets(_Replicated):
    """The selector of a ReplicaSet is required and fixed."""


class Deployments(_Replicated):
    """Rolling updates of a quarter at a time unless told otherwise."""

    def default_spec(self, spec: dict[str, Any]) -> None:
        set_defaults(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
        strategy = spec_of(spec, "strategy")
        set_defaults(strategy, type="RollingUpdate")
        if strategy["type"] == "RollingUpdate":
            set_defaults(spec_of(strategy, "rollingUpdate"), maxSurge="25%", maxUnavailable="25%")

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {}


class StatefulSets(_Replicated):
    """Ordered pods with claims of their own."""

    def default_spec(self, spec: dict[str, Any]) -> None:
        set_defaults(spec, replicas=1, revisionHistoryLimit=10, podManagementPolicy="OrderedReady")
        set_defaults(spec_of(spec, "persistentVolumeClaimRetentionPolicy"), whenDeleted="Retain", whenScaled="Retain")
        strategy = spec_of(spec, "updateStrategy")
        set_defaults(strategy, type="RollingUpdate")
        if strategy["type"] == "RollingUpdate":
            set_defaults(spec_of(strategy, "rollingUpdate"), partition=0)

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"replicas": 0, "availableReplicas": 0}

    def validate(self, obj: Object, old: Object | None) -> list[Cause]:
        causes = super().validate(obj, old)
        if old is not None and _fixed_stateful(obj["spec"]) != _fixed_stateful(old["spec"]):
            why = (
                "Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
                "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
                "'minReadySeconds' are forbidden"
            )
            causes.append(Cause("FieldValueForbidden", "spec", why))
        return causes


_STATEFUL_CHANGES = ("replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
                     "persistentVolumeClaimRetentionPolicy", "minReadySeconds")  # fmt: skip


def _fixed_stateful(spec: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in spec.items() if name not in _STATEFUL_CHANGES}


class DaemonSets(_Replicated):
    """One pod a node."""

    def default_spec(self, spec: dict[str, Any]) -> None:
        set_defaults(spec, revisionHistoryLimit=10)
        strategy = spec_of(spec, "updateStrategy")
        set_defaults(strategy, type="RollingUpdate")
        if strategy["type"] == "RollingUpdate":
            set_defaults(spec_of(strategy, "rollingUpdate"), maxSurge=0, maxUnavailable=1)

    def prepare_create(self, obj: Object) -> None:
        counts = ("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady")
        obj["status"] = dict.fromkeys(counts, 0)


class ReplicationControllers(_Replicated):
    """The selector defaults to the template's labels."""

    def default_spec(self, spec: dict[str, Any]) -> None:
        set_defaults(spec, replicas=1, selector=spec["template"].get("metadata", {}).get("labels"))

    def validate(self, obj: Object, old: Object | None) -> list[Cause]:
        return [*check_template(obj["spec"]), *check_counts(obj["spec"], "replicas")]


class Jobs(Plain):
    """batch/v1 Jobs; the selector is the server's, by the job's UID."""

    def default(self, obj: Object) -> None:
        default_job(spec_of(obj))

    def prepare_create(self, obj: Object) -> None:
        spec = spec_of(obj)
        obj["status"] = {}
        if spec.get("manualSelector"):
            return
        uid, name = obj["metadata"]["uid"], obj["metadata"]["name"]
        metadata = spec_of(spec_of(spec, "template"), "metadata")
        own = {CONTROLLER_UID: uid, JOB_NAME: name, "controller-uid": uid, "job-name": name}
        metadata["labels"] = {**(metadata.get("labels") or {}), **own}
        spec.setdefault("selector", {"matchLabels": {CONTROLLER_UID: uid}})

    def validate(self, obj: Object, old: Object | None) -> list[Cause]:
        spec = obj["spec"]
        causes = list(check_job(spec, "spec"))
        if old is not None:
            for name in ("selector", "completions", "completionMode"):
                causes += immutable(f"spec.{name}", spec.get(name), old["spec"].get(name))
            if not old["spec"].get("suspend"):
                causes += immutable("spec.template", spec.get("template"), old["spec"].get("template"))
        return causes


def default_job(spec: dict[str, Any]) -> None:
    """Defaults of a job's spec, also inside a CronJob."""
    default_template(spec)
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    set_defaults(spec, parallelism=1, backoffLimit=6, completionMode="NonIndexed", suspend=False)
    set_defaults(spec, manualSelector=False, podReplacementPolicy="TerminatingOrFailed")


def check_job(spec: dict[str, Any], path: str) -> Iterator[Cause]:
    """What is wrong with a job's spec."""
    yield from check_template(spec, f"{path}.template")
    yield from check_counts(spec, "completions", "parallelism", "backoffLimit", "ttlSecondsAfterFinished")
    policy = spec["template"]["spec"].get("restartPolicy")
    if policy not in ("OnFailure", "Never"):
        field = f"{path}.template.spec.restartPolicy"
        listed = '"Always": supported values: "OnFailure", "Never"'
        yield Cause("FieldValueNotSupported", field, f"Unsupported value: {listed}")


class CronJobs(Plain):
    """batch/v1 CronJobs."""

    def default(self, obj: Object) -> None:
        spec = spec_of(obj)
        set_defaults(spec, concurrencyPolicy="Allow", suspend=False)
        set_defaults(spec, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
        default_template(spec_of(spec_of(spec, "jobTemplate")))

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, obj: Object, old: Object | None) -> list[Cause]:
        path = "spec.jobTemplate.spec"
        return list(check_job(obj["spec"]["jobTemplate"]["spec"], path))
