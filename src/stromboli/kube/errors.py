"""What can go wrong when talking to an API server, as one small tree.

The tree is our own so that the client library stays replaceable; originals are chained as causes::

    KubeError
    ├── ConfigurationError        no usable kubeconfig, credentials or certificates
    ├── Unreachable               no answer: refused, cut, timed out
    ├── MalformedAnswer           an answer that is not what the API promises
    ├── LeadershipLost            the lease could not be renewed in time
    ├── NotSynced                 an informer's store did not fill in time
    ├── SeveralFailed             some of many like requests failed
    └── ApiError                  the server answered with a failure
        ├── BadRequest (400)      ├── Unauthorized (401)     ├── Forbidden (403)
        ├── NotFound (404)        ├── Conflict (409)         ├── AlreadyExists (409)
        ├── Gone (410)            ├── Invalid (422)          ├── TooManyRequests (429)
        └── ServerError (5xx)

``AlreadyExists`` is not a ``Conflict``: the first asks for a look at what is there, the second for a retry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stromboli.kube.json import JsonObject, decode_object


class KubeError(Exception):
    """Base of every error raised by this room."""


class ConfigurationError(KubeError):
    """No usable configuration. The message is one line that names the field and the next step."""


class Unreachable(KubeError):
    """No answer from the server. For a write it is unknown whether it was carried out, unless ``sent`` is false."""

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = sent


class MalformedAnswer(KubeError):
    """The server's answer is not what the API promises, for example not JSON."""


class LeadershipLost(KubeError):
    """Another candidate holds the lease, or it could not be renewed in time: stop working at once."""


class NotSynced(KubeError):
    """An informer's store was not filled within the time allowed."""


class SeveralFailed(KubeError):
    """Of many like requests some failed, with ``errors``; the others were carried out."""

    def __init__(self, message: str, errors: Iterable[Exception]) -> None:
        super().__init__(message)
        self.errors = tuple(errors)


class ApiError(KubeError):
    """The server answered with a failure. ``code`` is the HTTP status, ``reason`` Kubernetes' machine-readable word."""

    def __init__(self, code: int, status: JsonObject | None = None, *, retry_after: float | None = None) -> None:
        self.code = code
        self.status: JsonObject = status or {}
        self.reason = str(self.status.get("reason") or "")
        self.message = str(self.status.get("message") or f"the server answered {code}")
        self.retry_after = retry_after if retry_after is not None else _retry_after_in(self.details)
        super().__init__(f"{self.message} ({code}{' ' + self.reason if self.reason else ''})")

    @property
    def details(self) -> JsonObject:
        """``status.details``, or an empty dictionary."""
        found = self.status.get("details")
        return found if isinstance(found, dict) else {}

    @property
    def causes(self) -> list[JsonObject]:
        """``status.details.causes``: one entry per offending field."""
        found = self.details.get("causes")
        return [cause for cause in found if isinstance(cause, dict)] if isinstance(found, list) else []


class BadRequest(ApiError):
    """400: the request itself makes no sense to the server."""


class Unauthorized(ApiError):
    """401: the credentials were not accepted."""


class Forbidden(ApiError):
    """403: not allowed by RBAC, by quota or by an admission webhook."""


class NotFound(ApiError):
    """404: no such object, or no such kind."""


class Conflict(ApiError):
    """409: the object changed meanwhile, or a precondition (UID, resourceVersion, field owner) does not hold."""


class AlreadyExists(ApiError):
    """409 with reason AlreadyExists: the name is taken."""


class Gone(ApiError):
    """410: the resource version or continue token has expired; list again."""


class Invalid(ApiError):
    """422: the object breaks its schema or validation."""


class TooManyRequests(ApiError):
    """429: not carried out; try again after ``retry_after`` seconds."""


class ServerError(ApiError):
    """5xx: the server failed, it may or may not have carried the request out."""


_BY_CODE: Mapping[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}


def api_error(code: int, body: bytes = b"", *, retry_after: float | None = None) -> ApiError:
    """The error for an HTTP status and its body, which need not be a Status object (proxies answer in HTML)."""
    try:
        status = decode_object(body)
    except ValueError:
        text = " ".join(body[:200].decode("utf-8", "replace").split())
        status = {"message": text} if text else {}
    return from_status(status, code=code, retry_after=retry_after)


def from_status(status: JsonObject, *, code: int | None = None, retry_after: float | None = None) -> ApiError:
    """The error for a ``Status`` object, as answers and ``ERROR`` watch events carry it."""
    number = code if code is not None else _int(status.get("code"), default=500)
    kind: type[ApiError] = ServerError if number >= 500 else _BY_CODE.get(number, ApiError)
    if kind is Conflict and status.get("reason") == "AlreadyExists":
        kind = AlreadyExists
    return kind(number, status, retry_after=retry_after)


def _retry_after_in(details: JsonObject) -> float | None:
    seconds = _int(details.get("retryAfterSeconds"), default=0)
    return float(seconds) if seconds > 0 else None


def _int(value: object, *, default: int) -> int:
    return value if isinstance(value, int) else default
