"""What scripts rely on: every command and flag of spec 08, sections 1 to 3, with shorthand, default and help text.

The register is data of its own, not taken from the trees: what is missing or named otherwise there fails here. The
trees may have more.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from stromboli.api import kinds
from stromboli.cli.commanding.commands import GLOBAL_FLAGS, Command, Flag, FlagValue
from stromboli.testing.apiserver import FakeApiServer
from tests.cli.driving import TREES, drive, job, meta, queue


class Register(NamedTuple):
    """One command."""

    help: str
    flags: str = ""
    """One a line: ``--name -short default | usage``; ``-`` for none, and no usage where the text is free."""


AMOUNTS = """
    --min -m 1 | the minimal available tasks of job
    --replicas -r 1 | the total tasks of job
    --requests -R cpu=1000m,memory=100Mi | the resource request of the task
    --limits -L cpu=1000m,memory=100Mi | the resource limit of the task
"""
ONE_JOB = """
    --namespace -n default | the namespace of job
    --name -N - | the name of job
"""
SHORT_ONE = """
    --name -n -
    --namespace -N default
"""
CONNECTION = """
    --master -s -
    --kubeconfig -k -
"""
FLOW = """
    --name -N -
    --namespace -n default
"""

COMMANDS: dict[str, Register] = {
    "vcctl job": Register("vcctl command line operation job"),
    "vcctl jobflow": Register("vcctl command line operation jobflow"),
    "vcctl jobtemplate": Register("vcctl command line operation jobtemplate"),
    "vcctl pod": Register("vcctl command line operation pod"),
    "vcctl queue": Register("Queue Operations"),
    "vcctl version": Register("Print the version information"),
    "vcctl job run": Register(
        "run job by parameters from the command line",
        f"""{ONE_JOB}{AMOUNTS}
    --image -i busybox | the container image of job
    --scheduler -S volcano | the scheduler for this job
    --filename -f - | the yaml file of job
""",
    ),
    "vcctl job list": Register(
        "list job information",
        """
    --queue -q - | list job with specified queue name
    --namespace -n default | the namespace of job
    --scheduler -S - | list job with specified scheduler name
    --all-namespaces - false | list jobs in all namespaces
    --selector - - | fuzzy matching jobName
""",
    ),
    "vcctl job view": Register("show job information", ONE_JOB),
    "vcctl job suspend": Register("abort a job", ONE_JOB),
    "vcctl job resume": Register("resume a job", ONE_JOB),
    "vcctl job delete": Register("delete a job", ONE_JOB),
    "vcctl queue create": Register(
        "creates queue",
        """
    --name -n test | the name of queue
    --weight -w 1 | the weight of the queue
    --state -S Open | the state of queue
""",
    ),
    "vcctl queue delete": Register("delete queue", "--name -n -"),
    "vcctl queue operate": Register(
        "operate queue",
        """
    --name -n -
    --weight -w 0
    --action -a - | operate action to queue, valid actions are open, close, update
""",
    ),
    "vcctl queue list": Register("lists all the queue"),
    "vcctl queue get": Register("get a queue", "--name -n -"),
    "vcctl jobflow create": Register("", "--file -f -"),
    "vcctl jobflow list": Register("", "--namespace -n default\n--all-namespaces - false"),
    "vcctl jobflow get": Register("", FLOW),
    "vcctl jobflow delete": Register("", f"{FLOW}--file -f -"),
    "vcctl jobflow describe": Register("", f"{FLOW}--format -o yaml"),
    "vcctl jobtemplate create": Register("", "--file -f -"),
    "vcctl jobtemplate list": Register("", "--namespace -n default"),
    "vcctl jobtemplate get": Register("", FLOW),
    "vcctl jobtemplate delete": Register("", f"{FLOW}--file -f -"),
    "vcctl jobtemplate describe": Register("", f"{FLOW}--format -o yaml"),
    "vcctl pod list": Register(
        "",
        """
    --queue -q - | list pod with specified queue name
    --job -j - | list pod with specified job name
    --namespace -n default
    --all-namespaces - false
""",
    ),
    "vsub": Register(
        "submit a job with specified name and arguments. yaml/json file is not accepted, you may refer to kubectl.",
        f"""{AMOUNTS}
    --name -n -
    --namespace -N -
    --image -i -
    --scheduler -S -
    --command -c -
""",
    ),
    "vcancel": Register(
        "cancel a running, pending, or aborted job with specified name in default or specified namespace", SHORT_ONE
    ),
    "vsuspend": Register(
        "suspend a running or pending job with specified name in default or specified namespace", SHORT_ONE
    ),
    "vresume": Register("resume an aborted job with specified name in default or specified namespace", SHORT_ONE),
    "vjobs": Register(
        "view information of a job with specified name or jobs from the same namespace",
        f"""{SHORT_ONE}
    --scheduler -S -
    --all-namespaces - false
    --selector - -
