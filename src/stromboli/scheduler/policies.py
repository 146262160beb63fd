"""The policy in force: loaded at start, replaced when the file's content changes (spec 04 section 3.4).

At start a file that cannot be used ends the process with one line: nobody should run a policy they did not write (ADR
12; Volcano falls back to its default and logs). Later a change for the worse is refused with one line and what was in
force stays; with ``--disable-default-scheduler-config`` it ends the process, too. A new policy counts from the next
cycle.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path

from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.process.running import StartupError
from stromboli.scheduler.core import policy_file
from stromboli.scheduler.core.policy import DEFAULT_POLICY, Policy, PolicyError
from stromboli.scheduler.core.policy_file import Known, LoadedPolicy
from stromboli.scheduler.watching_files import ContentWatch

log = logging.getLogger(__name__)

STRICT_FLAG = "--disable-default-scheduler-config"


class Policies:
    """Holds the policy of the next cycle; ``warnings`` says what of a policy that comes in force surprises."""

    def __init__(
        self,
        path: str,
        known: Known,
        *,
        strict: bool = False,
        clock: Clock = SYSTEM_CLOCK,
        warnings: Callable[[Policy], Iterable[str]] = lambda _policy: (),
    ) -> None:
        self.current: Policy = DEFAULT_POLICY
        self.generation = 0
        """Policies loaded from the file so far."""
        self.refused: str | None = None
        """Why the file as it is now is not in force, in one line; None when it is, or when there is no file."""
        self._path = path
        self._known = known
        self._strict = strict
        self._warnings = warnings
        self._watch = ContentWatch(Path(path), clock=clock) if path else None

    def load(self) -> None:
        """Load the policy for the first time.

        Raises:
            StartupError: names the file, the place in it and the valid choices.
        """
        if self._watch is None:
            if self._strict:
                raise StartupError(f"{STRICT_FLAG} needs a policy file: give --scheduler-conf")
            log.info("no --scheduler-conf: the built-in policy is in force")
            return
        try:
            content = self._watch.read()
        except OSError as error:
            raise StartupError(f"policy {self._path}: cannot be read: {error.strerror or error}") from error
        try:
            loaded = policy_file.parse(content, self._known)
        except PolicyError as error:
            raise StartupError(f"policy {self._path}: {error}") from error
        if loaded.problems:
            raise StartupError(f"policy {self._path}: {loaded.problems[0]}")
        self._put(loaded)

    async def follow(self) -> None:
        """Take in new contents until cancelled. Raises StartupError when strict and the file becomes invalid."""
        if self._watch is None:
            return
        async for content in self._watch.changes(self._unreadable):
            self._take(content)

    def _unreadable(self, error: OSError) -> None:
        self._refuse(f"cannot be read: {error.strerror or error}")

    def _take(self, content: bytes) -> None:
        try:
            loaded = policy_file.parse(content, self._known)
        except PolicyError as error:
            self._refuse(str(error))
            return
        for problem in loaded.problems:
            log.error("policy %s: %s. It is left out", self._path, problem)
        self._put(loaded)

    def _put(self, loaded: LoadedPolicy) -> None:
        self.current = loaded.policy
        self.generation += 1
        self.refused = None
        log.info("policy %s is in force: actions %s", self._path, ", ".join(loaded.policy.actions))
        for warning in self._warnings(loaded.policy):
            log.warning("policy %s: %s", self._path, warning)

    def _refuse(self, why: str) -> None:
        self.refused = f"policy {self._path}: {why}"
        if self._strict:
            raise StartupError(self.refused)
        log.error("%s; the policy loaded before stays in force", self.refused)
