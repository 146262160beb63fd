"""The stand-alone commands (spec 08 section 3). Here ``-n`` is the name and ``-N`` the namespace."""

from __future__ import annotations

import shlex

from stromboli.cli.commanding.errors import CommandError
from stromboli.cli.commanding.running import Invocation
from stromboli.cli.vc import jobs
from stromboli.cli.vc.job_making import Wish
from stromboli.cli.vc.job_view import view_job
from stromboli.cli.vc.output import done


def submit(invocation: Invocation) -> None:
    """``vsub``: a job from flags, with defaults from the environment."""
    arguments, environment = invocation.arguments, invocation.terminal.environment
    with invocation.connect() as api:
        if not arguments.name:
            raise CommandError("job name cannot be left blank")
        namespace = arguments.text("namespace") or environment.get("VOLCANO_DEFAULT_JOB_NAMESPACE") or "default"
        wish = Wish(
            name=arguments.name,
            namespace=namespace,
            image=arguments.text("image") or environment.get("VOLCANO_DEFAULT_IMAGE") or "busybox",
            replicas=arguments.number("replicas"),
            minimum=arguments.number("min"),
            requests=arguments.text("requests"),
            limits=arguments.text("limits"),
            scheduler=arguments.text("scheduler") or environment.get("VOLCANO_SCHEDULER_NAME") or "volcano",
            command=_split(arguments.text("command")),
        )
        created = jobs.create_made(invocation, api, wish)
    done(invocation, f"run job {wish.name} successfully", created)


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise CommandError(f"--command cannot be split into words: {error}") from error


def show_jobs(invocation: Invocation) -> None:
    """``vjobs``: all jobs of a namespace, or the one named."""
    if invocation.arguments.name:
        view_job(invocation, conditions=False)
    else:
        jobs.list_jobs(invocation, short=True)


def cancel(invocation: Invocation) -> None:
    """``vcancel``."""
    jobs.cancel_job(invocation)


def suspend(invocation: Invocation) -> None:
    """``vsuspend``."""
    jobs.suspend_job(invocation)


def resume(invocation: Invocation) -> None:
    """``vresume``."""
    jobs.resume_job(invocation)
