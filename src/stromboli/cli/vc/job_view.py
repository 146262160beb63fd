"""``vcctl job view``: everything about a job as text (spec 08 section 2.2).

The layout is Volcano's, the three fixed lines of one vendor's annotations and the header word ``Form`` included; API
version and kind, which Volcano leaves blank, are filled in. A tab separates names from values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from stromboli.api.kinds import EVENTS, JOBS
from stromboli.cli.commanding.errors import CommandError
from stromboli.cli.commanding.running import Invocation
from stromboli.cli.vc import ages
from stromboli.cli.vc.output import output_format, show_one
from stromboli.kube import json
from stromboli.kube.errors import Forbidden
from stromboli.kube.json import JsonObject

Lines = Iterator[str]
VENDOR_LINES = (
    ("Cri . Cci . Io / Container - Type:          ", "cri.cci.io/container-type"),
    ("Kubernetes . Io / Availablezone:            ", "kubernetes.io/availablezone"),
    ("Network . Alpha . Kubernetes . Io / Network:", "network.alpha.kubernetes.io/network"),
)
COUNTERS = (
    ("Succeeded:    ", "succeeded"),
    ("Pending:      ", "pending"),
    ("Running:      ", "running"),
    ("Failed:       ", "failed"),
    ("Terminating:  ", "terminating"),
    ("Unknown:      ", "unknown"),
    ("RetryCount:   ", "retryCount"),
    ("Min Available:", "minAvailable"),
    ("Version:      ", "version"),
)
EVENT_WIDTHS = (15, 40, 30, 40)


def view_job(invocation: Invocation, *, conditions: bool = True) -> None:
    """``vcctl job view``; ``vjobs`` shows no conditions."""
    arguments = invocation.arguments
    form = output_format(invocation)
    with invocation.connect() as api:
        if not arguments.name:
            raise CommandError("job name (specified by --name or -N) is mandatory to view a particular job")
        namespace = invocation.namespace(api)
        job = api.get(JOBS, arguments.name, namespace)
        if form:
            show_one(invocation, job, "yaml" if form == "wide" else form)
            return
        try:
            found = api.list(EVENTS, namespace, field_selector=f"involvedObject.name={arguments.name}")
        except Forbidden as error:
            found = []
            invocation.warn(f"events are not shown: {error.message}")
        events = events_of(found, arguments.name)
    for line in [*description(job, conditions=conditions), *event_lines(events, invocation.now())]:
        invocation.say(line)


def description(job: JsonObject, *, conditions: bool) -> Lines:
    """The lines about the job itself."""
    meta = json.metadata(job)
    yield f"Name:       \t{meta.get('name', '')}"
    yield f"Namespace:  \t{meta.get('namespace', '')}"
    yield f"Labels:     \t{_map(meta.get('labels'))}"
    yield f"Annotations:\t{_map(meta.get('annotations'))}"
    yield f"API Version:\t{job.get('apiVersion') or JOBS.api_version}"
    yield f"Kind:       \t{job.get('kind') or JOBS.kind}"
    yield "Metadata:"
    yield f"  Creation Timestamp:\t{ages.moment(meta.get('creationTimestamp'))}"
    yield f"  Generate Name:     \t{meta.get('generateName', '')}"
    yield f"  Generation:        \t{meta.get('generation', 0)}"
    yield f"  Resource Version:  \t{meta.get('resourceVersion', '')}"
    yield f"  UID:               \t{meta.get('uid', '')}"
    yield from _spec(job.get("spec") or {})
    yield from _status(job.get("status") or {}, conditions=conditions)


def _map(value: Any) -> str:
    if not value:
        return "<none>"
    import json as standard

    return standard.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _spec(spec: JsonObject) -> Lines:
    plugins = spec.get("plugins") or {}
    yield "Spec:"
    yield f"  Min Available:     \t{spec.get('minAvailable', 0)}"
    yield "  Plugins:"
    yield f"    Env:\t{_words(plugins.get('env'))}"
    yield f"    Ssh:\t{_words(plugins.get('ssh'))}"
    yield f"  Scheduler Name:    \t{spec.get('schedulerName', '')}"
    yield "  Tasks:"
    for task in spec.get("tasks") or []:
        yield from _task(task)


def _words(arguments: Any) -> str:
    return f"[{' '.join(map(str, arguments or []))}]"


def _task(task: JsonObject) -> Lines:
    template = task.get("template") or {}
    meta, spec = template.get("metadata") or {}, template.get("spec") or {}
    annotations = meta.get("annotations") or {}
    yield f"    Name:\t{task.get('name', '')}"
    yield f"    Replicas:\t{task.get('replicas', 0)}"
    yield "    Template:"
    yield "      Metadata:"
    yield "        Annotations:"
    for title, key in VENDOR_LINES:
        yield f"          {title}\t{annotations.get(key, '')}"
    yield f"        Creation Timestamp:\t{ages.moment(meta.get('creationTimestamp'))}"
    yield "      Spec:"
    yield "        Containers:"
    for container in spec.get("containers") or []:
        yield from _container(container)
    yield "        Image Pull Secrets:"
    for secret in spec.get("imagePullSecrets") or []:
        yield f"          Name:     \t{secret.get('name', '')}"
    yield f"        Restart Policy:   \t{spec.get('restartPolicy', '')}"


def _container(container: JsonObject) -> Lines:
    resources = container.get("resources") or {}
    yield "          Command:"
    for word in container.get("command") or []:
        yield f"            {word}"
    yield f"          Image:\t{container.get('image', '')}"
    yield f"          Name: \t{container.get('name', '')}"
    yield "          Ports:"
    for port in container.get("ports") or []:
        yield f"            Container Port:\t{port.get('containerPort', 0)}"
        yield f"            Name:          \t{port.get('name', '')}"
    yield "          Resources:"
    for title, field in (("Limits:", "limits"), ("Requests:", "requests")):
        amounts = resources.get(field) or {}
        yield f"            {title}"
        yield f"              Cpu:   \t{amounts.get('cpu', 0)}"
        yield f"              Memory:\t{amounts.get('memory', 0)}"
    yield f"          Working Dir:\t{container.get('workingDir', '')}"


def _status(status: JsonObject, *, conditions: bool) -> Lines:
    yield "Status:"
    for title, field in COUNTERS:
        if (status.get(field) or 0) > 0:
            yield f"  {title}\t{status[field]}"
    yield "  State:"
    yield f"    Phase:\t{(status.get('state') or {}).get('phase', '')}"
    controlled = status.get("controlledResources") or {}
    if controlled:
        yield "  Controlled Resources:"
        for key in sorted(controlled):
            yield f"    {key}: \t{controlled[key]}"
    reached = status.get("conditions") or []
    if conditions and reached:
        yield "  Conditions:"
        yield "    Status\tTransitionTime"
        for condition in reached:
            yield f"    {condition.get('status', '')} \t{ages.moment(condition.get('lastTransitionTime'))} "


def events_of(events: Sequence[JsonObject], job: str) -> list[JsonObject]:
    """Events about a job, by their names, oldest first; not those of other things that are called as it is."""
    mine = [event for event in events if json.key_of(event)[1].startswith(f"{job}.") and _is_about_a_job(event)]
    return sorted(mine, key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""))


def _is_about_a_job(event: JsonObject) -> bool:
    return bool((event.get("involvedObject") or {}).get("kind", JOBS.kind) == JOBS.kind)


def event_lines(events: Sequence[JsonObject], now: float) -> Lines:
    """The part about events."""
    if not events:
        yield "Events: \t<none>"
        return
    yield "Events:"
    yield _event_row("Type", "Reason", "Age", "Form", "Message")
    yield _event_row("-------", "-------", "-------", "-------", "-------")
    for event in events:
        source = event.get("source") or {}
        where = f", {source['host']}" if source.get("host") else ""
        component = source.get("component") or event.get("reportingComponent") or ""
        yield _event_row(
            str(event.get("type", "")),
            str(event.get("reason", "")),
            _event_age(event, now),
            f"{component}{where}",
            str(event.get("message", "")),
        )


def _event_row(*cells: str) -> str:
    padded = [f"{cell:<{width}}" for cell, width in zip(cells, EVENT_WIDTHS, strict=False)]
    return "\t".join([*padded, cells[-1]])


def _event_age(event: JsonObject, now: float) -> str:
    first = ages.age(event.get("firstTimestamp") or event.get("eventTime"), now, zero_days=True)
    count = event.get("count") or 0
    if count <= 1:
        return first
    return f"{ages.age(event.get('lastTimestamp'), now, zero_days=True)} (x{count} over {first})"
