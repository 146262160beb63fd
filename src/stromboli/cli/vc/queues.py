"""``vcctl queue`` and ``vqueues`` (spec 08 sections 2.3 and 3).

Counts are of the PodGroups of the whole cluster, by phase: the counters in queues' status are not written any more.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing

from stromboli.api.kinds import POD_GROUPS, QUEUES
from stromboli.cli.commanding.api import Api
from stromboli.cli.commanding.errors import CommandError
from stromboli.cli.commanding.running import Invocation
from stromboli.cli.vc import bus
from stromboli.cli.vc.columns import Column, Layout
from stromboli.cli.vc.following import changes
from stromboli.cli.vc.output import NOTHING, document, done, dry_run, output_format, show_one
from stromboli.kube import json
from stromboli.kube.json import JsonObject

PHASES = ("Inqueue", "Pending", "Running", "Unknown", "Completed")
Counts = dict[str, Counter[str]]


def create_queue(invocation: Invocation) -> None:
    """``vcctl queue create``. Status cannot be created: ``--state Closed`` is asked for by a command afterwards."""
    arguments = invocation.arguments
    name, state = arguments.name, arguments.text("state")
    if state not in ("Open", "Closed"):
        raise CommandError(f"queue state {state!r} is not known; choose Open or Closed")
    queue = {
        "apiVersion": QUEUES.api_version,
        "kind": QUEUES.kind,
        "metadata": {"name": name},
        "spec": {"weight": arguments.number("weight")},
        "status": {"state": state},
    }
    with invocation.connect() as api:
        created = api.create(QUEUES, queue, dry_run=dry_run(invocation))
        if state == "Closed" and not dry_run(invocation):
            bus.order_queue(api, name, bus.CLOSE)
    done(invocation, "", created)


def delete_queue(invocation: Invocation) -> None:
    """``vcctl queue delete``."""
    with invocation.connect() as api:
        deleted = api.delete(QUEUES, _name(invocation, "queue name must be specified"), dry_run=dry_run(invocation))
    done(invocation, "", deleted)


def operate_queue(invocation: Invocation) -> None:
    """``vcctl queue operate``: open, close or update."""
    with invocation.connect() as api:
        name = _name(invocation, "queue name must be specified")
        done(invocation, "", _operate(invocation, api, name))


def _operate(invocation: Invocation, api: Api, name: str) -> JsonObject:
    action, dry = invocation.arguments.text("action"), dry_run(invocation)
    match action:
        case "open":
            return bus.order_queue(api, name, bus.OPEN, dry_run=dry)
        case "close":
            return bus.order_queue(api, name, bus.CLOSE, dry_run=dry)
        case "update":
            return _update(api, name, invocation.arguments.number("weight"), dry_run=dry)
        case "":
            raise CommandError("action can not be null")
        case _:
            raise CommandError(f"action {action} invalid, valid actions are open, close and update")


def _update(api: Api, name: str, weight: int, *, dry_run: bool) -> JsonObject:
    if weight == 0:
        raise CommandError(f"when update queue {name}, weight must be specified, the value must be greater than 0")
    return api.merge(QUEUES, name, {"spec": {"weight": weight}}, dry_run=dry_run)


def get_queue(invocation: Invocation) -> None:
    """``vcctl queue get``."""
    with invocation.connect() as api:
        name = _name(invocation, "name is mandatory to get the particular queue details")
        queue = api.get(QUEUES, name)
        form = output_format(invocation)
        if form in ("json", "yaml", "name"):
            show_one(invocation, queue, form)
        else:
            _Table(invocation, api, full_columns).show([queue])


def list_queues(invocation: Invocation) -> None:
    """``vcctl queue list``."""
    with invocation.connect() as api:
        _list(invocation, api, full_columns)


def show_queues(invocation: Invocation) -> None:
    """``vqueues``: all queues, or the one named."""
    with invocation.connect() as api:
        if not invocation.arguments.name:
            _list(invocation, api, short_columns)
            return
        queue = api.get(QUEUES, invocation.arguments.name)
        form = output_format(invocation)
        if form in ("json", "yaml", "name"):
            show_one(invocation, queue, form)
        else:
            _Table(invocation, api, short_columns).show([queue])


ColumnsOf = Callable[[Counts], Sequence[Column]]


def _list(invocation: Invocation, api: Api, columns: ColumnsOf) -> None:
    form, watching = output_format(invocation), invocation.arguments.on("watch")
    queues, version = api.snapshot(QUEUES)
    if form in ("json", "yaml") and not watching:
        invocation.say(document({"apiVersion": "v1", "kind": "List", "items": queues}, form))
    elif form in ("json", "yaml", "name"):
        for queue in queues:
            show_one(invocation, queue, form)
    elif queues or watching:
        table = _Table(invocation, api, columns)
        table.show(queues)
        if watching:
            table.follow(queues, version)
    else:
        invocation.say(NOTHING)


class _Table:
    """The table of queues, kept current by watches."""

    def __init__(self, invocation: Invocation, api: Api, columns: ColumnsOf) -> None:
        self._invocation = invocation
        self._api = api
        groups, self._version = api.snapshot(POD_GROUPS)
        self._groups = {json.key_of(group): group for group in groups}
        self._counts: Counts = count(groups)
        found = list(columns(self._counts))
        self._layout = Layout(found + (wide_columns() if output_format(invocation) == "wide" else []), [])
        self._shown: dict[str, str] = {}

    def show(self, queues: Iterable[JsonObject]) -> None:
        """Header and all rows."""
        self._invocation.say(self._layout.header())
        for queue in queues:
            self._row(queue)

    def follow(self, queues: Iterable[JsonObject], version: str) -> None:
        """Rows that change, for ever."""
        known = {json.key_of(queue): queue for queue in queues}
        with closing(changes(self._api, [(QUEUES, version), (POD_GROUPS, self._version)])) as stream:
            for kind, type_, obj in stream:
                store = known if kind is QUEUES else self._groups
                if type_ == "DELETED":
                    store.pop(json.key_of(obj), None)
                else:
                    store[json.key_of(obj)] = obj
                self._counts.clear()
                self._counts.update(count(self._groups.values()))
                for queue in known.values():
                    self._row(queue)

    def _row(self, queue: JsonObject) -> None:
        name, text = json.key_of(queue)[1], self._layout.row(queue)
        if self._shown.get(name) != text:
            self._shown[name] = text
            self._invocation.say(text)


def count(groups: Iterable[JsonObject]) -> Counts:
    """PodGroups by queue and phase."""
    counts: Counts = defaultdict(Counter)
    for group in groups:
        queue = (group.get("spec") or {}).get("queue") or ""
        counts[queue][(group.get("status") or {}).get("phase") or ""] += 1
    return counts


def full_columns(counts: Counts) -> Sequence[Column]:
    """The columns of ``vcctl queue``."""
    parent = Column("Parent", lambda queue: str((queue.get("spec") or {}).get("parent") or ""), width=8)
    return [*_head(), parent, *(_phase_column(counts, phase) for phase in PHASES)]


def short_columns(counts: Counts) -> Sequence[Column]:
    """The columns of ``vqueues``."""
    return [*_head(), *(_phase_column(counts, phase) for phase in PHASES[:4])]


def _head() -> list[Column]:
    return [
        Column("Name", lambda queue: json.key_of(queue)[1], width=25),
        Column("Weight", lambda queue: str((queue.get("spec") or {}).get("weight") or 0), width=8),
        Column("State", lambda queue: str((queue.get("status") or {}).get("state") or ""), width=8),
    ]


def _phase_column(counts: Counts, phase: str) -> Column:
    return Column(phase, lambda queue: str(counts.get(json.key_of(queue)[1], Counter())[phase]), width=8)


def wide_columns() -> list[Column]:
    """Amounts, for ``-o wide``."""
    return [
        Column("  Allocated", lambda queue: "  " + amounts((queue.get("status") or {}).get("allocated")), width=34),
        Column("Deserved", lambda queue: amounts((queue.get("spec") or {}).get("deserved")), width=26),
        Column("Capability", lambda queue: amounts((queue.get("spec") or {}).get("capability")), width=26),
    ]


def amounts(listed: JsonObject | None) -> str:
    """``cpu=4,memory=8Gi``; resources of amount 0 are left out."""
    return ",".join(f"{name}={amount}" for name, amount in sorted((listed or {}).items()) if amount not in ("0", 0))


def _name(invocation: Invocation, complaint: str) -> str:
    if not invocation.arguments.name:
        raise CommandError(complaint)
    return invocation.arguments.name
