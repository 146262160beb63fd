"""The table of endpoints: path, kind, operations, and the functions that decide (spec 07 section 4).

To add an endpoint, write a module with ``default`` or ``validate`` and add a row here; serving, registration and the
command line follow from the table. See docs/guide/writing-a-webhook.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.webhooks import cronjobs, hypernodes, jobflows, jobs, podgroups, pods, queues
from stromboli.webhooks.context import Context, Operation
from stromboli.webhooks.errors import FieldError, concatenated, listed, trimmed
from stromboli.webhooks.shapes import JsonObject


class Default(Protocol):
    """Fills in what the object leaves open. Pure: answers a changed copy, or the object itself."""

    def __call__(self, obj: JsonObject, context: Context, /) -> JsonObject:
        """Raises :class:`~stromboli.webhooks.shapes.Malformed` for an object of the wrong shape."""


class Validate(Protocol):
    """Judges an object. Pure: answers what is wrong, nothing for an acceptable object."""

    def __call__(self, obj: JsonObject | None, old: JsonObject | None, context: Context, /) -> list[FieldError]:
        """Raises :class:`~stromboli.webhooks.shapes.Malformed` for an object of the wrong shape."""


Join = Callable[[Sequence[FieldError], str], str]
"""One message of all errors; the second argument is the operation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One path. Exactly one of ``default`` and ``validate`` is given."""

    path: str
    kind: Kind
    webhook: str
    """Name of the webhook in its configuration object; clients read it in refusals."""
    operations: tuple[Operation, ...]
    refusal: str | None
    """Text for other operations, ``{operation}`` being the one that came; ``None`` leaves them to ``validate``."""
    default: Default | None = None
    validate: Validate | None = None
    join: Join = lambda errors, operation: trimmed(errors)
    templates: Callable[[JsonObject], Sequence[JsonObject]] | None = None
    """Pod templates in a new object that the API server is asked about before ``validate`` runs."""

    @property
    def mutating(self) -> bool:
        """Whether the endpoint changes objects, as opposed to judging them."""
        return self.default is not None

    @property
    def configuration(self) -> str:
        """Name of the endpoint's webhook configuration object (spec 07 section 2.3)."""
        return "volcano-admission-service" + self.path.replace("/", "-")


def _listed(errors: Sequence[FieldError], operation: str) -> str:
    return listed(errors)


def _concatenated(errors: Sequence[FieldError], operation: str) -> str:
    return concatenated(errors)


def _trimmed_on_create(errors: Sequence[FieldError], operation: str) -> str:
    return trimmed(errors) if operation == Operation.CREATE else concatenated(errors)


_CREATE: Final = (Operation.CREATE,)
_CREATE_UPDATE: Final = (Operation.CREATE, Operation.UPDATE)
_ONLY_CREATE: Final = "expect operation to be 'CREATE'"
_ONLY_CREATE_UPDATE: Final = "expect operation to be 'CREATE' or 'UPDATE'"
_INVALID: Final = "invalid operation `{operation}`, expect operation to be `CREATE`"

ENDPOINTS: Final = (
    Endpoint(
        path="/jobs/mutate", kind=kinds.JOBS, webhook="mutatejob.volcano.sh", operations=_CREATE,
        refusal=_ONLY_CREATE + " ", default=jobs.default,
    ),
    Endpoint(
        path="/jobs/validate", kind=kinds.JOBS, webhook="validatejob.volcano.sh", operations=_CREATE_UPDATE,
        refusal=_ONLY_CREATE_UPDATE, validate=jobs.validate, join=_trimmed_on_create,
        templates=jobs.templates,
    ),
    Endpoint(
        path="/podgroups/mutate", kind=kinds.POD_GROUPS, webhook="mutatepodgroup.volcano.sh", operations=_CREATE,
        refusal=_INVALID, default=podgroups.default,
    ),
    Endpoint(
        path="/podgroups/validate", kind=kinds.POD_GROUPS, webhook="validatepodgroup.volcano.sh", operations=_CREATE,
        refusal="unsupported operation {operation}", validate=podgroups.validate, join=_concatenated,
    ),
    Endpoint(
        path="/queues/mutate", kind=kinds.QUEUES, webhook="mutatequeue.volcano.sh", operations=_CREATE,
        refusal=_INVALID, default=queues.default,
    ),
    Endpoint(
        path="/queues/validate", kind=kinds.QUEUES, webhook="validatequeue.volcano.sh", operations=tuple(Operation),
        refusal=_INVALID + ", `UPDATE` or `DELETE`", validate=queues.validate, join=_listed,
    ),
    Endpoint(
        path="/pods/mutate", kind=kinds.PODS, webhook="mutatepod.volcano.sh", operations=_CREATE,
        refusal=_ONLY_CREATE + " ", default=pods.default,
    ),
    Endpoint(
        path="/pods/validate", kind=kinds.PODS, webhook="validatepod.volcano.sh", operations=_CREATE,
        refusal=_ONLY_CREATE, validate=pods.validate,
    ),
    Endpoint(
        path="/jobflows/validate", kind=kinds.JOB_FLOWS, webhook="validatejob.volcano.sh", operations=_CREATE_UPDATE,
        refusal=_ONLY_CREATE_UPDATE, validate=jobflows.validate,
    ),
    Endpoint(
        path="/cronjobs/validate", kind=kinds.CRON_JOBS, webhook="validatecronjob.volcano.sh",
        operations=_CREATE_UPDATE, refusal=_ONLY_CREATE_UPDATE, validate=cronjobs.validate, join=_trimmed_on_create,
    ),
    Endpoint(
        path="/hypernodes/validate", kind=kinds.HYPER_NODES, webhook="validatehypernodes.volcano.sh",
        operations=_CREATE_UPDATE, refusal=None, validate=hypernodes.validate, join=_listed,
    ),
)  # fmt: skip
"""Every endpoint, in the order of the specification's table."""

BY_PATH: Final = {endpoint.path: endpoint for endpoint in ENDPOINTS}
