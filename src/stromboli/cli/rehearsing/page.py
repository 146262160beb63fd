"""A simulation as one HTML page with plots, readable without a network: inline SVG, no scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from stromboli.cli.rehearsing.simulating import Simulation

WIDTH, HEIGHT, MARGIN = 640, 200, 36
COLOURS = ("#1b6ca8", "#d1495b", "#3a7d44", "#e08e0b", "#7a4fa3", "#2a9d8f", "#8d6e63", "#546e7a")
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 46rem; padding: 0 1rem; color: #222 }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1.5rem }
th, td { text-align: left; padding: .25rem .6rem }
tr { border-bottom: 1px solid #ddd } svg { width: 100%; height: auto; background: #fafafa } text { font-size: 11px }
"""


def page(simulation: Simulation, title: str) -> str:
    """The page."""
    rounds = simulation.rounds
    use = {name: [round_.use.get(name, 0.0) for round_ in rounds] for name in _resources(simulation)}
    shares = {name: [round_.queues[name].share or 0.0 for round_ in rounds] for name in simulation.after}
    waiting = {"gangs": [float(round_.waiting) for round_ in rounds]}
    return "\n".join(
        [
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>',
            f"<style>{STYLE}</style><h1>{escape(title)}</h1>",
            f"<p>{len(rounds)} cycles: {len(simulation.started)} pods start, {len(simulation.evicted)} are evicted, "
            f"{len(simulation.waiting)} gangs wait.</p>",
            "<h2>Use of the cluster</h2>",
            plot(use, "part of the cluster in use"),
            "<h2>Shares of the queues</h2>",
            plot(shares, "share"),
            "<h2>Gangs that wait</h2>",
            plot(waiting, "gangs"),
            "<h2>Starts</h2>",
            _table(("Job", "First node in cycle"), [(job, str(at)) for job, at in simulation.first_starts.items()]),
            "<h2>Evictions</h2>",
            _table(("Pod", "By"), [(one.pod, one.reason) for one in simulation.evicted]),
            "<h2>Still waiting</h2>",
            _table(("Job", "Why"), list(simulation.waiting.items())),
            "</html>",
        ]
    )


def _resources(simulation: Simulation) -> list[str]:
    return [name for name in (simulation.rounds[-1].use if simulation.rounds else {}) if name != "pods"]


def plot(series: Mapping[str, Sequence[float]], unit: str) -> str:
    """Lines over cycles as SVG, with a legend."""
    highest = max([value for line in series.values() for value in line], default=1.0) or 1.0
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT + 20}" role="img" aria-label="{escape(unit)} by cycle">']
    for level in (0.0, 0.5, 1.0):
        y = _y(level)
        parts.append(f'<line x1="{MARGIN}" x2="{WIDTH}" y1="{y}" y2="{y}" stroke="#ddd"/>')
        parts.append(f'<text x="2" y="{y + 4}">{level * highest:.2f}</text>')
    for index, (name, values) in enumerate(series.items()):
        colour = COLOURS[index % len(COLOURS)]
        points = " ".join(f"{_x(at, len(values))},{_y(value / highest)}" for at, value in enumerate(values))
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{points}"/>')
        parts.extend(
            f'<circle cx="{_x(at, len(values))}" cy="{_y(value / highest)}" r="2.5" fill="{colour}"/>'
            for at, value in enumerate(values)
        )
        legend = MARGIN + index * 110
        parts.append(f'<text x="{legend}" y="{HEIGHT + 14}" fill="{colour}">{escape(name)}</text>')
    return "".join([*parts, "</svg>"])


def _x(at: int, count: int) -> float:
    return round(MARGIN + 8 + at * (WIDTH - MARGIN - 16) / max(count - 1, 1), 1)


def _y(part: float) -> float:
    return round(HEIGHT - 10 - part * (HEIGHT - 24), 1)


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return "<p>None.</p>"
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"