""",
    ),
    "vqueues": Register(
        "view information of a queue with specified name or queues from the same namespace", "--name -n -"
    ),
}
GROUPS = ("vcctl job", "vcctl jobflow", "vcctl jobtemplate", "vcctl pod", "vcctl queue")
WITHOUT_SERVER = ("vcctl version", *GROUPS)


def found(path: str) -> Command:
    """The command in the trees."""
    tool, *words = path.split()
    command = TREES[tool]
    for word in words:
        child = command.child(word)
        assert child is not None, f"{path} is missing"
        command = child
    return command


def default_of(text: str) -> FlagValue:
    """``-`` stands for no text, digits for a number, ``false`` for a switch."""
    if text == "false":
        return False
    return int(text) if text.isdecimal() else "" if text == "-" else text


def missing(given: dict[str, Flag], line: str) -> str:
    """How a flag differs from its line in the register; empty when it does not."""
    head, _, usage = (part.strip() for part in line.partition("|"))
    name, short, default = head.split()
    flag = given.get(name.removeprefix("--"))
    if flag is None:
        return f"{name} is missing"
    got, want = (flag.short, flag.default), (short.removeprefix("-"), default_of(default))
    if got != want or type(got[1]) is not type(want[1]):
        return f"{name}: {got} instead of {want}"
    return "" if usage in ("", flag.usage) else f"{name}: {flag.usage!r} instead of {usage!r}"


@pytest.mark.parametrize("path", COMMANDS)
def test_commands_have_the_flags_that_scripts_use(path: str) -> None:
    register, command = COMMANDS[path], found(path)
    assert command.short == (register.help or command.short)
    given = {flag.name: flag for flag in command.flags}
    lines = register.flags + (CONNECTION if path not in WITHOUT_SERVER else "")
    faults = [missing(given, line) for line in lines.splitlines() if line.strip()]
    assert [fault for fault in faults if fault] == []


@pytest.mark.parametrize("path", COMMANDS)
def test_no_other_flag_takes_a_shorthand_of_the_register(path: str) -> None:
    shorts = [flag.short for flag in found(path).all_flags if flag.short]
    assert len(set(shorts)) == len(shorts)


def test_groups_have_these_sub_commands_and_run_nothing_themselves() -> None:
    for path in GROUPS:
        assert found(path).children
        assert found(path).run == ""


def test_flags_of_every_tool() -> None:
    given = {flag.name: flag for flag in GLOBAL_FLAGS}
    assert (given["v"].short, given["v"].word) == ("v", "Level")
    assert given["vmodule"].word == "moduleSpec"
    flush = given["log-flush-frequency"]
    assert flush.word == "duration"
    assert flush.usage.endswith("(default 5s)")


HEADERS = {
    "vcctl job list": "Name Creation Phase JobType Replicas Min Pending Running Succeeded Failed Unknown RetryCount",
    "vcctl job list --all-namespaces": "Namespace Name Creation Phase JobType Replicas Min Pending Running Succeeded "
    "Failed Unknown RetryCount",
    "vjobs": "Name Creation Phase JobType Replicas Min Pending Running Succeeded Failed Unknown RetryCount",
    "vcctl queue list": "Name Weight State Parent Inqueue Pending Running Unknown Completed",
    "vcctl queue get -n default": "Name Weight State Parent Inqueue Pending Running Unknown Completed",
    "vqueues": "Name Weight State Inqueue Pending Running Unknown",
    "vcctl jobflow list": "Name Namespace Phase Age",
    "vcctl jobflow get -N flow": "Name Namespace Phase Age",
    "vcctl jobtemplate list": "Name Namespace",
    "vcctl jobtemplate get -N template": "Name Namespace",
    "vcctl pod list": "Name Ready Status Restart Age",
}
WIDTHS = {
    "vcctl job list": {"Name": 7, "Creation": 15, "Phase": 12, "JobType": 12, "Replicas": 12, "Min": 6, "Pending": 10,
                       "Running": 10, "Succeeded": 12, "Failed": 10, "Unknown": 12, "RetryCount": 10},
    "vcctl queue list": {"Name": 25, **dict.fromkeys(HEADERS["vcctl queue list"].split()[1:], 8)},
    "vqueues": {"Name": 25, **dict.fromkeys(HEADERS["vqueues"].split()[1:], 8)},
    "vcctl jobflow list": {"Name": 8, "Namespace": 13, "Phase": 11, "Age": 7},
}  # fmt: skip
"""Of columns, for a job and a flow with short names."""


def furnish(server: FakeApiServer) -> None:
    """One object of each kind that is listed."""
    server.put(kinds.JOBS, job("j"))
    server.put(kinds.QUEUES, queue("default"))
    server.put(kinds.JOB_FLOWS, {"metadata": meta("flow"), "status": {"state": {"phase": "Running"}}})
    server.put(kinds.JOB_TEMPLATES, {"metadata": meta("template")})
    labelled = {**meta("p"), "labels": {"volcano.sh/job-name": "j"}}
    server.put(kinds.PODS, {"metadata": labelled, "spec": {"containers": []}})


@pytest.mark.parametrize("line", HEADERS)
async def test_tables_have_these_columns(server: FakeApiServer, line: str) -> None:
    furnish(server)
    header = (await drive(line, server)).out.splitlines()[0]
    assert header.split() == HEADERS[line].split()
    if line in WIDTHS:
        assert header == "".join(f"{title:<{width}}" for title, width in WIDTHS[line].items())
