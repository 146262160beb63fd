"""A token bucket: so many requests a second, with a burst.

Spec 04 section 1 (``--kube-api-qps``, ``--kube-api-burst``).
"""

from __future__ import annotations

from stromboli.kube.clocks import SYSTEM_CLOCK, Clock


class TokenBucket:
    """Lets ``qps`` callers a second through on average and ``burst`` at once, in the order in which they came.

    ``qps`` of zero or less means unlimited. A caller that is cancelled while it waits gives its token back.
    """

    def __init__(self, qps: float, burst: int, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._qps = qps
        self._burst = max(1, burst)
        self._clock = clock
        self._tokens = float(self._burst)  # below zero: that many callers are waiting already
        self._updated = clock.monotonic()

    @property
    def unlimited(self) -> bool:
        """Whether the bucket lets everything through."""
        return self._qps <= 0

    def try_acquire(self) -> bool:
        """Take a token if one is there; never waits."""
        if self.unlimited:
            return True
        self._refill()
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    async def acquire(self) -> float:
        """Take a token, waiting for it if need be; returns the seconds waited."""
        if self.unlimited:
            return 0.0
        self._refill()
        self._tokens -= 1
        wait = -self._tokens / self._qps
        if wait <= 0:
            return 0.0
        try:
            await self._clock.sleep(wait)
        except BaseException:
            self._tokens += 1
            raise
        return wait

    def _refill(self) -> None:
        now = self._clock.monotonic()
        self._tokens = min(float(self._burst), self._tokens + (now - self._updated) * self._qps)
        self._updated = now
