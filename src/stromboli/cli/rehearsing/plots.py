"""Line plots over cycles as SVG that needs nothing but the page it stands in."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 640, 220
LEFT, RIGHT, TOP, BOTTOM = 48, 12, 10, 34
MOST_TICKS = 5
MOST_LABELS = 20
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6a3d9a", "#5f5f5f")
"""Told apart by people who see colours otherwise, too; dashes tell apart what has the same colour again."""
DASHES = ("none", "6 3", "2 3", "8 3 2 3")

Write = Callable[[float], str]


def percent(value: float) -> str:
    """``0.5`` as ``50%``."""
    return f"{value * 100:.0f}%"


def plain(value: float) -> str:
    """Without zeros that say nothing."""
    return f"{value:g}"


def plot(series: Mapping[str, Sequence[float]], unit: str, *, write: Write = plain, at_least: float = 0.0) -> str:
    """Lines over cycles 1, 2, ... with axes and a legend. ``at_least`` is how far up the axis goes in any case."""
    count = max((len(values) for values in series.values()), default=0)
    if not count:
        return "<p>Nothing to show.</p>"
    ticks = ticks_to(max([at_least, *(value for values in series.values() for value in values)]))
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(unit)} by cycle">']
    parts.extend(_level(tick, ticks[-1], write) for tick in ticks)
    parts.extend(_labels(count))
    for index, values in enumerate(series.values()):
        parts.extend(_line(values, ticks[-1], _style(index), count))
    return "".join([*parts, "</svg>", _legend(series)])


def ticks_to(highest: float) -> list[float]:
    """Round numbers from 0 to at least ``highest``, few enough to be read."""
    if highest <= 0:
        return [0.0, 1.0]
    rough = highest / MOST_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    return [round(number * step, 10) for number in range(math.ceil(highest / step - 1e-9) + 1)]


def _style(index: int) -> str:
    colour, dash = COLOURS[index % len(COLOURS)], DASHES[index // len(COLOURS) % len(DASHES)]
    return f'stroke="{colour}" stroke-dasharray="{dash}"'


def _level(tick: float, highest: float, write: Write) -> str:
    y = _y(tick / highest)
    return (
        f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}" stroke="#ddd"/>'
        f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{write(tick)}</text>'
    )


def _labels(count: int) -> Iterator[str]:
    every = math.ceil(count / MOST_LABELS)
    for at in range(0, count, every):
        yield f'<text x="{_x(at, count)}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{at + 1}</text>'
    yield f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 4}" text-anchor="middle">cycle</text>'


def _line(values: Sequence[float], highest: float, style: str, count: int) -> Iterator[str]:
    places = [(_x(at, count), _y(value / highest)) for at, value in enumerate(values)]
    points = " ".join(f"{x},{y}" for x, y in places)
    yield f'<polyline fill="none" stroke-width="2" {style} points="{points}"/>'
    yield from (f'<circle cx="{x}" cy="{y}" r="2" fill="white" {style}/>' for x, y in places)


def _legend(series: Mapping[str, Sequence[float]]) -> str:
    """Beside the drawing, where names of any length have room."""
    if len(series) < 2:
        return ""
    keys = (
        f'<li><svg class="key" viewBox="0 0 24 8"><line x1="0" x2="24" y1="4" y2="4" stroke-width="3" {_style(index)}/>'
        f"</svg> {escape(name)}</li>"
        for index, name in enumerate(series)
    )
    return f'<ul class="legend">{"".join(keys)}</ul>'


def _x(at: int, count: int) -> float:
    wide = WIDTH - LEFT - RIGHT - 16
    return round(LEFT + 8 + (wide / 2 if count == 1 else at * wide / (count - 1)), 1)


def _y(part: float) -> float:
    return round(HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM), 1)
