"""Lists in pages: ``limit`` and ``continue``, and what ``resourceVersion`` means for a list. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping

import orjson

from stromboli.localcluster import statuses
from stromboli.localcluster.http import queries
from stromboli.localcluster.requests import Listing
from stromboli.localcluster.statuses import StatusError


def page(listing: Listing, query: Mapping[str, str]) -> Listing:
    """The part of a list (from :func:`start_of` on) that ``limit`` asks for.

    Later pages show present objects under the first page's revision: a watch from there repeats what has changed since.
    """
    revision, items = listing.revision, listing.items
    if query.get("continue"):
        revision = _parse(query["continue"])[0]
    limit = queries.integer(query, "limit")
    if limit <= 0 or len(items) <= limit:
        return Listing(items, revision)
    last = items[limit - 1].key
    token = orjson.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": [last.namespace, last.name]})
    return Listing(items[:limit], revision, base64.urlsafe_b64encode(token).decode().rstrip("="), len(items) - limit)


def start_of(query: Mapping[str, str]) -> tuple[str, str]:
    """(namespace, name) behind which a page begins; empty for the first page."""
    return _parse(query["continue"])[1] if query.get("continue") else ("", "")


def _parse(token: str) -> tuple[int, tuple[str, str]]:
    try:
        document = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        namespace, name = document["start"]
        return int(document["rv"]), (str(namespace), str(name))
    except (binascii.Error, ValueError, KeyError, TypeError) as error:
        raise statuses.bad_request(f"invalid continue token: continue key is not valid: {error}") from error


def check_revision(query: Mapping[str, str], present: int) -> None:
    """Refuse revisions that a list cannot show: the future (504), and for an exact match the past (410)."""
    wanted = queries.list_revision(query)
    match = query.get("resourceVersionMatch", "")
    if wanted > present:
        raise too_large(wanted, present)
    if match == "Exact" and wanted != present:
        raise statuses.expired("The resourceVersion for the provided list is too old.")


def too_large(wanted: int, present: int) -> StatusError:
    """504 for a revision that is still to come."""
    message = f"Too large resource version: {wanted}, current: {present}"
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    return StatusError(
        504, "Timeout", f"Timeout: {message}", details={"retryAfterSeconds": 1, "causes": causes}, retry_after=1
    )
