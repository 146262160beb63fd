"""The chart as Helm renders it, and what the rest of the tooling reads from it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from stromboli.kube.json import JsonObject

CHART = Path(__file__).parents[2] / "charts" / "stromboli"
RENDER_SECONDS = 120.0

Values = Mapping[str, object]


class RenderError(Exception):
    """Helm refused the chart or the values; the text is Helm's."""

    for_user = True


@dataclass(frozen=True, slots=True)
class Release:
    """Name and namespace under which the chart is rendered."""

    name: str = "stromboli"
    namespace: str = "volcano-system"


async def render(helm: Path, release: Release, values: Values, *, crds: bool = True) -> list[JsonObject]:
    """All objects of the chart, with or without its CustomResourceDefinitions, which are many lines.

    Raises:
        RenderError: the chart or the values are refused.
    """
    arguments = ["template", release.name, str(CHART), f"--namespace={release.namespace}", "--values=-"]
    left_out = [] if crds else ["--set=custom.crds_enable=false"]
    text = await helm_says(helm, [*arguments, *left_out], stdin=json.dumps(values))
    return [document for document in yaml.load_all(text, yaml.CSafeLoader) if document]


async def helm_says(helm: Path, arguments: Sequence[str], *, stdin: str = "") -> str:
    """Standard output of a Helm command.

    Raises:
        RenderError: it failed; with its own words.
    """
    process = await asyncio.create_subprocess_exec(
        helm, *arguments, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await asyncio.wait_for(process.communicate(stdin.encode()), RENDER_SECONDS)
    if process.returncode != 0:
        raise RenderError(f"helm {arguments[0]}: {err.decode(errors='replace').strip() or out.decode()}")
    return out.decode()


def of_kind(objects: Iterable[JsonObject], *kinds: str) -> list[JsonObject]:
    """The objects of these kinds, in the order of the kinds."""
    listed = list(objects)
    return [item for kind in kinds for item in listed if item["kind"] == kind]


def named(objects: Iterable[JsonObject], kind: str, name: str) -> JsonObject:
    """One object. Raises KeyError when there is none."""
    for item in objects:
        if item["kind"] == kind and item["metadata"]["name"] == name:
            return item
    raise KeyError(f"the chart renders no {kind} {name}")


def container_arguments(deployment: JsonObject) -> list[str]:
    """Arguments of a Deployment's only container."""
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return [str(argument) for argument in container["args"]]


def container_environment(deployment: JsonObject) -> dict[str, str]:
    """Environment of a Deployment's only container."""
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return {variable["name"]: variable["value"] for variable in container.get("env", ())}


def account(deployment: JsonObject) -> str:
    """Name of a Deployment's ServiceAccount."""
    return str(deployment["spec"]["template"]["spec"]["serviceAccountName"])
