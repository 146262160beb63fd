"""Launchers that log in to workers with ssh, each in a container of its own."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from e2e.cluster import COMPLETE, Cluster, eventually
from e2e.node.kubectl import Kubectl
from e2e.node.roles import PATIENCE, Role, lines, team
from e2e.node.workloads import Workloads
from stromboli.api.kinds import JOBS, SECRETS

SERVE = "ssh-keygen -A && exec /usr/sbin/sshd -D -e -p {port}"
LOG_IN = """\
for host in $({hosts}); do
  # A worker's server may start later than this.
  until name=$(ssh -o BatchMode=yes $host hostname); do sleep 0.2; done
  echo "$host is $name"
done
"""
FROM_FILE = "cat /etc/volcano/mpiworker.host"


@dataclass(frozen=True)
class Case:
    """What a job asks for, how its launcher learns of its workers, and by what names."""

    plugins: dict[str, list[str]]
    hosts: str = FROM_FILE
    want_names: list[str] = field(default_factory=lambda: ["gang-mpiworker-0.gang", "gang-mpiworker-1.gang"])
    port: int = 22


CASES = {
    "by the file of svc": Case({"ssh": [], "svc": []}),
    "by the variable of mpi, which brings ssh and svc along": Case(
        {"mpi": ["--master=mpimaster", "--worker=mpiworker"]}, hosts="echo $MPI_HOST | tr , ' '"
    ),
    "by short names that ssh's configuration knows, on another port": Case(
        {"ssh": ["--ssh-port=2222"], "svc": []},
        hosts=f"cut -d . -f 1 {FROM_FILE.removeprefix('cat ')}",
        want_names=["gang-mpiworker-0", "gang-mpiworker-1"],
        port=2222,
    ),
}


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
    arrivals = [line for line in await lines(kubectl, "gang-mpimaster-0") if " is " in line]
    assert arrivals == [f"{name} is gang-mpiworker-{index}" for index, name in enumerate(case.want_names)]
    await eventually(
        lambda: cluster.client.list(SECRETS, cluster.namespace), lambda seen: not seen, what="the keys are gone"
    )
