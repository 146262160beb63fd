"""``vcctl jobflow`` and ``vcctl jobtemplate`` (spec 08 section 2.4).

Files are read as YAML streams (Volcano cuts them at every ``---``, inside values too), and a failure of one object
makes the exit code 255 after the others had their turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from stromboli.api.kinds import JOB_FLOWS, JOB_TEMPLATES, Kind
from stromboli.cli.commanding.api import Api
from stromboli.cli.commanding.errors import CommandError
from stromboli.cli.commanding.files import text_of
from stromboli.cli.commanding.running import Invocation
from stromboli.cli.vc import ages
from stromboli.cli.vc.columns import Column, Layout
from stromboli.cli.vc.output import NOTHING, Listing, document, dry_run, output_format, rehearsed, show_one
from stromboli.kube import json
from stromboli.kube.errors import ApiError
from stromboli.kube.json import JsonObject


@dataclass(frozen=True)
class Subject:
    """What tells the two commands apart."""

    kind: Kind
    words: str
    """How messages call it."""
    with_phase: bool


FLOW = Subject(JOB_FLOWS, "jobflow", with_phase=True)
TEMPLATE = Subject(JOB_TEMPLATES, "job template", with_phase=False)


def create_flow(invocation: Invocation) -> None:
    """``vcctl jobflow create``."""
    _from_file(invocation, FLOW, "create")


def create_template(invocation: Invocation) -> None:
    """``vcctl jobtemplate create``."""
    _from_file(invocation, TEMPLATE, "create")


def delete_flow(invocation: Invocation) -> None:
    """``vcctl jobflow delete``."""
    _delete(invocation, FLOW)


def delete_template(invocation: Invocation) -> None:
    """``vcctl jobtemplate delete``."""
    _delete(invocation, TEMPLATE)


def list_flows(invocation: Invocation) -> None:
    """``vcctl jobflow list``."""
    _list(invocation, FLOW)


def list_templates(invocation: Invocation) -> None:
    """``vcctl jobtemplate list``."""
    _list(invocation, TEMPLATE)


def get_flow(invocation: Invocation) -> None:
    """``vcctl jobflow get``."""
    _get(invocation, FLOW)


def get_template(invocation: Invocation) -> None:
    """``vcctl jobtemplate get``."""
    _get(invocation, TEMPLATE)


def describe_flow(invocation: Invocation) -> None:
    """``vcctl jobflow describe``."""
    _describe(invocation, FLOW)


def describe_template(invocation: Invocation) -> None:
    """``vcctl jobtemplate describe``."""
    _describe(invocation, TEMPLATE)


def _delete(invocation: Invocation, subject: Subject) -> None:
    if invocation.arguments.text("file"):
        _from_file(invocation, subject, "delete")
        return
    name = invocation.arguments.name
    with invocation.connect() as api:
        namespace = invocation.namespace(api)
        if not name:
            raise CommandError(f"{subject.words} name must be specified")
        api.get(subject.kind, name, namespace)
        api.delete(subject.kind, name, namespace, dry_run=dry_run(invocation))
    invocation.say(f"Deleted {subject.kind.kind}: {namespace}/{name}{rehearsed(invocation)}")


def _from_file(invocation: Invocation, subject: Subject, verb: str) -> None:
    failures = 0
    with invocation.connect() as api:
        act = _creating(api, subject, invocation) if verb == "create" else _deleting(api, subject, invocation)
        for obj in _read(invocation.arguments.text("file"), subject):
            namespace, name = obj["metadata"]["namespace"], json.key_of(obj)[1]
            try:
                act(obj)
            except ApiError as error:
                failures += 1
                invocation.say(f"Failed to {verb} {subject.kind.kind}: {error.message}")
            else:
                invocation.say(f"{verb.capitalize()}d {subject.kind.kind}: {namespace}/{name}{rehearsed(invocation)}")
    if failures:
        raise CommandError(f"{failures} of the file's objects could not be {verb}d; see above")


def _creating(api: Api, subject: Subject, invocation: Invocation) -> Callable[[JsonObject], object]:
    return lambda obj: api.create(subject.kind, obj, json.key_of(obj)[0], dry_run=dry_run(invocation))


def _deleting(api: Api, subject: Subject, invocation: Invocation) -> Callable[[JsonObject], object]:
    return lambda obj: api.delete(subject.kind, *reversed(json.key_of(obj)), dry_run=dry_run(invocation))


def _read(name: str, subject: Subject) -> Iterator[JsonObject]:
    import yaml

    from stromboli.api import manifests

    if not name:
        raise CommandError("a file is mandatory: give --file (-f)")
    try:
        found = list(manifests.documents(text_of(name)))
    except yaml.YAMLError as error:
        raise CommandError(f"{name}: not YAML: {' '.join(str(error).split())}") from error
    if all(obj is None for obj in found):
        raise CommandError(f"{name}: expected a {subject.kind.kind}, found nothing")
    for number, obj in enumerate(found, 1):
        if obj is not None:
            yield _checked(obj, f"{name}: document {number}", subject)


def _checked(obj: object, where: str, subject: Subject) -> JsonObject:
    if not isinstance(obj, dict) or not json.key_of(obj)[1]:
        raise CommandError(f"{where}: expected a {subject.kind.kind} with metadata.name")
    if obj.get("kind", subject.kind.kind) != subject.kind.kind:
        raise CommandError(f"{where}: expected a {subject.kind.kind}, found a {obj['kind']}")
    obj["metadata"].setdefault("namespace", "default")
    return {"apiVersion": subject.kind.api_version, "kind": subject.kind.kind, **obj}


def _list(invocation: Invocation, subject: Subject) -> None:
    arguments = invocation.arguments
    with invocation.connect() as api:
        namespace = None if arguments.on("all-namespaces") else invocation.namespace(api)
        columns = _columns(invocation, subject)
        Listing(subject.kind, namespace, columns=lambda _wide: columns).show(invocation, api)


def _columns(invocation: Invocation, subject: Subject) -> Sequence[Column]:
    def column(title: str, cell: Callable[[JsonObject], str]) -> Column:
        return Column(title, cell, gap=4, at_least=len(title))

    now = invocation.now()
    found = [column("Name", lambda obj: json.key_of(obj)[1]), column("Namespace", lambda obj: json.key_of(obj)[0])]
    if subject.with_phase:
        found += [
            column("Phase", lambda obj: str(((obj.get("status") or {}).get("state") or {}).get("phase") or "")),
            column("Age", lambda obj: ages.age(json.metadata(obj).get("creationTimestamp"), now)),
        ]
    return found


def _get(invocation: Invocation, subject: Subject) -> None:
    with invocation.connect() as api:
        if not invocation.arguments.name:
            raise CommandError(f"name is mandatory to get the particular {subject.words} details")
        obj = api.get(subject.kind, invocation.arguments.name, invocation.namespace(api))
    form = output_format(invocation)
    if form in ("json", "yaml", "name"):
        show_one(invocation, obj, form)
        return
    layout = Layout(_columns(invocation, subject), [obj])
    invocation.say(layout.header())
    invocation.say(layout.row(obj))


def _describe(invocation: Invocation, subject: Subject) -> None:
    arguments = invocation.arguments
    form = arguments.text("format")
    with invocation.connect() as api:
        namespace = invocation.namespace(api)
        found = (
            [api.get(subject.kind, arguments.name, namespace)] if arguments.name else api.list(subject.kind, namespace)
        )
    if form not in ("yaml", "json"):
        invocation.say(f"Unsupported format: {form}")
        return
    if not found:
        invocation.warn(NOTHING)
        return
    invocation.say("\n\n\n".join(document(_told(obj, subject), form) for obj in found))


def _told(obj: JsonObject, subject: Subject) -> JsonObject:
    meta = {key: value for key, value in json.metadata(obj).items() if key != "managedFields"}
    told: JsonObject = {"kind": subject.kind.kind, "apiVersion": subject.kind.api_version, "metadata": meta}
    told["spec"] = obj.get("spec") or {}
    told["status"] = dict(obj.get("status") or {})
    if subject.with_phase:
        told["status"].setdefault("state", {})
    return told
