"""``kubectl create vcjob NAME -- COMMAND``: an executable that kubectl finds as a sub-command of ``create``."""

from __future__ import annotations

from stromboli.api.kinds import JOBS
from stromboli.cli.commanding.errors import CommandError
from stromboli.cli.commanding.running import Invocation
from stromboli.cli.vc.job_making import Wish, make
from stromboli.cli.vc.output import done, dry_run


def create_vcjob(invocation: Invocation) -> None:
    """Create a vcjob from flags; what it says on success is what kubectl says."""
    arguments = invocation.arguments
    with invocation.connect() as api:
        if not arguments.words:
            raise CommandError("exactly one NAME is required, got 0")
        name, *command = arguments.words
        namespace = invocation.namespace(api)
        wish = Wish(
            name=name,
            namespace=namespace,
            image=arguments.text("image"),
            replicas=arguments.number("replicas"),
            minimum=arguments.number("min") or arguments.number("replicas"),
            requests=arguments.text("requests"),
            limits=arguments.text("limits") or arguments.text("requests"),
            scheduler=arguments.text("scheduler"),
            command=command,
            queue=arguments.text("queue"),
        )
        created = api.create(JOBS, make(wish), namespace, dry_run=dry_run(invocation))
    done(invocation, f"job.batch.volcano.sh/{name} created", created)
