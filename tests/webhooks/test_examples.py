"""Manifests that users have: all of them are accepted, except those that were published as invalid (P39)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonpatch
import pytest
import yaml

from stromboli.webhooks.context import KnownCluster
from stromboli.webhooks.endpoints import ENDPOINTS, Endpoint
from stromboli.webhooks.shapes import JsonObject, Queue, read
from tests.webhooks.building import cluster, decide

DEFAULT = Path(__file__).resolve().parents[2] / ".." / "shared" / "reference"
DIRECTORY = Path(os.environ.get("REFERENCE_DIR") or DEFAULT).resolve() / "examples"
INVALID = "invalid_jobs"
FILES = sorted(DIRECTORY.rglob("*.yaml")) if DIRECTORY.is_dir() else []

pytestmark = pytest.mark.skipif(not FILES, reason=f"no reference manifests in {DIRECTORY}")


def documents(path: Path) -> Iterator[JsonObject]:
    """The objects of a file; templates of other tools that are no YAML are left out."""
    try:
        yield from (found for found in yaml.safe_load_all(path.read_text()) if isinstance(found, dict))
    except yaml.YAMLError:
        return


def endpoints_of(obj: JsonObject) -> list[Endpoint]:
    """The endpoints an object meets, those that change it first."""
    who = (obj.get("apiVersion"), obj.get("kind"))
    found = [endpoint for endpoint in ENDPOINTS if who == (endpoint.kind.api_version, endpoint.kind.kind)]
    return sorted(found, key=lambda endpoint: not endpoint.mutating)


@cache
def known() -> KnownCluster:
    """Every queue that a manifest brings or asks for, open."""
    names: set[str] = set()
    queues: dict[str, Any] = {}
    for path in FILES:
        for obj in documents(path):
            names.add(str((obj.get("spec") or {}).get("queue") or "default"))
            if obj.get("kind") == "Queue":
                queues[obj["metadata"]["name"]] = obj
    found = {name: queues.get(name, {"metadata": {"name": name}}) for name in names | queues.keys()}
    opened = {name: read(Queue, {**obj, "status": {"state": "Open"}}) for name, obj in found.items()}
    return KnownCluster({**cluster().known_queues, **opened})


def admitted(obj: JsonObject) -> list[str]:
    """The refusals that an object meets, in a namespace as the API server would fill it in."""
    refusals = []
    for endpoint in endpoints_of(obj):
        named = {**obj, "metadata": {"namespace": "default", **obj["metadata"]}}
        verdict = decide(endpoint.path, named, known=known())
        if not verdict.allowed:
            refusals.append(verdict.message)
        obj = jsonpatch.apply_patch(obj, list(verdict.patch))
    return refusals


VALID = [path for path in FILES if INVALID not in path.parts]


@pytest.mark.parametrize("path", VALID or [DEFAULT], ids=lambda path: path.name)
def test_a_published_manifest_is_accepted(path: Path) -> None:
    assert [refusal for obj in documents(path) for refusal in admitted(obj)] == []


WANTED = {
    "duplicatedPolicyEvent-webhook-deny.yaml": "duplicate",
    "minAvailable-webhook-deny.yaml": "job 'minAvailable' should not be greater than total replicas in tasks;",
    "duplicatedTaskName-webhook-deny.yaml": "duplicated task name",
}


@pytest.mark.parametrize("name", WANTED)
def test_a_manifest_published_as_invalid_is_refused(name: str) -> None:
    (refusal,) = (text for obj in documents(DIRECTORY / INVALID / name) for text in admitted(obj))
    assert WANTED[name] in refusal
