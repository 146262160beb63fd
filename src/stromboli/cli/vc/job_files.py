"""The vcjobs of a file, for commands that only look at them: other documents beside them are no obstacle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stromboli.api.kinds import JOBS
from stromboli.cli.commanding.errors import CommandError
from stromboli.cli.commanding.files import text_of
from stromboli.kube import json
from stromboli.kube.json import JsonObject


def jobs_in(name: str) -> list[JsonObject]:
    """The vcjobs of a file of YAML or JSON, ``-`` for standard input; at least one. Raises CommandError."""
    import yaml

    from stromboli.api import manifests

    where = "standard input" if name == "-" else name
    try:
        found = list(_flat(manifests.documents(text_of(name))))
    except yaml.YAMLError as error:
        raise CommandError(f"{where}: not YAML: {' '.join(str(error).split())}") from error
    jobs = [item for item in found if _is_job(item)]
    if not jobs:
        others = ", ".join(dict.fromkeys(_described(item) for item in found)) or "nothing"
        raise CommandError(f"{where}: expected a {JOBS.kind} of {JOBS.api_version}, found {others}")
    for job in jobs:
        if not json.key_of(job)[1] and not json.metadata(job).get("generateName"):
            raise CommandError(f"{where}: metadata.name of a {JOBS.kind} is missing")
    return jobs


def chosen(jobs: list[JsonObject], name: str, where: str) -> JsonObject:
    """The job of that name, the first one without a name. Raises CommandError."""
    found = next((job for job in jobs if name in ("", json.key_of(job)[1])), None)
    if found is None:
        present = ", ".join(json.key_of(job)[1] for job in jobs)
        raise CommandError(f"{where}: no {JOBS.kind} {name!r} in it; choose one of {present}")
    return found


def _flat(documents: Iterator[Any]) -> Iterator[Any]:
    """Documents that are not empty, with the items of lists in place of the lists."""
    for document in documents:
        if isinstance(document, dict) and document.get("kind") == "List":
            yield from document.get("items") or []
        elif document is not None:
            yield document


def _is_job(item: object) -> bool:
    return isinstance(item, dict) and (item.get("apiVersion"), item.get("kind")) == (JOBS.api_version, JOBS.kind)


_WORDS: dict[type, str] = {str: "a text", list: "a list", int: "a number", float: "a number"}
"""What YAML calls what Python calls otherwise."""


def _described(item: object) -> str:
    if not isinstance(item, dict):
        return _WORDS.get(type(item), "a value")
    return f"{item.get('kind') or 'an object without kind'} of {item.get('apiVersion') or 'no apiVersion'}"
