"""What ``-o``, ``--watch`` and ``--dry-run`` mean, the same for every command. Additions of ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from stromboli.api.kinds import Kind
from stromboli.cli.commanding.api import Api
from stromboli.cli.commanding.errors import CommandError
from stromboli.cli.commanding.running import Invocation
from stromboli.cli.vc.columns import Column, Layout
from stromboli.kube import json
from stromboli.kube.errors import Gone, NotFound
from stromboli.kube.json import JsonObject

NOTHING = "No resources found"
FORMATS = ("json", "yaml", "wide", "name")


def output_format(invocation: Invocation) -> str:
    """The value of ``-o``, empty without one. Raises CommandError for an unknown one."""
    asked = invocation.arguments.text("output")
    if asked and asked not in FORMATS:
        raise CommandError(f"output format {asked!r} is not known; choose one of {', '.join(FORMATS)}")
    return asked


def data_format(invocation: Invocation) -> str:
    """The value of ``-o`` where what is shown is no object of the cluster. Raises CommandError for an unknown one."""
    asked = invocation.arguments.text("output")
    if asked not in ("", "json", "yaml"):
        raise CommandError(f"output format {asked!r} is not known; choose one of json, yaml")
    return asked


def dry_run(invocation: Invocation) -> bool:
    """Whether nothing is to be kept. Raises CommandError for anything but ``server`` and ``none``."""
    asked = invocation.arguments.text("dry-run")
    if asked not in ("", "none", "server"):
        raise CommandError(f"--dry-run={asked} is not known; choose server or none")
    return asked == "server"


def document(value: object, form: str) -> str:
    """JSON with two blanks of indentation, or YAML with sorted keys."""
    if form == "json":
        import json as standard

        return standard.dumps(value, indent=2, ensure_ascii=False)
    return to_yaml(value)


def to_yaml(value: object) -> str:
    """YAML with sorted keys, without a final newline."""
    import yaml

    dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return str(yaml.dump(value, Dumper=dumper, sort_keys=True, allow_unicode=True, default_flow_style=False)).rstrip()


def show_one(invocation: Invocation, obj: JsonObject, form: str) -> None:
    """One object in the format asked for."""
    if form == "name":
        invocation.say(_reference(obj))
    else:
        invocation.say(document(obj, form))


def done(invocation: Invocation, message: str, obj: JsonObject) -> None:
    """What a command that changed something prints: the object if ``-o`` asks for it, else the message (if any)."""
    form = output_format(invocation)
    if form:
        show_one(invocation, obj, "yaml" if form == "wide" else form)
    elif message:
        invocation.say(message + rehearsed(invocation))


def rehearsed(invocation: Invocation) -> str:
    """What is said at the end where nothing was kept."""
    return " (server dry run)" if dry_run(invocation) else ""


def _reference(obj: JsonObject) -> str:
    group = str(obj.get("apiVersion", "")).partition("/")[0]
    return f"{str(obj.get('kind', '')).lower()}.{group}/{json.key_of(obj)[1]}"


@dataclass(frozen=True)
class Listing:
    """A list command: what to list, what to keep of it, and how to draw it."""

    kind: Kind
    namespace: str | None
    columns: Callable[[bool], Sequence[Column]]
    """The columns; with ``-o wide`` as argument True."""
    keep: Callable[[JsonObject], bool] = lambda _obj: True
    header_always: bool = False
    """Whether the header stands even if nothing is kept."""
    label_selector: str | None = None
    size_by_all: bool = False
    """Whether objects that are not kept count for the widths."""

    def show(self, invocation: Invocation, api: Api) -> None:
        """Print the list, and what changes of it if ``--watch`` asks for it."""
        form = output_format(invocation)
        found, version = api.snapshot(self.kind, self.namespace, label_selector=self.label_selector)
        kept = [obj for obj in found if self.keep(obj)]
        watching = invocation.arguments.on("watch")
        if form in ("json", "yaml", "name"):
            self._show_documents(invocation, kept, form, watching=watching)
            layout = None
        else:
            layout = Layout(self.columns(form == "wide"), found if self.size_by_all else kept)
            self._show_table(invocation, layout, found, kept, watching=watching)
        if watching:
            self._follow(invocation, api, _Follower(invocation, layout, form, kept), version)

    def _show_documents(self, invocation: Invocation, kept: list[JsonObject], form: str, *, watching: bool) -> None:
        if form == "name" or watching:
            for obj in kept:
                show_one(invocation, obj, form)
        else:
            invocation.say(document({"apiVersion": "v1", "kind": "List", "items": kept}, form))

    def _show_table(
        self,
        invocation: Invocation,
        layout: Layout,
        found: list[JsonObject],
        kept: list[JsonObject],
        *,
        watching: bool,
    ) -> None:
        if not kept and not watching and not (self.header_always and found):
            invocation.say(NOTHING)
            return
        invocation.say(layout.header())
        for obj in kept:
            invocation.say(layout.row(obj))

    def _follow(self, invocation: Invocation, api: Api, follower: _Follower, version: str) -> None:
        """Print each object that changes, for ever."""
        while True:
            try:
                watch = api.watch(self.kind, self.namespace, version, label_selector=self.label_selector)
                with closing(watch) as events:
                    for type_, obj in events:
                        version = json.resource_version_of(obj) or version
                        if type_ != "BOOKMARK" and self.keep(obj):
                            follower.see({"apiVersion": self.kind.api_version, "kind": self.kind.kind, **obj}, type_)
            except Gone:
                found, version = api.snapshot(self.kind, self.namespace, label_selector=self.label_selector)
                for obj in found:
                    if self.keep(obj):
                        follower.see(obj)


class _Follower:
    """Prints objects as they change; a row that looks as before is not repeated."""

    def __init__(self, invocation: Invocation, layout: Layout | None, form: str, shown: Sequence[JsonObject]) -> None:
        self._invocation = invocation
        self._layout = layout
        self._form = form
        self._shown = {json.key_of(obj): self._look(obj) for obj in shown}

    def see(self, obj: JsonObject, type_: str = "MODIFIED") -> None:
        """Print the object if it looks otherwise than before, or is gone."""
        look = self._look(obj)
        if self._shown.get(json.key_of(obj)) == look and type_ != "DELETED":
            return
        self._shown[json.key_of(obj)] = look
        if self._layout is None:
            show_one(self._invocation, obj, self._form)
        else:
            self._invocation.say(self._layout.row(obj))

    def _look(self, obj: JsonObject) -> str:
        return self._layout.row(obj) if self._layout else json.resource_version_of(obj)


def existing(api: Api, kind: Kind, name: str, namespace: str | None = None) -> JsonObject | None:
    """The object, or None."""
    try:
        return api.get(kind, name, namespace)
    except NotFound:
        return None
