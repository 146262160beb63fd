"""``vcctl job preview``, ``vcctl snapshot`` and ``vcctl simulate``: what would happen, with nothing changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from stromboli.api.kinds import JOBS
from stromboli.cli.commanding.api import Api
from stromboli.cli.commanding.errors import CommandError
from stromboli.cli.commanding.files import text_of, write_private
from stromboli.cli.commanding.running import Invocation
from stromboli.cli.counting import counted, verb
from stromboli.cli.vc.job_files import chosen, jobs_in
from stromboli.cli.vc.output import data_format, document
from stromboli.kube import json
from stromboli.kube.errors import AlreadyExists
from stromboli.kube.json import JsonObject

if TYPE_CHECKING:
    from stromboli.cli.rehearsing.policies import Rules
    from stromboli.cli.rehearsing.previewing import Preview
    from stromboli.cli.rehearsing.simulating import Simulation

MOST_EVICTIONS = 20
MOST_LINES = 20
"""Of one section on a terminal; what goes into files and pipes is complete."""


def preview_job(invocation: Invocation) -> None:
    """``vcctl job preview -f FILE``."""
    from stromboli.cli.rehearsing.policies import choose, in_cluster, of_directory
    from stromboli.cli.rehearsing.previewing import preview
    from stromboli.cli.rehearsing.snapshots import gather

    form = data_format(invocation)
    with invocation.connect() as api:
        job = _given(invocation)
        judged = _judged(api, job, json.key_of(job)[0] or invocation.namespace(api))
        plugins = of_directory(invocation.arguments.text("plugins-dir"))
        rules = choose(invocation.arguments.text("policy"), *in_cluster(api), plugins=plugins)
        snapshot = gather(api, clock=invocation.now)
    try:
        found = preview(snapshot, rules.policy, judged, plugins)
    except ValueError as error:
        raise CommandError(f"the job cannot be read: {error}") from error
    tell_guess(invocation, rules)
    tell_problems(invocation, rules)
    if form in ("json", "yaml"):
        invocation.say(document(found.to_wire(), form))
        return
    for line in _preview_lines(found):
        invocation.say(line)
    invocation.say(f"Worked out with {rules.name}.")


def tell_guess(invocation: Invocation, rules: Rules) -> None:
    """Say, before the answer, that nobody has told what policy the scheduler has."""
    from stromboli.cli.rehearsing.policies import CONFIG_MAP, NAMESPACE

    if rules.is_guessed:
        invocation.warn(
            f"note: no --policy is given and ConfigMap {NAMESPACE}/{CONFIG_MAP} cannot be read: this is worked out "
            f"with {rules.name}, which need not be the scheduler's"
        )


def tell_problems(invocation: Invocation, rules: Rules) -> None:
    """Say what of the policy is left out: the answer is that of another one then."""
    for problem in rules.problems:
        invocation.warn(f"{problem}; if it is a plugin of your own, give its folder with --plugins-dir")


def _given(invocation: Invocation) -> JsonObject:
    """The job to preview: the one named, else the first of the file."""
    file, name = invocation.arguments.text("filename"), invocation.arguments.name
    if not file:
        raise CommandError("give the job's file with --filename (-f), or - for standard input")
    jobs = jobs_in(file)
    job = chosen(jobs, name, file)
    if len(jobs) > 1 and not name:
        first = json.key_of(job)[1]
        invocation.warn(f"{file} has {len(jobs)} jobs; this is about the first, {first} (name another: preview NAME)")
    return job


def _judged(api: Api, job: JsonObject, namespace: str) -> JsonObject:
    """The job as the API server would keep it."""
    try:
        return api.create(JOBS, job, namespace, dry_run=True)
    except AlreadyExists as error:
        name = json.key_of(job)[1]
        raise CommandError(
            f"{error.message}: see what it waits for with 'vcctl job explain {name} -n {namespace}', "
            "or preview it under another name"
        ) from error


def _preview_lines(found: Preview) -> Iterator[str]:
    yield found.sentence
    for node, count in found.placements.items():
        yield f"  {node}: {counted(count, 'pod')}"
    if found.evictions:
        yield "Evicted:"
        yield from (f"  {one.pod} ({one.reason})" for one in found.evictions[:MOST_EVICTIONS])
        if len(found.evictions) > MOST_EVICTIONS:
            yield f"  and {len(found.evictions) - MOST_EVICTIONS} more"
    if found.why:
        yield f"Reason: {found.why.reason}"
        yield f"Next:   {found.why.next_step}"
    for number, line in enumerate(found.taken):
        yield f"{'' if number else 'Taken:':<8}{line}"


def take_snapshot(invocation: Invocation) -> None:
    """``vcctl snapshot FILE``."""
    from stromboli.cli.rehearsing.policies import in_cluster
    from stromboli.cli.rehearsing.snapshots import gather

    name = invocation.arguments.name
    with invocation.connect() as api:
        if not name:
            raise CommandError("the name of the file to write is missing: vcctl snapshot FILE")
        snapshot = gather(api, clock=invocation.now)
        content, _ = in_cluster(api)
    if invocation.arguments.text("policy"):
        content = text_of(invocation.arguments.text("policy"), "policy ")
    encoded = replace(snapshot, policy=content).encode()
    if name == "-":
        invocation.say(encoded.decode())
    else:
        try:
            write_private(Path(name), encoded)
        except OSError as error:
            raise CommandError(f"{name}: cannot be written: {error.strerror or error}") from error
        invocation.say(f"wrote {counted(len(snapshot.objects), 'object')} to {name}")
    for line in snapshot.missing:
        invocation.warn(f"left out: {line}")


def simulate_snapshot(invocation: Invocation) -> None:
    """``vcctl simulate SNAPSHOT``."""
    from stromboli.cli.rehearsing.policies import choose, of_directory
    from stromboli.cli.rehearsing.settings import with_settings
    from stromboli.cli.rehearsing.simulating import simulate
    from stromboli.cli.rehearsing.snapshots import read

    arguments = invocation.arguments
    form = arguments.text("output")
    if form not in ("", "json", "yaml", "html"):
        raise CommandError(f"output format {form!r} is not known; choose one of json, yaml, html")
    if not arguments.name:
        raise CommandError(
            "the snapshot's file is missing: vcctl simulate SNAPSHOT; make one with 'vcctl snapshot FILE'"
        )
    if arguments.number("cycles") < 1:
        raise CommandError("--cycles must be at least 1")
    snapshot = with_settings(read(Path(arguments.name)), arguments.all("set"))
    plugins = of_directory(arguments.text("plugins-dir"))
    rules = choose(arguments.text("policy"), snapshot.policy, plugins=plugins)
    tell_problems(invocation, rules)
    given = [job for file in arguments.all("with") for job in jobs_in(file)]
    jobs = [_identified(job, number) for number, job in enumerate(given)]
    twice = [key for key, count in Counter(map(json.key_of, jobs)).items() if count > 1 and key[1]]
    if twice:
        raise CommandError(f"--with: job {'/'.join(twice[0])} is given more than once; give each another name")
    try:
        found = simulate(snapshot, rules.policy, cycles=arguments.number("cycles"), jobs=jobs, plugins=plugins)
    except ValueError as error:
        raise CommandError(f"a job given with --with cannot be read: {error}") from error
    _show(invocation, found, form, rules.name)


def _identified(job: JsonObject, number: int) -> JsonObject:
    """A job out of a file has no UID and perhaps no namespace yet."""
    meta = {"namespace": "default", **json.metadata(job), "uid": f"with-{number}"}
    return {**job, "metadata": meta}


def _show(invocation: Invocation, found: Simulation, form: str, policy: str) -> None:
    if form == "html":
        from stromboli.cli.rehearsing.page import page

        invocation.say(page(found, f"Simulation of {Path(invocation.arguments.name).name} with {policy}"))
    elif form:
        invocation.say(document(found.to_wire(), form))
    else:
        most = MOST_LINES if invocation.terminal.out.isatty() else None
        for line in _simulation_lines(found, policy, most):
            invocation.say(line)


def _simulation_lines(found: Simulation, policy: str, most: int | None) -> Iterator[str]:
    """The simulation as text; of each section ``most`` lines, all without a number."""
    yield (
        f"{counted(len(found.rounds), 'cycle')} with {policy}: {counted(len(found.started), 'pod')} "
        f"{verb(len(found.started), 'start')}, {len(found.evicted)} {verb(len(found.evicted), 'are')} evicted, "
        f"{counted(len(found.waiting), 'gang')} {verb(len(found.waiting), 'wait')}."
    )
    yield from _section("Starts", _starts(found), most)
    yield from _section("Evicted", [f"{one.pod}  by {one.reason}" for one in found.evicted], most)
    yield from _section("Waiting", [f"{job}  {why}" for job, why in found.waiting.items()], most)
    yield from _queue_lines(found, most)
    problems = sorted({problem for round_ in found.rounds for problem in round_.problems})
    yield from _section("Problems", problems, most)


def _queue_lines(found: Simulation, most: int | None) -> Iterator[str]:
    """Queues before and after; where there are too many, those of which something changes."""
    from stromboli.cli.rehearsing.engine import QueueState

    told = {name: (found.before.get(name, QueueState({})), after) for name, after in found.after.items()}
    if most is not None and len(told) > most:
        told = {name: states for name, states in told.items() if states[0] != states[1]}
    lines = []
    for name, (before, after) in told.items():
        share = f"{before.share_text} -> {after.share_text}"
        lines.append(f"{name:<24} {share:<15} {before.amounts} -> {after.amounts}")
    yield ""
    yield f"{'Queue':<25}{'Share':<16}Allocated"
    yield from _some(lines, most)
    if len(told) < len(found.after):
        still = len(found.after) - len(told)
        yield f"{counted(still, 'queue')} {verb(still, 'stay')} as {'they are' if still > 1 else 'it is'}"


def _starts(found: Simulation) -> list[str]:
    counts = Counter(start.job for start in found.started)
    return [f"{job}  {counted(counts[job], 'pod')}, from cycle {at}" for job, at in found.first_starts.items()]


def _section(title: str, lines: list[str], most: int | None) -> Iterator[str]:
    if lines:
        yield ""
        yield f"{title}:"
        yield from (f"  {line}" for line in _some(lines, most))


def _some(lines: list[str], most: int | None) -> Iterator[str]:
    """The first lines, and how many there are beyond them."""
    yield from lines[:most]
    if most is not None and len(lines) > most:
        yield f"and {len(lines) - most} more (all of them: -o json, or into a file)"
