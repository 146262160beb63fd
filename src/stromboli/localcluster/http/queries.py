"""Values of query strings, read and refused as kube-apiserver does. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from stromboli.api.kinds import Kind
from stromboli.localcluster import statuses
from stromboli.localcluster.statuses import Cause, StatusError

_MOST = 2**63 - 1


def integer(query: Mapping[str, str], name: str) -> int:
    """A number of 64 bits; 0 when it is not there, 400 when it is none."""
    text = query.get(name, "")
    if not text:
        return 0
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise statuses.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    number = int(text)
    if not -_MOST - 1 <= number <= _MOST:
        raise statuses.bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return number


def flag(query: Mapping[str, str], name: str) -> bool:
    """Whether a flag is there, with any value but ``0`` and ``false``."""
    return name in query and query[name].lower() not in ("0", "false")


def revision(query: Mapping[str, str]) -> int:
    """``resourceVersion`` as a number; 0 when it is not given, 500 (as from the real server) for others."""
    text = query.get("resourceVersion", "")
    if text and not re.fullmatch("[0-9]+", text):
        message = f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        raise StatusError(500, "", message)
    return int(text or 0)


def list_revision(query: Mapping[str, str]) -> int:
    """Like :func:`revision`, but a list answers 400."""
    try:
        return revision(query)
    except StatusError as error:
        raise statuses.bad_request(f"invalid resource version: {error.message}") from error


def check_list(query: Mapping[str, str], *, watches: bool) -> None:
    """Refuse options of lists, watches and deletions of collections that are no numbers, or contradict each other."""
    integer(query, "limit")
    integer(query, "timeoutSeconds")
    causes = [*_match_causes(query), *_initial_causes(query, watches=watches)]
    if causes:
        raise invalid_options("ListOptions", *causes)


def _match_causes(query: Mapping[str, str]) -> Iterable[Cause]:
    field = "resourceVersionMatch"
    match, version = query.get(field, ""), query.get("resourceVersion", "")
    if not match or flag(query, "sendInitialEvents"):
        return
    if not version:
        yield forbidden(field, f"{field} is forbidden unless resourceVersion is provided")
    if query.get("continue"):
        yield forbidden(field, f"{field} is forbidden when continue is provided")
    if match not in ("Exact", "NotOlderThan"):
        yield unsupported(field, f'"{match}"', "Exact", "NotOlderThan", "")
    if match == "Exact" and version == "0":
        yield forbidden(field, f'{field} "exact" is forbidden for resourceVersion "0"')


def _initial_causes(query: Mapping[str, str], *, watches: bool) -> Iterable[Cause]:
    if "sendInitialEvents" not in query:
        return
    if not watches:
        yield forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")
    elif query.get("resourceVersionMatch") != "NotOlderThan":
        why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        yield forbidden("resourceVersionMatch", why)


def forbidden(field: str, why: str) -> Cause:
    """A value that may not be given here."""
    return Cause("FieldValueForbidden", field, f"Forbidden: {why}")


def unsupported(field: str, shown: str, *allowed: str) -> Cause:
    """A value that is none of those ``allowed``."""
    listed = ", ".join(f'"{one}"' for one in allowed)
    return Cause("FieldValueNotSupported", field, f"Unsupported value: {shown}: supported values: {listed}")


def invalid_options(kind: str, *causes: Cause) -> StatusError:
    """422 for options of ``kind``, such as ``ListOptions``."""
    return statuses.invalid(Kind("meta.k8s.io", "v1", "", kind), "", causes)
