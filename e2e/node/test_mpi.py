"""Launchers that log in to workers with ssh, each in a container of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from e2e.cluster import COMPLETE, Cluster, eventually
from e2e.node.kubectl import Kubectl
from e2e.node.roles import PATIENCE, Role, lines, team
from e2e.node.workloads import Workloads
from stromboli.api.kinds import JOBS, SECRETS

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "distributed-jobs.md"
# Strict as sshd is by itself: it refuses keys in files and directories that others may write to.
SERVE = "ssh-keygen -A && exec /usr/sbin/sshd -D -e -o StrictModes=yes -p {port}"
LOG_IN = """\
for host in $({hosts}); do
  # A worker's server may start later than this.
  until name=$(ssh -o BatchMode=yes $host hostname); do sleep 0.2; done
  echo "$host is $name"
done
"""
WORKERS = "/etc/volcano/mpiworker.host"


@dataclass(frozen=True)
class Case:
    """What a job asks for, how its launcher learns of its workers, and by what names."""

    plugins: dict[str, list[str]]
    hosts: str = f"cat {WORKERS}"
    want_names: list[str] = field(default_factory=lambda: ["gang-mpiworker-0.gang", "gang-mpiworker-1.gang"])
    port: int = 22


CASES = {
    "by the file of svc": Case({"ssh": [], "svc": []}),
    "by short names that ssh's configuration knows, on another port": Case(
        {"ssh": ["--ssh-port=2222"], "svc": []},
        hosts=f"cut -d . -f 1 {WORKERS}",
        want_names=["gang-mpiworker-0", "gang-mpiworker-1"],
        port=2222,
    ),
}


async def arrivals(kubectl: Kubectl, master: str) -> list[str]:
    """What a master says of the workers that it has been to; ssh says more than that."""
    return [line for line in await lines(kubectl, master) if " is " in line]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_the_master_logs_in_to_each_worker_without_being_asked(
    cluster: Cluster, kubectl: Kubectl, workloads: Workloads, case: Case
) -> None:
    roles = {
        "mpimaster": Role(LOG_IN.format(hosts=case.hosts), policies=[COMPLETE]),
        "mpiworker": Role(SERVE.format(port=case.port), replicas=2),
    }
    await cluster.create(JOBS, team(workloads, "gang", roles, case.plugins))

    done = await cluster.phase_is("gang", "Completed", within=PATIENCE)
    assert done["status"]["succeeded"] == 1, "the master alone; workers serve until they are ended"
    assert await arrivals(kubectl, "gang-mpimaster-0") == [
        f"{name} is gang-mpiworker-{index}" for index, name in enumerate(case.want_names)
    ]
    await eventually(
        lambda: cluster.client.list(SECRETS, cluster.namespace), lambda seen: not seen, what="the keys are gone"
    )


async def test_the_guides_job_logs_in_to_the_hosts_that_mpi_names(
    cluster: Cluster, kubectl: Kubectl, workloads: Workloads
) -> None:
    """It asks for ``mpi`` alone, which brings ``ssh`` and ``svc`` along."""
    (text,) = re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)
    await cluster.create(JOBS, workloads.on(yaml.safe_load(text)))

    done = await cluster.phase_is("hello", "Completed", within=PATIENCE)
    assert done["status"]["succeeded"] == 1
    assert await arrivals(kubectl, "hello-launcher-0") == [
        f"hello-worker-{index}.hello is hello-worker-{index}" for index in range(2)
    ]
