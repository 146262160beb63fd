"""When to try again, and after how long. Pure: no I/O, no clock.

A request that was not carried out may always be tried again; one that may have been carried out only when
it is a read.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from stromboli.kube.errors import ApiError, KubeError, ServerError, TooManyRequests, Unreachable

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
MAX_ATTEMPTS = 6


class Backoff:
    """Jittered exponential delays: ``first``, twice that, ... up to ``maximum`` seconds; ``reset`` after success."""

    def __init__(
        self, *, first: float = 0.2, maximum: float = 30.0, factor: float = 2.0, rng: random.Random | None = None
    ) -> None:
        self._first = first
        self._maximum = maximum
        self._factor = factor
        self._rng = rng or random.Random()
        self._failures = 0

    @property
    def failures(self) -> int:
        """Delays handed out since the last reset."""
        return self._failures

    def next(self) -> float:
        """Seconds to wait now: between half and all of the present step, so that clients do not march in step."""
        # The exponent is capped because a float power overflows after a thousand failures.
        step = min(self._maximum, self._first * self._factor ** min(self._failures, 64))
        self._failures += 1
        return step * (0.5 + self._rng.random() / 2)

    def reset(self) -> None:
        """Start again with the first delay."""
        self._failures = 0


@dataclass(frozen=True, slots=True)
class Retry:
    """Try again after ``delay`` seconds; ``None`` leaves the delay to the caller's back-off."""

    delay: float | None


def decide(method: str, error: KubeError, attempt: int) -> Retry | None:
    """Whether the failed ``attempt`` (1 for the first) of ``method`` should be repeated.

    A 429 without a Retry-After, or one from a disruption budget (an eviction that is refused, not throttled), is
    the caller's to handle.
    """
    if attempt >= MAX_ATTEMPTS:
        return None
    match error:
        case TooManyRequests():
            refused = any(cause.get("reason") == "DisruptionBudget" for cause in error.causes)
            return None if refused or error.retry_after is None else Retry(error.retry_after)
        case ServerError() if method in SAFE_METHODS:
            return Retry(error.retry_after)
        case Unreachable() if method in SAFE_METHODS or not error.sent:
            return Retry(None)
        case _:
            return None


def retry_after_seconds(header: str | None) -> float | None:
    """A Retry-After header in seconds; dates (which API servers do not send) count as absent."""
    if header is None:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        return None


def is_transient(error: Exception) -> bool:
    """Whether the same request may well succeed later, without anybody changing anything."""
    return isinstance(error, Unreachable | TooManyRequests | ServerError) or (
        isinstance(error, ApiError) and error.code == 408
    )
