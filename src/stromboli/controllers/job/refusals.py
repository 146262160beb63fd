"""Why a plan for a job cannot be made or carried out now, in terms that its owner can act on."""

from __future__ import annotations

from stromboli.kube.errors import KubeError


class Refused(KubeError):
    """The job asks for something that cannot be had now. Becomes a Warning Event with this reason and message."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class Unrecoverable(Refused):
    """As :class:`Refused`, but nothing that happens in the cluster can help: the job ends with this reason."""
