"""A simulation as one HTML page with plots, readable without a network: inline SVG, no scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from stromboli.cli.counting import counted, verb
from stromboli.cli.rehearsing.engine import QueueState
from stromboli.cli.rehearsing.plots import percent, plot
from stromboli.cli.rehearsing.simulating import Simulation

STYLE = """
:root { color-scheme: light }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 50rem; padding: 0 1rem; color: #222;
  background: #fff }
h1 { font-size: 1.6rem; overflow-wrap: anywhere } h2 { font-size: 1.15rem; margin: 1.8rem 0 .4rem }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 }
th, td { text-align: left; padding: .25rem .6rem; vertical-align: top } td:first-child { white-space: nowrap }
tr { border-bottom: 1px solid #ddd } .none { color: #666 }
svg { width: 100%; height: auto; background: #fafafa } text { font: 11px system-ui, sans-serif; fill: #444 }
.legend { display: flex; flex-wrap: wrap; gap: .1rem 1.2rem; list-style: none; margin: .2rem 0; padding: 0;
  font-size: .85rem }
.key { width: 1.6rem; height: .6rem; background: none }
"""


def page(simulation: Simulation, title: str) -> str:
    """The page."""
    rounds = simulation.rounds
    use = {name: [round_.use.get(name, 0.0) for round_ in rounds] for name in _resources(simulation)}
    shares = {name: [round_.queues[name].share or 0.0 for round_ in rounds] for name in simulation.after}
    waiting = {"gangs": [float(round_.waiting) for round_ in rounds]}
    starts = [(job, str(at)) for job, at in simulation.first_starts.items()]
    return "\n".join(
        [
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>',
            f"<style>{STYLE}</style><h1>{escape(title)}</h1>",
            f"<p>{summary(simulation)}</p>",
            "<h2>Use of the cluster</h2>",
            plot(use, "part of the cluster in use", write=percent, at_least=1.0),
            "<h2>Shares of the queues</h2>",
            plot(shares, "share", at_least=1.0),
            "<h2>Gangs that wait</h2>",
            plot(waiting, "gangs", at_least=5.0),
            "<h2>Queues before and after</h2>",
            _table(("Queue", "Share", "Allocated before", "Allocated after"), list(_queues(simulation))),
            "<h2>Starts</h2>",
            _table(("Job", "First node in cycle"), starts),
            "<h2>Evictions</h2>",
            _table(("Pod", "By"), [(one.pod, one.reason) for one in simulation.evicted]),
            "<h2>Still waiting</h2>",
            _table(("Job", "Why"), list(simulation.waiting.items())),
            "</html>",
        ]
    )


def summary(simulation: Simulation) -> str:
    """``2 cycles: 1 pod starts, 0 are evicted, 1 gang waits.``"""
    started, evicted, waiting = len(simulation.started), len(simulation.evicted), len(simulation.waiting)
    return (
        f"{counted(len(simulation.rounds), 'cycle')}: {counted(started, 'pod')} {verb(started, 'start')}, "
        f"{evicted} {verb(evicted, 'are')} evicted, {counted(waiting, 'gang')} {verb(waiting, 'wait')}."
    )


def _queues(simulation: Simulation) -> Iterator[Sequence[str]]:
    for name, after in simulation.after.items():
        before = simulation.before.get(name, QueueState({}))
        yield (name, f"{before.share_text} → {after.share_text}", before.amounts, after.amounts)


def _resources(simulation: Simulation) -> list[str]:
    return [name for name in (simulation.rounds[-1].use if simulation.rounds else {}) if name != "pods"]


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return '<p class="none">None.</p>'
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"
