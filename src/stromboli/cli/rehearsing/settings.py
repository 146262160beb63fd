"""``--set kind/name.spec.field=value``: single fields of a snapshot, changed for a what-if."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import yaml

from stromboli.api import core
from stromboli.api.kinds import Kind
from stromboli.cli.commanding.errors import CommandError
from stromboli.cli.rehearsing.allowed import AMOUNTS, field_faults, object_faults, schema_for
from stromboli.cli.rehearsing.snapshots import STRUCTS, Snapshot

SECTIONS = ("metadata", "spec", "status")
KEYED = AMOUNTS | {"labels", "annotations", "nodeSelector", "matchLabels"}
"""Fields with names as keys, which have dots and nothing below them."""
_SETTABLE = {kind.kind.lower(): kind for kind in STRUCTS} | {kind.plural: kind for kind in STRUCTS}


@dataclass(frozen=True)
class Setting:
    """One field of one object, and its new value as text; an empty one takes the field away."""

    given: str
    kind: Kind
    key: tuple[str, str]
    path: tuple[str, ...]
    text: str

    def refused(self, why: str) -> CommandError:
        """The error that says why the setting is not taken."""
        return CommandError(f"--set {self.given}: {why}")

    def target(self, snapshot: Snapshot) -> core.Object:
        """The object that is meant. Raises CommandError when there is none."""
        found = next((obj for obj in snapshot.of(STRUCTS[self.kind]) if obj.key == self.key), None)
        if found is None:
            raise self.refused(f"the snapshot has no {self.kind.kind} {'/'.join(filter(None, self.key))!r}")
        assert isinstance(found, core.Object)
        return found


def with_settings(snapshot: Snapshot, given: Iterable[str]) -> Snapshot:
    """The snapshot with fields changed: ``queue/x.spec.weight=5``, ``podgroup/ns/name.spec.queue=y``.

    What admission judges by several fields or objects is judged when all are set.

    Raises:
        CommandError: a setting cannot be read, names nothing that is there, or would not be admitted.
    """
    settings = [_read(text) for text in given]
    for setting in settings:
        snapshot = snapshot.with_objects(_changed(setting, setting.target(snapshot)))
    for setting in settings:
        for fault in object_faults(setting.kind, setting.target(snapshot), setting.path, snapshot):
            raise setting.refused(fault)
    return snapshot


# -- reading -----------------------------------------------------------------------------------------------------------


def _read(given: str) -> Setting:
    target, equals, text = given.partition("=")
    where, section, path = _split(target)
    if not equals or not section or "/" not in where or not all(path.split(".")):
        raise CommandError(f"--set {given}: expected kind/name.spec.field=value, such as queue/research.spec.weight=5")
    word, _, name = where.partition("/")
    kind = _SETTABLE.get(word.lower())
    if kind is None:
        raise CommandError(f"--set {given}: kind {word!r} is not known; choose one of {', '.join(sorted(_SETTABLE))}")
    namespace, _, bare = name.rpartition("/")
    return Setting(given, kind, (namespace, bare), tuple(_steps(section, path)), text)


def _split(target: str) -> tuple[str, str, str]:
    """``queue/x.y.spec.weight`` as (``queue/x.y``, ``spec``, ``weight``): names may have dots."""
    for section in SECTIONS:
        where, found, path = target.partition(f".{section}.")
        if found:
            return where, section, path
    return target, "", ""


def _steps(section: str, path: str) -> list[str]:
    """Names of fields from the top on. Resources and labels have dots in their names, and nothing below them."""
    steps = [section, *path.split(".")]
    at = next((at for at, step in enumerate(steps) if step in KEYED), len(steps))
    return [*steps[: at + 1], ".".join(steps[at + 1 :])] if at + 1 < len(steps) else steps


# -- changing ----------------------------------------------------------------------------------------------------------


def _changed(setting: Setting, obj: core.Object) -> core.Object:
    try:
        value = yaml.safe_load(setting.text)
    except (yaml.YAMLError, ValueError) as error:
        raise setting.refused(" ".join(str(error).split())) from error
    try:
        return _with_value(setting, obj, value)
    except CommandError:
        if value is None or isinstance(value, str | dict | list):
            raise
        with suppress(CommandError):  # names may look like numbers, and times are text
            return _with_value(setting, obj, setting.text)
        raise


def _with_value(setting: Setting, obj: core.Object, value: object) -> core.Object:
    """The object with the value in it."""
    document, path = core.to_builtins(obj), setting.path
    holder = document
    for part in path[:-1]:
        inner = holder.setdefault(part, {})
        if not isinstance(inner, dict):
            raise setting.refused(f"{part} is no object")
        holder = inner
    holder[path[-1]] = _default(setting) if value is None else value
    if holder[path[-1]] is None:
        del holder[path[-1]]
    for fault in field_faults(setting.kind, document, path):
        raise setting.refused(fault)
    try:
        changed = core.from_builtins(STRUCTS[setting.kind], document)
    except core.UndecodableObject as error:
        raise setting.refused(" ".join(str(error).split())) from error
    if (value is None or core.to_builtins(changed) != document) and not _exists(changed, path):
        raise setting.refused(f"{setting.kind.kind} has no field {'.'.join(path)} that scheduling reads")
    return changed


def _default(setting: Setting) -> object:
    """What the API server fills in for a field that is not there."""
    schema = schema_for(setting.kind)
    for part in setting.path:
        schema = schema.child(part) if schema is not None else None
    return schema.default if schema is not None and schema.has_default else None


def _exists(obj: core.Object, path: Sequence[str]) -> bool:
    """Whether there is such a field, which is left out when written while it has its zero value."""
    value: object = obj
    for part in path:
        snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in part)
        if isinstance(value, dict):
            return True
        if not hasattr(value, snake):
            return False
        value = getattr(value, snake)
    return True
