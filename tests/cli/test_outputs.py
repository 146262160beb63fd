"""What every command prints in every form: the files in ``golden/outputs``, one for a group of command lines.

``CLI_RECORD=1`` writes them anew; read the difference before it is kept. UIDs and times of creation are masked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from stromboli.api import kinds
from stromboli.cli.commanding.commands import Command
from stromboli.testing.apiserver import FakeApiServer
from tests.cli.driving import TREES, drive, job, meta, pod_group, queue

GOLDEN = Path(__file__).parent / "golden" / "outputs"
FORMS = ("", " -o wide", " -o json", " -o yaml", " -o name")
CHANGES = ("", " --dry-run=server", " -o name", " -o yaml --dry-run=server", " -o json --dry-run=server")
LISTS = {
    "job-list": "vcctl job list",
    "queue-list": "vcctl queue list",
    "jobflow-list": "vcctl jobflow list",
    "jobtemplate-list": "vcctl jobtemplate list",
    "pod-list": "vcctl pod list",
    "vjobs": "vjobs",
    "vqueues": "vqueues",
}
SINGLE = {
    "job-view": "vcctl job view train",
    "queue-get": "vcctl queue get research",
    "jobflow-get": "vcctl jobflow get -N flow",
    "jobtemplate-get": "vcctl jobtemplate get -N template",
    "vjobs-name": "vjobs -n train",
    "vqueues-name": "vqueues -n research",
}
CHANGING = {
    "job-run": "vcctl job run -N new",
    "job-suspend": "vcctl job suspend train",
    "job-resume": "vcctl job resume -N train",
    "job-delete": "vcctl job delete train",
    "queue-create": "vcctl queue create -n new",
    "queue-operate": "vcctl queue operate -n research -a update -w 3",
    "queue-close": "vcctl queue operate research -a close",
    "queue-delete": "vcctl queue delete -n research",
    "vsub": "vsub -n new",
    "vcancel": "vcancel -n train",
    "vsuspend": "vsuspend -n train",
    "vresume": "vresume -n train",
    "create-vcjob": "kubectl-create-vcjob new --image=busybox -- sleep 1",
}
GROUPS: dict[str, list[str]] = {
    **{name: [line + form for form in FORMS] for name, line in (LISTS | SINGLE).items()},
    **{name: [line + change for change in CHANGES] for name, line in CHANGING.items()},
    "namespaces": [
        "vcctl job list -n team",
        "vcctl job list --all-namespaces",
        "vcctl job list --all-namespaces -o wide",
        "vjobs -N team",
        "vjobs --all-namespaces",
        "vcctl jobflow list -n team",
        "vcctl jobflow list --all-namespaces",
        "vcctl jobtemplate list -n team",
        "vcctl pod list -n team",
        "vcctl pod list --all-namespaces",
    ],
    "filters": [
        "vcctl job list -q research",
        "vcctl job list -S other",
        "vcctl job list --selector rai",
        "vcctl pod list -j train",
        "vcctl pod list -q research",
        "vcctl pod list -j train -q default",
    ],
    "descriptions": [
        "vcctl jobflow describe -N flow",
        "vcctl jobflow describe -N flow -o json",
        "vcctl jobflow describe",
        "vcctl jobtemplate describe -N template",
        "vcctl jobtemplate describe -o xml",
    ],
    "missing": [
        "vcctl job view none",
        "vcctl job suspend none",
        "vcctl job resume none",
        "vcctl job delete none",
        "vcctl job explain none",
        "vcctl queue get none",
        "vcctl queue delete none",
        "vcctl queue operate none -a open",
        "vcctl queue operate none -a update -w 1",
        "vcctl jobflow get none",
        "vcctl jobflow describe none",
        "vcctl jobflow delete none",
        "vcctl jobtemplate get none",
        "vcancel -n none",
        "vjobs -n none",
        "vqueues -n none",
        "vcctl simulate /none",
        "vcctl policy lint /none",
        "vcctl job preview -f /none",
    ],
    "usage": [
        "vcctl jb",
        "vcctl explain",
        "vcctl job list extra",
        "vcctl job list --quue x",
        "vcctl queue create -w heavy",
        "vcctl job view -N",
        "vsub --queue x",
    ],
    "unknown-forms": [
        "vcctl job list -o xml",
        "vcctl job delete train --dry-run=client",
        "vcctl simulate x -o wide",
        "vcctl queue create -n q -S Ajar",
    ],
}
EMPTY = {f"{name}-empty": [line, f"{line} -o json", f"{line} -o name"] for name, line in LISTS.items()}


def furnish(server: FakeApiServer) -> None:
    """A little of everything."""
    train = job("train", queue="research")
    train["spec"]["tasks"][0]["template"]["metadata"] = {}
    done = job("done", phase="Completed")
    done["spec"]["schedulerName"] = "other"
    for kind, objects in {
        kinds.JOBS: [train, done, job("theirs", "team")],
        kinds.QUEUES: [queue("default"), {**queue("research"), "spec": {"weight": 2, "capability": {"cpu": "8"}}}],
        kinds.POD_GROUPS: [pod_group("train", "research", "Running"), pod_group("late", "research", "Pending")],
        kinds.JOB_FLOWS: [
            {"metadata": meta("flow"), "spec": {"flows": [{"name": "a"}]}, "status": {"state": {"phase": "Running"}}},
            {"metadata": meta("theirs", "team"), "spec": {"flows": []}, "status": {"state": {"phase": "Succeed"}}},
        ],
        kinds.JOB_TEMPLATES: [{"metadata": meta("template"), "spec": {"minAvailable": 1}}],
        kinds.PODS: [pod("train-worker-0", "research"), pod("theirs-worker-0", "default", "team")],
    }.items():
        for obj in objects:
            server.put(kind, obj)


def pod(name: str, of_queue: str, namespace: str = "default") -> dict[str, object]:
    """A running pod of a vcjob."""
    labels = {"volcano.sh/job-name": name.partition("-")[0], "volcano.sh/queue-name": of_queue}
    return {
        "metadata": meta(name, namespace, labels=labels),
        "spec": {"containers": [{"name": "c"}], "nodeName": "n0"},
        "status": {"phase": "Running", "containerStatuses": [{"name": "c", "ready": True, "restartCount": 0}]},
    }


async def shown(lines: list[str], server: FakeApiServer) -> str:
    """What the lines print, each with its exit code."""
    parts = []
    for line in lines:
        done = await drive(line, server)
        err = "".join(f"err| {text}\n" for text in done.err.splitlines())
        parts.append(f"$ {line}\n{done.out}{err}exit code {done.code}\n")
    return masked("\n".join(parts))


def masked(text: str) -> str:
    """Without what is different each time, and without blanks at the ends of lines that editors take away."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID", text)
    text = re.sub(r"(abortjob|resumejob|openqueue|closequeue)-\w+", r"\1-SUFFIX", text)
    text = re.sub(r"20(?!26-01-0)\d\d-\d\d-\d\dT[\d:.]+Z", "TIME", text)
    return "".join(f"{line.rstrip(' ')}{'·' if line.endswith(' ') else ''}\n" for line in text.splitlines())


