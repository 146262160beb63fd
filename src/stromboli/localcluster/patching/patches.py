"""The four kinds of patch behind one interface; media types are mapped by the HTTP layer. Pure.

The texts of refusals are the real server's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jsonpatch
import jsonpointer

from stromboli.localcluster import statuses
from stromboli.localcluster.patching import merge, strategic
from stromboli.localcluster.schemas.structure import Schema
from stromboli.localcluster.storage import Object


@dataclass(frozen=True, slots=True)
class JsonPatch:
    """RFC 6902."""

    operations: Sequence[Any]

    def apply(self, schema: Schema, present: Object) -> Object:
        """The patched object. 400 for what is no patch, 422 for operations that do not fit the object."""
        if not all(isinstance(one, dict) for one in self.operations):
            raise statuses.bad_request("error decoding patch: an operation of a JSON patch is an object")
        try:
            patched = jsonpatch.JsonPatch(list(self.operations)).apply(present)
        except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException) as error:
            message = "the server rejected our request due to an error in our request"
            raise statuses.StatusError(422, "Invalid", message, details={}) from error
        if not isinstance(patched, dict):
            raise statuses.bad_request("the patched document is not an object")
        return patched


@dataclass(frozen=True, slots=True)
class MergePatch:
    """RFC 7386."""

    document: Object

    def apply(self, schema: Schema, present: Object) -> Object:
        """The patched object."""
        return merge.merged(present, self.document)


@dataclass(frozen=True, slots=True)
class StrategicPatch:
    """Kubernetes' strategic merge patch; built-in kinds only."""

    document: Object

    def apply(self, schema: Schema, present: Object) -> Object:
        """The patched object. 415 for custom resources, 400 for directives that cannot be followed."""
        try:
            return strategic.merged(schema, present, self.document)
        except strategic.BadPatch as error:
            raise statuses.bad_request(str(error)) from error


@dataclass(frozen=True, slots=True)
class ApplyPatch:
    """Server-side apply of a configuration."""

    configuration: Object


Patch = JsonPatch | MergePatch | StrategicPatch | ApplyPatch
