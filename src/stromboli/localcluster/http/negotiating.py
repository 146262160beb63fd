"""What form of answer a client wants: JSON or YAML; objects, tables or metadata only. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stromboli.localcluster.statuses import StatusError

Form = Literal["objects", "table", "metadata"]
JSON, YAML = "application/json", "application/yaml"
_OFFERED = (JSON, YAML)
_ANYTHING = ("*/*", "application/*", "")
_FORMS: dict[str, Form] = {
    "Table": "table",
    "PartialObjectMetadata": "metadata",
    "PartialObjectMetadataList": "metadata",
}


@dataclass(frozen=True, slots=True)
class Answering:
    """The form to answer in."""

    media_type: str = JSON
    form: Form = "objects"
    version: str = "v1"
    stream: str = ""


def negotiate(accept: str) -> Answering:
    """The first form in ``Accept`` that there is; 406 when there is none (Protobuf is not offered)."""
    for clause in accept.split(","):
        media_type, parameters = _clause(clause)
        if media_type in _ANYTHING:
            return Answering()
        if media_type not in _OFFERED:
            continue
        wanted = parameters.get("as", "")
        if not wanted:
            return Answering(media_type)
        if wanted in _FORMS and parameters.get("g") == "meta.k8s.io" and parameters.get("v") in ("v1", "v1beta1"):
            return Answering(media_type, _FORMS[wanted], parameters["v"])
    listed = ", ".join(_OFFERED)
    raise StatusError(406, "NotAcceptable", f"only the following media types are accepted: {listed}", details={})


def _clause(clause: str) -> tuple[str, dict[str, str]]:
    media_type, *rest = (part.strip() for part in clause.split(";"))
    parameters = {}
    for part in rest:
        name, _, value = part.partition("=")
        parameters[name.strip()] = value.strip()
    return media_type.lower(), parameters
