"""The guide's example does what the guide says."""

from __future__ import annotations

import re
from pathlib import Path

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "writing-a-webhook.md"


def test_the_example_runs_from_top_to_bottom() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 5
    names: dict[str, object] = {"__name__": "example"}
    # One program: line numbers of a failure then point into the concatenated blocks.
    exec(compile("\n".join(blocks), str(GUIDE), "exec", dont_inherit=True), names)
    assert {"MUTATE", "VALIDATE", "verdict"} <= names.keys()
