"""The demonstration's output."""

from __future__ import annotations

import pytest

from stromboli.cli.demo import PIPED_COLUMNS, new_console

WIDTHS = {"no word about it": (None, PIPED_COLUMNS), "COLUMNS": ("70", 70)}


@pytest.mark.parametrize("name", WIDTHS)
def test_a_width_where_there_is_no_terminal(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    columns, want = WIDTHS[name]
    monkeypatch.delenv("COLUMNS", raising=False)
    for forcing in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(forcing, raising=False)
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    console = new_console()
    assert console.width == want
    console.print("x" * 65, "y")
    assert capsys.readouterr().out == "x" * 65 + " y\n"
