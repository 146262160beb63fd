"""Every command line in the guide is one that the tools understand."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from stromboli.cli.commanding.commands import choose, parse
from tests.cli.driving import TREES

GUIDE = "\n".join(page.read_text() for page in sorted((Path(__file__).parents[2] / "docs" / "guide").glob("*.md")))
LINES = re.findall(r"^(?:\$ )?((?:vcctl|kubectl create vcjob|kubectl vc) .*?)(?:\s+#.*)?$", GUIDE, re.MULTILINE)
INLINE = re.findall(r"`((?:vcctl|kubectl vc) [a-z][^`]*)`", GUIDE)


def words_of(line: str) -> list[str]:
    """The words of a line up to a redirection, the tool's name as one word."""
    line = line.replace("kubectl create vcjob", "kubectl-create-vcjob").replace("kubectl vc", "kubectl-vc")
    return shlex.split(line.partition(" > ")[0].partition(" | ")[0])


def test_the_guide_has_examples() -> None:
    assert len(LINES) >= 8
    assert len(INLINE) >= 4


@pytest.mark.parametrize("line", [*LINES, *INLINE])
def test_lines_of_the_guide_are_understood(line: str) -> None:
    tool, *words = words_of(line)
    chosen = choose(TREES[tool], words)
    assert chosen.command.run, line
    parse(chosen.command, chosen.rest)
