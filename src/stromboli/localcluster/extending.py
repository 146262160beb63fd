"""The registry's and the server's extension points: what authentication, admission and subresources look like.

The core runs with none of them (everybody is :data:`SYSTEM`, everything is allowed, nothing is admitted away); the
assembled cluster plugs in its own. The order of a write is fixed: decode, default, prune and validate the schema,
``Admission.mutate``, default and validate again, ``Admission.validate``, store.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from stromboli.api.kinds import Kind
from stromboli.localcluster.statuses import Cause
from stromboli.localcluster.storage import Object

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


@dataclass(frozen=True, slots=True)
class User:
    """Who asks."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)


SYSTEM = User("system:apiserver", ("system:masters", "system:authenticated"))
"""The server itself and the controllers that run inside it."""


def ignore_warning(text: str) -> None:
    """The default receiver of warnings: nobody listens."""


@dataclass(slots=True)
class AdmissionRequest:
    """One write on its way into the store. ``obj`` is None for DELETE, ``old`` is None for CREATE.

    ``options`` is the wire form of CreateOptions, UpdateOptions, PatchOptions or DeleteOptions. ``warn`` sends a
    warning to the client (HTTP ``Warning`` header).
    """

    operation: Operation
    kind: Kind
    namespace: str
    name: str
    obj: Object | None
    old: Object | None
    user: User
    subresource: str = ""
    dry_run: bool = False
    options: Object = field(default_factory=dict)
    warn: Callable[[str], None] = ignore_warning


class Admission(Protocol):
    """Decides about writes. Refusals are raised as ``StatusError``."""

    async def mutate(self, request: AdmissionRequest) -> Object | None:
        """Change ``request.obj`` (a private copy) in place or return a new one; returns the object to go on with."""

    async def validate(self, request: AdmissionRequest) -> None:
        """Accept or refuse the final object; must not change it."""


class Authenticator(Protocol):
    """Finds out who asks."""

    async def authenticate(self, headers: Mapping[str, str], peer_certificate: Mapping[str, Any] | None) -> User | None:
        """The user, or None when the request shows no valid identity (the server answers 401)."""


@dataclass(frozen=True, slots=True)
class Attributes:
    """What is asked for, as RBAC sees it. ``resource`` is empty for other paths, which then stand in ``path``."""

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


class Authorizer(Protocol):
    """Decides who may do what."""

    async def authorize(self, user: User, attributes: Attributes) -> str | None:
        """None when allowed; else the reason to add to the refusal (may be empty)."""


@dataclass(frozen=True, slots=True)
class SubresourceRequest:
    """A request to a subresource, or to a kind that is not stored (reviews). ``body`` is decoded but not validated."""

    verb: str
    kind: Kind
    namespace: str
    name: str
    subresource: str
    body: Object | None
    query: Mapping[str, str]
    user: User
    dry_run: bool = False
    warn: Callable[[str], None] = ignore_warning


@dataclass(frozen=True, slots=True)
class Answer:
    """What a handler answers: an object, or a stream of bytes (logs)."""

    body: Object | AsyncGenerator[bytes, None]
    code: int = 200
    content_type: str = "application/json"


class Handler(Protocol):
    """Serves a subresource or a kind that is not stored. Refusals are raised as ``StatusError``."""

    async def __call__(self, request: SubresourceRequest) -> Answer:
        """Answer the request."""


@dataclass(frozen=True, slots=True)
class Subresource:
    """A handled subresource as discovery shows it; ``kind`` is the kind of its body (``Binding``, ``Eviction``)."""

    handler: Handler
    kind: Kind
    verbs: tuple[str, ...]


class Strategy(Protocol):
    """What is particular about one kind. All methods may change ``obj`` (a private copy) in place."""

    def default(self, obj: Object) -> None:
        """Fill in defaults; called on every write, so it must be idempotent."""

    def prepare_create(self, obj: Object) -> None:
        """Set what the server sets on create."""

    def prepare_update(self, obj: Object, old: Object) -> None:
        """Carry over what clients may not change."""

    def validate(self, obj: Object, old: Object | None) -> list[Cause]:
        """What is wrong with the object; ``old`` is None on create."""
