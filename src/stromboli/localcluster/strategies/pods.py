"""Pods and pod templates."""

from __future__ import annotations

from typing import Any

from stromboli.localcluster.statuses import Cause
from stromboli.localcluster.storage import Object
from stromboli.localcluster.strategies import podchecks, podspecs
from stromboli.localcluster.strategies.common import Plain, set_defaults, spec_of
from stromboli.localcluster.validation import metadata

_MAY_CHANGE = ("activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates")
_UPDATE_RULE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


class Pods(Plain):
    """A pod starts Pending; what it runs may hardly change afterwards."""

    def default(self, obj: Object) -> None:
        spec = spec_of(obj)
        podspecs.default(spec)
        set_defaults(spec, enableServiceLinks=True)

    def prepare_create(self, obj: Object) -> None:
        spec = spec_of(obj)
        obj["status"] = {"phase": "Pending", "qosClass": podspecs.qos_class(spec)}
        if spec.get("schedulingGates"):
            obj["status"]["conditions"] = [_gated()]

    def prepare_update(self, obj: Object, old: Object) -> None:
        if "qosClass" in old.get("status", {}):
            spec_of(obj, "status").setdefault("qosClass", old["status"]["qosClass"])

    def validate(self, obj: Object, old: Object | None) -> list[Cause]:
        spec = obj["spec"]
        causes = list(podchecks.check(spec, "spec"))
        if old is not None and _fixed(spec) != _fixed(old["spec"]):
            causes.append(Cause("FieldValueForbidden", "spec", f"Forbidden: {_UPDATE_RULE}"))
        return causes


def _gated() -> dict[str, str]:
    message = "Scheduling is blocked due to non-empty scheduling gates"
    return {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": message}


def _fixed(spec: dict[str, Any]) -> dict[str, Any]:
    """The part of a pod spec that no update may change. ``nodeName`` is set by the binding subresource only."""
    gated = bool(spec.get("schedulingGates"))
    kept = {name: value for name, value in spec.items() if name not in _MAY_CHANGE and value not in (None, [], {})}
    for field in podspecs.CONTAINER_LISTS:
        if field in kept:
            kept[field] = [{**one, "image": ""} for one in kept[field]]
    if gated:
        kept.pop("nodeSelector", None)
        kept.pop("affinity", None)
    return kept


class PodTemplates(Plain):
    """``PodTemplate`` objects; a dry-run create of one checks a pod template without making anything."""

    def default(self, obj: Object) -> None:
        podspecs.default(spec_of(spec_of(obj, "template")))

    def validate(self, obj: Object, old: Object | None) -> list[Cause]:
        template = obj["template"]
        return [
            *template_metadata(template, "template"),
            *podchecks.check(template["spec"], "template.spec", is_template=True),
        ]


def template_metadata(template: dict[str, Any], path: str) -> list[Cause]:
    """What is wrong with a template's labels."""
    labels = (template.get("metadata") or {}).get("labels") or {}
    return list(metadata.label_causes(f"{path}.labels", labels))
