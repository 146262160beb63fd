"""Why a plan for a job cannot be made or carried out now, in terms that its owner can act on."""

from __future__ import annotations

from collections.abc import Sequence

from stromboli.kube.errors import Forbidden, KubeError, SeveralFailed

NAMED_ERRORS = 5
"""Errors that an Event quotes; more of the same help nobody."""


class Refused(KubeError):
    """The job asks for something that cannot be had now. Becomes a Warning Event with this reason and message."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class Unrecoverable(Refused):
    """As :class:`Refused`, but nothing that happens in the cluster can help: the job ends with this reason."""


class CreationFailed(SeveralFailed):
    """Some pods could not be created; the others were."""

    def __init__(self, errors: Sequence[Exception], tasks: int) -> None:
        super().__init__(f"failed to create {len(errors)} pods of {tasks}", errors)

    @property
    def quoted(self) -> str:
        """The errors, shortened."""
        return quote(self.errors)

    @property
    def over_quota(self) -> bool:
        """Whether nothing but a quota stands in the way, so that waiting helps."""
        return all(isinstance(error, Forbidden) and "quota" in error.message for error in self.errors)


class RemovalFailed(SeveralFailed):
    """Some pods could not be deleted; the others were."""

    def __init__(self, errors: Sequence[Exception], total: int) -> None:
        super().__init__(f"failed to kill {len(errors)} pods of {total}", errors)

    @property
    def quoted(self) -> str:
        """The errors, shortened."""
        return quote(self.errors)


def quote(errors: Sequence[Exception]) -> str:
    """``[first, second, ...]`` as Events carry it."""
    shown = [str(error) for error in errors[:NAMED_ERRORS]]
    more = [f"and {len(errors) - NAMED_ERRORS} more"] if len(errors) > NAMED_ERRORS else []
    return f"[{', '.join([*shown, *more])}]"
