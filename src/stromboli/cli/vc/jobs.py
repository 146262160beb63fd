"""``vcctl job run|list|suspend|resume|delete`` and their short forms (spec 08 sections 2.2 and 3)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stromboli.api.kinds import JOBS
from stromboli.api.names import JOB_TYPE
from stromboli.cli.commanding.api import Api
from stromboli.cli.commanding.errors import CommandError
from stromboli.cli.commanding.files import text_of
from stromboli.cli.commanding.running import Invocation
from stromboli.cli.vc import ages, bus
from stromboli.cli.vc.columns import Column
from stromboli.cli.vc.job_making import Wish, make
from stromboli.cli.vc.output import Listing, done, dry_run
from stromboli.kube import json
from stromboli.kube.errors import ApiError
from stromboli.kube.json import JsonObject


def run_job(invocation: Invocation) -> None:
    """``vcctl job run``: a job from flags or from a file."""
    arguments = invocation.arguments
    with invocation.connect() as api:
        if arguments.text("filename"):
            job = read_file(arguments.text("filename"))
            created = api.create(JOBS, job, invocation.namespace(api), dry_run=dry_run(invocation))
        elif arguments.name:
            created = create_made(invocation, api, _wish(invocation, invocation.namespace(api)))
        else:
            raise CommandError("job name cannot be left blank")
    done(invocation, f"run job {json.key_of(created)[1]} successfully", created)


def create_made(invocation: Invocation, api: Api, wish: Wish) -> JsonObject:
    """Create the job that flags ask for.

    Raises CommandError when it asks for more than the limit that no flag has set; other refusals as the server says.
    """
    arguments = invocation.arguments
    try:
        return api.create(JOBS, make(wish), wish.namespace, dry_run=dry_run(invocation))
    except ApiError as error:
        if "limits" in arguments.given or "requests" not in arguments.given or "limit of" not in error.message:
            raise
        default = arguments.text("limits")
        raise CommandError(f"{error.message.rstrip('. ')}; without --limits the limit is {default}") from error


def _wish(invocation: Invocation, namespace: str) -> Wish:
    arguments = invocation.arguments
    return Wish(
        name=arguments.name,
        namespace=namespace,
        image=arguments.text("image"),
        replicas=arguments.number("replicas"),
        minimum=arguments.number("min"),
        requests=arguments.text("requests"),
        limits=arguments.text("limits"),
        scheduler=arguments.text("scheduler"),
    )


def read_file(name: str) -> JsonObject:
    """The one vcjob of a YAML file, ``-`` for standard input. Raises CommandError."""
    if name == "-":
        return one_job(text_of(name))
    if ".yaml" not in name and ".yml" not in name:
        raise CommandError("only support yaml file")
    try:
        text = Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"failed to read file, err: {error}") from error
    return one_job(text)


def one_job(text: str) -> JsonObject:
    """The one vcjob in a text of YAML or JSON. Raises CommandError."""
    import yaml

    from stromboli.api import manifests

    try:
        found = [item for item in manifests.documents(text) if item is not None]
    except yaml.YAMLError as error:
        raise CommandError(f"failed to unmarshal file, err:  {' '.join(str(error).split())}") from error
    if len(found) != 1 or not isinstance(found[0], dict):
        raise CommandError(f"failed to unmarshal file, err:  expected one vcjob, found {len(found)} documents")
    job: JsonObject = found[0]
    if (job.get("apiVersion"), job.get("kind")) != (JOBS.api_version, JOBS.kind):
        raise CommandError(
            f"failed to unmarshal file, err:  expected kind {JOBS.kind} of {JOBS.api_version}, "
            f"found {job.get('kind')!r} of {job.get('apiVersion')!r}"
        )
    if not json.key_of(job)[1] and not json.metadata(job).get("generateName"):
        raise CommandError("failed to unmarshal file, err:  metadata.name is missing")
    return job


def list_jobs(invocation: Invocation, *, short: bool = False) -> None:
    """``vcctl job list``; ``short`` is the form of ``vjobs``, whose header and widths do not heed the filters."""
    arguments = invocation.arguments
    everywhere = arguments.on("all-namespaces")
    with invocation.connect() as api:
        Listing(
            JOBS,
            None if everywhere else invocation.namespace(api),
            columns=lambda wide: columns(invocation, everywhere=everywhere, wide=wide),
            keep=lambda job: _wanted(invocation, job),
            header_always=short,
            size_by_all=short,
        ).show(invocation, api)


def _wanted(invocation: Invocation, job: JsonObject) -> bool:
    arguments, spec = invocation.arguments, job.get("spec") or {}
    if arguments.text("queue") and spec.get("queue") != arguments.text("queue"):
        return False
    if arguments.text("scheduler") and spec.get("schedulerName") != arguments.text("scheduler"):
        return False
    return arguments.text("selector") in json.key_of(job)[1]


def columns(invocation: Invocation, *, everywhere: bool, wide: bool) -> Sequence[Column]:
    """The columns of a list of jobs."""
    found = [
        Column("Name", lambda job: json.key_of(job)[1], gap=3, at_least=4),
        Column("Creation", lambda job: ages.date(json.metadata(job).get("creationTimestamp")), width=15),
        Column("Phase", lambda job: str((_status(job).get("state") or {}).get("phase") or ""), width=12),
        Column("JobType", lambda job: (json.metadata(job).get("labels") or {}).get(JOB_TYPE) or "Batch", width=12),
        Column("Replicas", lambda job: str(replicas(job)), width=12),
        Column("Min", _count("minAvailable"), width=6),
        Column("Pending", _count("pending"), width=10),
        Column("Running", _count("running"), width=10),
        Column("Succeeded", _count("succeeded"), width=12),
        Column("Failed", _count("failed"), width=10),
        Column("Unknown", _count("unknown"), width=12),
        Column("RetryCount", _count("retryCount"), width=10),
    ]
    if everywhere:
        found.insert(0, Column("Namespace", lambda job: json.key_of(job)[0], gap=3))
    if wide:
        found += _wide(invocation)
    return found


def _wide(invocation: Invocation) -> list[Column]:
    now = invocation.now()
    return [
        Column("  Queue", lambda job: f"  {(job.get('spec') or {}).get('queue') or ''}", gap=3, at_least=7),
        Column("Scheduler", lambda job: str((job.get("spec") or {}).get("schedulerName") or ""), gap=3, at_least=9),
        Column("Age", lambda job: ages.age(json.metadata(job).get("creationTimestamp"), now), width=8),
    ]


def _status(job: JsonObject) -> dict[str, Any]:
    return job.get("status") or {}


def _count(field: str) -> Any:
    return lambda job: str(_status(job).get(field) or 0)


def replicas(job: JsonObject) -> int:
    """Pods of all tasks."""
    return sum(task.get("replicas") or 0 for task in (job.get("spec") or {}).get("tasks") or [])


def suspend_job(invocation: Invocation) -> None:
    """``vcctl job suspend``."""
    _order(invocation, "suspend", bus.ABORT)


def resume_job(invocation: Invocation) -> None:
    """``vcctl job resume``."""
    _order(invocation, "resume", bus.RESUME)


def _order(invocation: Invocation, verb: str, action: str) -> None:
    with invocation.connect() as api:
        name = mandatory_name(invocation, verb)
        made = bus.order_job(api, name, invocation.namespace(api), action, dry_run=dry_run(invocation))
    done(invocation, "", made)


def delete_job(invocation: Invocation) -> None:
    """``vcctl job delete``."""
    _delete(invocation, "delete")


def cancel_job(invocation: Invocation) -> None:
    """``vcancel``."""
    _delete(invocation, "cancel")


def _delete(invocation: Invocation, verb: str) -> None:
    with invocation.connect() as api:
        name = mandatory_name(invocation, verb)
        namespace = invocation.namespace(api)
        deleted = api.delete(JOBS, name, namespace, dry_run=dry_run(invocation))
    done(invocation, f"{verb} job {name} successfully", deleted)


def mandatory_name(invocation: Invocation, verb: str) -> str:
    """The job's name. Raises CommandError when there is none."""
    if not invocation.arguments.name:
        raise CommandError(f"job name is mandatory to {verb} a particular job")
    return invocation.arguments.name
