"""Another policy for the running scheduler, in the way an administrator gives it one: the file changes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster import eventually
from stromboli.cli.stack import SCHEDULER, Stack

FLAG = "--scheduler-conf="
IN_FORCE, STAYS = " is in force: actions ", "the policy loaded before stays in force"


@dataclass(frozen=True)
class PolicyFile:
    """The file that the scheduler watches, and its log, which says when it has taken a change in."""

    path: Path
    log: Path

    @classmethod
    def of(cls, stack: Stack) -> PolicyFile:
        """That of a running stack, whoever has chosen its place."""
        given = stack.options.process_arguments.get(SCHEDULER, ())
        paths = [argument.removeprefix(FLAG) for argument in given if argument.startswith(FLAG)]
        return cls(Path(paths[-1] if paths else str(stack.options.scheduler_conf)), stack.parts[SCHEDULER].log)

    @property
    def content(self) -> str:
        """What is in the file."""
        return self.path.read_text()

    async def put(self, content: str, answer: str = IN_FORCE) -> str:
        """Replace the content and wait until the scheduler says that it has seen it; answers what it says."""
        if content == self.content:
            return ""
        before = self._lines(answer)
        new = self.path.with_suffix(".new")
        new.write_text(content)
        new.replace(self.path)
        lines = await eventually(
            lambda: asyncio.to_thread(self._lines, answer), lambda seen: len(seen) > len(before), what=f"log:{answer}"
        )
        return lines[-1]

    def _lines(self, text: str) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if text in line]
