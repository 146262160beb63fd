"""Errors of the embedded API server: Kubernetes ``Status`` objects with the real server's codes, reasons and texts.

Everything below HTTP raises :class:`StatusError`; the HTTP layer writes :meth:`StatusError.to_wire` as the answer's
body. Clients (kubectl above all) read ``reason`` and ``details``, so both are as exact as the message.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from stromboli.api.kinds import Kind


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason of an ``Invalid`` error: a field path, a machine-readable reason and the text after the path."""

    reason: str
    field: str
    message: str

    def to_wire(self) -> dict[str, str]:
        """The entry of ``details.causes``."""
        return {"reason": self.reason, "message": self.message, "field": self.field}

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class StatusError(Exception):
    """A request that the API refuses. ``details`` is the wire form of ``Status.details``."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: dict[str, Any] | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = dict(details or {})
        self._writes_details = details is not None or retry_after is not None
        if retry_after is not None:
            self.details["retryAfterSeconds"] = retry_after
        self.retry_after = retry_after

    def to_wire(self) -> dict[str, Any]:
        """The ``Status`` object."""
        status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        status["message"] = self.message
        if self.reason:
            status["reason"] = self.reason
        if self.details or self._writes_details:
            status["details"] = self.details
        status["code"] = self.code
        return status


def success(kind: Kind, name: str, uid: str) -> dict[str, Any]:
    """The ``Status`` that answers a completed deletion."""
    details: dict[str, Any] = {"name": name, "kind": kind.plural, "uid": uid}
    if kind.group:
        details["group"] = kind.group
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def _details(kind: Kind, name: str, *, by_kind: bool = False) -> dict[str, Any]:
    details: dict[str, Any] = {"name": name} if name else {}
    if kind.group:
        details["group"] = kind.group
    details["kind"] = kind.kind if by_kind else kind.plural
    return details


def not_found(kind: Kind, name: str) -> StatusError:
    """404: ``pods "x" not found``."""
    return StatusError(404, "NotFound", f'{kind.resource} "{name}" not found', details=_details(kind, name))


def no_such_path() -> StatusError:
    """404 for a path that no kind is served under."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", details={})


def already_exists(kind: Kind, name: str) -> StatusError:
    """409: ``pods "x" already exists``."""
    message = f'{kind.resource} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, details=_details(kind, name))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def conflict(kind: Kind, name: str, why: str = MODIFIED, causes: Sequence[Cause] = ()) -> StatusError:
    """409: ``Operation cannot be fulfilled on pods "x": the object has been modified; ...``."""
    details = _details(kind, name)
    if causes:
        details["causes"] = [cause.to_wire() for cause in causes]
    message = f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}'
    return StatusError(409, "Conflict", message, details=details)


def forbidden(kind: Kind, name: str, why: str) -> StatusError:
    """403: ``pods "x" is forbidden: WHY``."""
    subject = f'{kind.resource} "{name}"' if name else kind.resource
    return StatusError(403, "Forbidden", f"{subject} is forbidden: {why}", details=_details(kind, name))


def invalid(kind: Kind, name: str, causes: Iterable[Cause]) -> StatusError:
    """422: ``Pod "x" is invalid: spec.containers: Required value`` (several causes in brackets)."""
    found = list(causes)
    texts = list(dict.fromkeys(str(cause) for cause in found))
    summary = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    details = _details(kind, name, by_kind=True)
    details["causes"] = [cause.to_wire() for cause in found]
    owner = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    return StatusError(422, "Invalid", f'{owner} "{name}" is invalid: {summary}', details=details)


def bad_request(message: str) -> StatusError:
    """400 with the message as it is."""
    return StatusError(400, "BadRequest", message)


def cannot_be_handled(kind: Kind, why: str) -> StatusError:
    """400: ``Pod in version "v1" cannot be handled as a Pod: WHY``."""
    return bad_request(f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {why}')


def expired(message: str = "The provided continue parameter is too old") -> StatusError:
    """410 ``Expired``: list again."""
    return StatusError(410, "Expired", message)


def method_not_allowed() -> StatusError:
    """405 for a verb that a kind does not have."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, details={})


def unauthorized() -> StatusError:
    """401 as the real server words it."""
    return StatusError(401, "Unauthorized", "Unauthorized")


def too_many_requests(
    message: str, retry_after: int | None = None, details: dict[str, Any] | None = None
) -> StatusError:
    """429, for example an eviction that a disruption budget holds back."""
    return StatusError(429, "TooManyRequests", message, details=details, retry_after=retry_after)


def internal(message: str) -> StatusError:
    """500: ``Internal error occurred: MESSAGE``."""
    details = {"causes": [{"message": message}]}
    return StatusError(500, "InternalError", f"Internal error occurred: {message}", details=details)
