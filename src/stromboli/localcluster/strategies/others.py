"""Smaller built-in kinds, each a few lines."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from stromboli.localcluster.schemas.validating import bad
from stromboli.localcluster.statuses import Cause
from stromboli.localcluster.storage import Object
from stromboli.localcluster.strategies.common import Plain, immutable, set_defaults, spec_of

NAMESPACE_LABEL = "kubernetes.io/metadata.name"
_LARGEST = 1024 * 1024
"""Bytes in a ConfigMap or Secret."""

_BAD_KEY = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_RBAC = "rbac.authorization.k8s.io"


class Namespaces(Plain):
    """A namespace is born Active, held by the ``kubernetes`` finalizer, and labelled with its name."""

    def default(self, obj: Object) -> None:
        metadata = obj["metadata"]
        if metadata.get("name"):
            metadata["labels"] = {**(metadata.get("labels") or {}), NAMESPACE_LABEL: metadata["name"]}

    def prepare_create(self, obj: Object) -> None:
        spec = spec_of(obj)
        finalizers = spec.get("finalizers") or []
        spec["finalizers"] = finalizers if "kubernetes" in finalizers else [*finalizers, "kubernetes"]
        obj["status"] = {"phase": "Active"}

    def prepare_update(self, obj: Object, old: Object) -> None:
        if "finalizers" in old.get("spec", {}):
            spec_of(obj).setdefault("finalizers", old["spec"]["finalizers"])


class Secrets(Plain):
    """``stringData`` is written into ``data``."""

    def default(self, obj: Object) -> None:
        set_defaults(obj, type="Opaque")
        written = obj.pop("stringData", None) or {}
        if written:
            encoded = {key: base64.b64encode(text.encode()).decode() for key, text in written.items()}
            obj["data"] = {**(obj.get("data") or {}), **encoded}

    def validate(self, obj: Object, old: Object | None) -> list[Cause]:
        causes = [
            bad(f"data[{key}]", "<secret contents redacted>", "illegal base64 data")
            for key, text in (obj.get("data") or {}).items()
            if not _is_base64(text)
        ]
        if sum(len(base64.b64decode(text)) for text in (obj.get("data") or {}).values() if _is_base64(text)) > _LARGEST:
            causes.append(_too_long("data"))
        if old is not None:
            causes += immutable("type", obj.get("type"), old.get("type"))
            causes += _frozen(obj, old, "data")
        return causes


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


class ConfigMaps(Plain):
    """At most 1 MiB under proper keys, and the ``immutable`` flag."""

    def validate(self, obj: Object, old: Object | None) -> list[Cause]:
        data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
        causes = [*_key_causes("data", data), *_key_causes("binaryData", binary)]
        causes += [bad(f"data[{key}]", key, "duplicate of key present in binaryData") for key in data if key in binary]
        size = sum(len(text.encode()) for text in data.values())
        size += sum(len(base64.b64decode(text)) for text in binary.values() if _is_base64(text))
        if size > _LARGEST:
            causes.append(_too_long("[]"))
        return causes + (_frozen(obj, old, "data", "binaryData") if old is not None else [])


def _key_causes(field: str, data: dict[str, Any]) -> list[Cause]:
    return [bad(f"{field}[{key}]", key, _BAD_KEY) for key in data if not re.fullmatch("[-._a-zA-Z0-9]+", key)]


def _too_long(field: str) -> Cause:
    return Cause("FieldValueTooLong", field, f"Too long: may not be more than {_LARGEST} bytes")


def _frozen(obj: Object, old: Object, *fields: str) -> list[Cause]:
    if not old.get("immutable"):
        return []
    why = "Forbidden: field is immutable when `immutable` is set"
    return [
        Cause("FieldValueForbidden", field, why) for field in (*fields, "immutable") if obj.get(field) != old.get(field)
    ]


class PersistentVolumeClaims(Plain):
    """A claim starts Pending."""

    def default(self, obj: Object) -> None:
        set_defaults(spec_of(obj), volumeMode="Filesystem")

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"phase": "Pending"}

    def validate(self, obj: Object, old: Object | None) -> list[Cause]:
        spec = obj["spec"]
        causes = []
        if not spec.get("accessModes"):
            causes.append(
                Cause("FieldValueRequired", "spec.accessModes", "Required value: at least 1 access mode is required")
            )
        if not ((spec.get("resources") or {}).get("requests") or {}).get("storage"):
            causes.append(Cause("FieldValueRequired", "spec.resources[storage]", "Required value"))
        return causes


class PersistentVolumes(Plain):
    """A volume starts Pending; a controller makes it Available."""

    def default(self, obj: Object) -> None:
        set_defaults(spec_of(obj), volumeMode="Filesystem", persistentVolumeReclaimPolicy="Retain")

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"phase": "Pending"}


class StorageClasses(Plain):
    """Volumes are deleted with their claim and bound at once, unless told otherwise."""

    def default(self, obj: Object) -> None:
        set_defaults(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")

    def validate(self, obj: Object, old: Object | None) -> list[Cause]:
        if old is None:
            return []
        return [
            cause
            for field in ("provisioner", "parameters")
            for cause in immutable(field, obj.get(field), old.get(field))
        ]


class PriorityClasses(Plain):
    """The value is fixed; user classes stay below one billion."""

    def default(self, obj: Object) -> None:
        set_defaults(obj, value=0, preemptionPolicy="PreemptLowerPriority")

    def validate(self, obj: Object, old: Object | None) -> list[Cause]:
        causes = []
        name = obj["metadata"]["name"]
        if obj["value"] > 1_000_000_000 and not name.startswith("system-"):
            why = "maximum allowed value of a user defined priority is 1000000000"
            causes.append(Cause("FieldValueForbidden", "value", f"Forbidden: {why}"))
        if old is not None and obj["value"] != old["value"]:
            causes.append(Cause("FieldValueForbidden", "value", "Forbidden: may not be changed in an update."))
        return causes


class Webhooks(Plain):
    """Admission webhook configurations."""

    def __init__(self, *, mutating: bool) -> None:
        self._mutating = mutating

    def default(self, obj: Object) -> None:
        for webhook in obj.get("webhooks") or ():
            set_defaults(webhook, failurePolicy="Fail", matchPolicy="Equivalent", timeoutSeconds=10)
            set_defaults(webhook, namespaceSelector={}, objectSelector={})
            if self._mutating:
                set_defaults(webhook, reinvocationPolicy="Never")
            for rule in webhook.get("rules") or ():
                set_defaults(rule, scope="*")
            service = (webhook.get("clientConfig") or {}).get("service")
            if service:
                set_defaults(service, port=443)


class Bindings(Plain):
    """RoleBindings and ClusterRoleBindings; the role is fixed."""

    def default(self, obj: Object) -> None:
        set_defaults(obj.get("roleRef") or {}, apiGroup=_RBAC)
        for subject in obj.get("subjects") or ():
            if subject.get("kind") in ("User", "Group"):
                set_defaults(subject, apiGroup=_RBAC)

    def validate(self, obj: Object, old: Object | None) -> list[Cause]:
        if old is not None and obj.get("roleRef") != old.get("roleRef"):
            return [bad("roleRef", obj.get("roleRef"), "cannot change roleRef")]
        return []


class Endpoints(Plain):
    """Ports are TCP unless told otherwise."""

    def default(self, obj: Object) -> None:
        for subset in obj.get("subsets") or ():
            for port in subset.get("ports") or ():
                set_defaults(port, protocol="TCP")


class NetworkPolicies(Plain):
    """Policy types follow from what rules there are."""

    def default(self, obj: Object) -> None:
        spec = spec_of(obj)
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") else [])]


class Quotas(Plain):
    """A ResourceQuota's status is the quota controller's."""

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {}


class DisruptionBudgets(Plain):
    """A budget says either how many must stay or how many may go."""

    def prepare_create(self, obj: Object) -> None:
        counts: dict[str, Any] = dict.fromkeys(
            ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"), 0
        )
        obj["status"] = counts

    def validate(self, obj: Object, old: Object | None) -> list[Cause]:
        spec = obj.get("spec") or {}
        if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
            return [bad("spec", spec, "minAvailable and maxUnavailable cannot be both set")]
        return []