def compare(name: str, text: str) -> None:
    """Hold the text against its file, or write it there when that is asked for."""
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("CLI_RECORD") == "1":
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert text == file.read_text()


@pytest.mark.parametrize("name", GROUPS)
async def test_outputs(server: FakeApiServer, name: str) -> None:
    lines = GROUPS[name]
    if name in CHANGING:
        texts = []
        for line in lines:
            async with FakeApiServer() as fresh:
                furnish(fresh)
                texts.append(await shown([line], fresh))
        compare(name, "\n".join(texts))
        return
    furnish(server)
    compare(name, await shown(lines, server))


@pytest.mark.parametrize("name", EMPTY)
async def test_empty_lists(server: FakeApiServer, name: str) -> None:
    compare(name, await shown(EMPTY[name], server))


async def test_files_of_flows_and_templates(server: FakeApiServer, tmp_path: Path) -> None:
    file = tmp_path / "flows.yaml"
    flow = {"apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobFlow", "spec": {"flows": []}}
    file.write_text(yaml.safe_dump_all({**flow, "metadata": {"name": name}} for name in ("a", "b")))
    template = tmp_path / "template.yaml"
    template.write_text(yaml.safe_dump({**flow, "kind": "JobTemplate", "metadata": {"name": "t"}}))
    lines = [
        f"vcctl jobflow create -f {file} --dry-run=server",
        f"vcctl jobflow create -f {file}",
        f"vcctl jobflow create -f {file}",
        f"vcctl jobflow delete -f {file} --dry-run=server",
        f"vcctl jobflow delete -f {file}",
        f"vcctl jobtemplate create -f {template}",
        "vcctl jobtemplate delete -N t --dry-run=server",
        "vcctl jobtemplate delete -N t",
    ]
    compare("files", (await shown(lines, server)).replace(str(tmp_path), "DIR"))


def leaves(command: Command, path: str) -> Iterator[str]:
    """The lines of all commands that do something."""
    if command.run:
        yield path
    for child in command.children:
        yield from leaves(child, f"{path} {child.name}")


ELSEWHERE = {
    "vcctl top": "test_top.py",
    "vcctl version": "test_vcctl.py",
    "vcctl completion": "test_completion.py",
    "vcctl snapshot": "test_simulating.py",
    "vcctl policy lint": "test_linting.py",
}


def test_every_command_has_a_golden_output() -> None:
    """So that a new command gets one."""
    text = "".join(file.read_text() for file in GOLDEN.glob("*.txt"))
    lines = [
        line for tool in TREES if tool != "kubectl-vc" for line in leaves(TREES[tool], tool) if line not in ELSEWHERE
    ]
    assert [line for line in lines if f"$ {line}" not in text] == []
