"""``vcctl job explain NAME``: why a job waits, in one sentence, a ladder and a next step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.api.kinds import EVENTS, JOBS, POD_GROUPS
from stromboli.api.names import job_pod_group_name
from stromboli.cli.commanding.api import Api
from stromboli.cli.commanding.errors import CommandError
from stromboli.cli.commanding.running import Invocation
from stromboli.cli.vc.output import data_format, document, existing
from stromboli.cli.vc.rehearse import tell_guess, tell_problems
from stromboli.kube import json
from stromboli.kube.errors import ApiError
from stromboli.kube.json import JsonObject

if TYPE_CHECKING:
    from stromboli.cli.rehearsing.explaining import Explanation
    from stromboli.cli.rehearsing.facts import Facts


def explain_job(invocation: Invocation) -> None:
    """Print the explanation. Without the right to look at nodes, what the objects themselves say must do."""
    from stromboli.cli.rehearsing.explaining import from_conditions
    from stromboli.cli.rehearsing.facts import Facts
    from stromboli.cli.rehearsing.policies import choose, in_cluster, of_directory
    from stromboli.cli.rehearsing.snapshots import NotAllowed, gather

    form = data_format(invocation)
    with invocation.connect() as api:
        if not invocation.arguments.name:
            raise CommandError("job name is mandatory to explain a particular job")
        namespace = invocation.namespace(api)
        job = api.get(JOBS, invocation.arguments.name, namespace)
        plugins = of_directory(invocation.arguments.text("plugins-dir"))
        rules = choose(invocation.arguments.text("policy"), *in_cluster(api), plugins=plugins)
        try:
            snapshot = gather(api, clock=invocation.now)
        except NotAllowed as error:
            found = from_conditions(job, _group_of(api, job))
            missing: tuple[str, ...] = (str(error),)
        else:
            found = _explained(
                Facts(job, snapshot, rules.policy, _events(api, namespace, json.key_of(job)[1]), plugins)
            )
            missing = snapshot.missing
            tell_guess(invocation, rules)
            tell_problems(invocation, rules)
    if form in ("json", "yaml"):
        invocation.say(document(found.to_wire(), form))
        return
    for line in lines(found, rules.name, missing):
        invocation.say(line)


def _explained(facts: Facts) -> Explanation:
    from stromboli.cli.rehearsing.explaining import explain

    try:
        return explain(facts)
    except ValueError as error:  # a template or quantity that is older than its schema
        raise CommandError(f"the job cannot be read: {error}") from error


def _group_of(api: Api, job: JsonObject) -> JsonObject | None:
    namespace, name = json.key_of(job)
    made = existing(api, POD_GROUPS, job_pod_group_name(name, json.uid_of(job)), namespace)
    return made or existing(api, POD_GROUPS, name, namespace)


def _events(api: Api, namespace: str, job: str) -> list[JsonObject]:
    """Events about the job's pods and PodGroup, oldest first."""
    try:
        found = api.list(EVENTS, namespace)
    except ApiError:
        return []
    about = [event for event in found if str((event.get("involvedObject") or {}).get("name", "")).startswith(f"{job}-")]
    return sorted(about, key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""))


def lines(found: Explanation, policy: str, missing: tuple[str, ...]) -> list[str]:
    """The explanation as text."""
    text = [found.sentence]
    if found.reason:
        text += [f"Reason:   {found.reason}", f"Next:     {found.next_step}"]
    for rung in found.rungs:
        text.append("")
        text.append(f"{rung.title + ':':<9} {rung.lines[0]}")
        text += [f"          {line}" for line in rung.lines[1:]]
    if found.rungs:
        text += ["", f"Worked out with {policy}."]
    text += [f"Not looked at: {line}" for line in missing]
    return text
