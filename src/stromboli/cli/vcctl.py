"""Entry points of vcctl, the stand-alone commands and the kubectl plugins. Imports here cost start-up."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stromboli.cli.commanding.commands import Command


def main(line: Sequence[str] | None = None) -> int:
    """``vcctl``."""
    from stromboli.cli.vc import trees

    return _run(trees.vcctl(), line)


def vsub() -> int:
    """``vsub``."""
    from stromboli.cli.vc import trees

    return _run(trees.VSUB)


def vjobs() -> int:
    """``vjobs``."""
    from stromboli.cli.vc import trees

    return _run(trees.VJOBS)


def vqueues() -> int:
    """``vqueues``."""
    from stromboli.cli.vc import trees

    return _run(trees.VQUEUES)


def vcancel() -> int:
    """``vcancel``."""
    from stromboli.cli.vc import trees

    return _run(trees.VCANCEL)


def vsuspend() -> int:
    """``vsuspend``."""
    from stromboli.cli.vc import trees

    return _run(trees.VSUSPEND)


def vresume() -> int:
    """``vresume``."""
    from stromboli.cli.vc import trees

    return _run(trees.VRESUME)


def kubectl_vc() -> int:
    """``kubectl vc``: the whole of vcctl."""
    from stromboli.cli.vc import trees

    return _run(trees.kubectl_vc())


def kubectl_create_vcjob() -> int:
    """``kubectl create vcjob``."""
    from stromboli.cli.vc import trees

    return _run(trees.CREATE_VCJOB)


def kubectl_complete_vc() -> int:
    """``kubectl_complete-vc``: what kubectl runs to complete ``kubectl vc``."""
    from stromboli.cli.commanding.running import Terminal
    from stromboli.cli.vc import trees
    from stromboli.cli.vc.completion import answer_kubectl

    answer_kubectl(trees.kubectl_vc(), sys.argv[1:], Terminal())
    return 0


def _run(root: Command, line: Sequence[str] | None = None) -> int:
    from stromboli.cli.commanding.running import run

    words = sys.argv[1:] if line is None else list(line)
    if words[:1] == ["__complete"]:
        from stromboli.cli.commanding.running import Terminal
        from stromboli.cli.vc.completion import answer

        answer(root, words[1:], Terminal())
        return 0
    return run(root, words)


if __name__ == "__main__":
    sys.exit(main())
