"""Entry points of vcctl, the stand-alone commands and the kubectl plugins. Imports here cost start-up."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from stromboli.cli.commanding.commands import Command


def main(line: Sequence[str] | None = None) -> int:
    """``vcctl``."""
    return _run(lambda trees: trees.vcctl(), line)


def vsub() -> int:
    """``vsub``."""
    return _run(lambda trees: trees.VSUB)


def vjobs() -> int:
    """``vjobs``."""
    return _run(lambda trees: trees.VJOBS)


def vqueues() -> int:
    """``vqueues``."""
    return _run(lambda trees: trees.VQUEUES)


def vcancel() -> int:
    """``vcancel``."""
    return _run(lambda trees: trees.VCANCEL)


def vsuspend() -> int:
    """``vsuspend``."""
    return _run(lambda trees: trees.VSUSPEND)


def vresume() -> int:
    """``vresume``."""
    return _run(lambda trees: trees.VRESUME)


def kubectl_vc() -> int:
    """``kubectl vc``: the whole of vcctl."""
    return _run(lambda trees: trees.kubectl_vc())


def kubectl_create_vcjob() -> int:
    """``kubectl create vcjob``."""
    return _run(lambda trees: trees.CREATE_VCJOB)


def kubectl_complete_vc() -> int:
    """``kubectl_complete-vc``: what kubectl runs to complete ``kubectl vc``."""
    from stromboli.cli.commanding.running import Terminal
    from stromboli.cli.vc import trees
    from stromboli.cli.vc.completion import answer_kubectl

    answer_kubectl(trees.kubectl_vc(), sys.argv[1:], Terminal())
    return 0


def _run(choose: Callable[[ModuleType], Command], line: Sequence[str] | None = None) -> int:
    try:
        from stromboli.cli.commanding.running import run
        from stromboli.cli.vc import trees

        root = choose(trees)
        words = sys.argv[1:] if line is None else list(line)
        if words[:1] == ["__complete"]:
            from stromboli.cli.commanding.running import Terminal
            from stromboli.cli.vc.completion import answer

            answer(root, words[1:], Terminal())
            return 0
        return run(root, words)
    except KeyboardInterrupt:  # before the command has begun
        return 130


if __name__ == "__main__":
    sys.exit(main())
