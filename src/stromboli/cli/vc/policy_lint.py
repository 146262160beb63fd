"""``vcctl policy lint FILE``: what a policy file means, and what is wrong with it. Needs no cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stromboli.cli.commanding.errors import CommandError
from stromboli.cli.commanding.running import Invocation
from stromboli.cli.vc.output import data_format, document

if TYPE_CHECKING:
    from stromboli.cli.rehearsing.linting import Lint


def lint_policy(invocation: Invocation) -> None:
    """Print the effective policy and the findings; exit code 255 when the scheduler would refuse the file."""
    from stromboli.cli.rehearsing.linting import lint
    from stromboli.cli.rehearsing.policies import of_directory, policy_text

    name, form = invocation.arguments.name, data_format(invocation)
    if not name:
        raise CommandError("the policy file is missing: vcctl policy lint FILE")
    found = lint(policy_text(name), of_directory(invocation.arguments.text("plugins-dir")))
    if form in ("json", "yaml"):
        invocation.say(document(found.to_wire(), form))
    else:
        for line in _lines(found):
            invocation.say(line)
    if found.errors:
        raise CommandError(
            f"{name} has {found.errors} error{'s' * (found.errors > 1)}: the scheduler would refuse it at start"
        )


def _lines(found: Lint) -> Iterator[str]:
    from stromboli.cli.rehearsing.linting import purpose
    from stromboli.cli.rehearsing.policies import ACTIONS
    from stromboli.scheduler.core.policy import TIERS_AGREE

    if found.policy is not None:
        yield "Actions, in this order:"
        yield from (f"  {name:<12}{purpose(ACTIONS[name])}" for name in found.policy.actions)
        tier = 0
        for number, name, hooks in found.takes_part:
            if number != tier:
                tier = number
                yield f"Tier {tier}:"
            yield f"  {name:<24}{purpose(found.plugins[name])}"
            yield f"  {'':<24}takes part in: {', '.join(hooks) or 'nothing'}"
        if found.policy.tiers_agree_on_victims:
            yield f"Nobody is evicted whom a plugin of any tier would spare ({TIERS_AGREE})."
        yield ""
    if not found.findings:
        yield "No findings."
    for finding in found.findings:
        yield f"{finding.severity}: {finding.text}"
