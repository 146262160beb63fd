"""HyperNodes: they have members, and their patterns compile (spec 07 section 19)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from stromboli.webhooks import patterns
from stromboli.webhooks.context import Context, Operation
from stromboli.webhooks.errors import FieldError, invalid, some
from stromboli.webhooks.shapes import HyperNode, JsonObject, read


def validate(obj: JsonObject | None, old: JsonObject | None, context: Context) -> list[FieldError]:
    """The faults of a HyperNode's members; other operations than create and update are always accepted."""
    if context.operation not in (Operation.CREATE, Operation.UPDATE):
        return []
    return some(_member_faults(read(HyperNode, obj)))


def _member_faults(node: HyperNode) -> Iterator[FieldError]:
    members = node.spec.members
    if not members:
        # The empty index before the path is what clients have always seen.
        shown: list[object] | None = None if members is None else []
        yield replace(invalid("[].spec.members", shown, "member must have at least one member"), place="spec.members")
    for index, member in enumerate(members or ()):
        pattern = member.selector.regex_match.pattern if member.selector.regex_match else ""
        if pattern and (what := patterns.fault(pattern)):
            detail = f"member regexMatch pattern is invalid: error parsing regexp: {what}"
            fault = invalid("[].spec.members.selector.regexMatch.pattern", pattern, detail)
            yield replace(fault, place=f"spec.members[{index}].selector.regexMatch.pattern")
