"""The suite on a cluster that is there already (``E2E_KUBECONFIG``), and that is left as it was found.

The chart's definitions, roles and webhook configurations go into it, and the three processes run on this machine under
their ServiceAccounts, as with a control plane of our own. That needs an API server that can call this machine; where
the system is installed already, ``E2E_RUNNING=1`` runs the suite against it and installs nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from e2e.realcluster import binaries, installing, kubeconfigs, reaching, suites
from e2e.realcluster.cluster import NODE_ANNOTATION
from e2e.realcluster.rendering import Release, Values, render
from stromboli.api import kinds
from stromboli.kube.client import Client
from stromboli.kube.json import JsonObject

VARIABLE, RUNNING = "E2E_KUBECONFIG", "E2E_RUNNING"
APPS = frozenset({"volcano-scheduler", "volcano-controller", "volcano-admission"})

Say = Callable[[str], None]


class Occupied(Exception):
    """Volcano or Stromboli runs in the cluster; the text says where, and the next step."""

    for_user = True


@dataclass(frozen=True, slots=True)
class BorrowedCluster:
    """Where the cluster is, and at which address of this machine its API server finds our webhooks."""

    directory: Path
    kubeconfig: Path
    host: str


async def run(kubeconfig: Path, release: Release, values: Values, arguments: Sequence[str], say: Say) -> int:
    """Install, run the suite, take away what was installed; answers the exit code.

    Raises:
        Occupied, NotReachable, KubeconfigError: the cluster cannot be used like this.
    """
    running = os.environ.get(RUNNING) == "1"
    async with await Client.connect(kubeconfig=str(kubeconfig), qps=0) as client:
        arguments = suites.chosen(expression(await client.list(kinds.NODES), own_processes=not running), arguments)
        if running:
            return await suites.run_pytest(arguments, {**os.environ, VARIABLE: str(kubeconfig)})
        require_free(await client.list(kinds.DEPLOYMENTS))
        host = reaching.address_towards(kubeconfigs.server(kubeconfig))
        await reaching.check(client, host)
    found = await binaries.provide(["helm"], say)
    objects = await render(found["helm"], release, values)
    directory = Path(tempfile.mkdtemp(prefix="stromboli-e2e-"))
    code = await _installed(BorrowedCluster(directory, kubeconfig, host), objects, release, arguments, say)
    if code == 0:
        shutil.rmtree(directory)
    say("whether the roles are more than the processes use is only judged with a control plane of our own")
    return code


async def _installed(
    cluster: BorrowedCluster, objects: Sequence[JsonObject], release: Release, arguments: Sequence[str], say: Say
) -> int:
    created: list[JsonObject] = []
    try:
        installation = await installing.install(cluster, objects, release, created)
        processes = cluster.directory / "processes.json"
        processes.write_text(json.dumps(installation.arguments))
        say(f"installed into {kubeconfigs.server(cluster.kubeconfig)}; the processes run here, at {cluster.host}")
        environment = {**os.environ, **installation.environment, VARIABLE: str(cluster.kubeconfig)}
        return await suites.run_pytest(arguments, {**environment, "E2E_PROCESSES": str(processes)})
    finally:
        await installing.take_away(cluster.kubeconfig, created)
        say(f"took away the {len(created)} objects that were not there before")


def expression(nodes: Sequence[JsonObject], *, own_processes: bool) -> str:
    """pytest's ``-m``: what can run on these nodes, and with or without processes of our own."""
    ((key, value),) = NODE_ANNOTATION.items()
    simulated = nodes and all(node["metadata"].get("annotations", {}).get(key) == value for node in nodes)
    left_out = [*([] if simulated else ["simulated_nodes"]), *([] if own_processes else ["own_processes"])]
    return " and ".join(f"not {marker}" for marker in left_out)


def require_free(deployments: Sequence[JsonObject]) -> None:
    """Two schedulers of the same name would both place pods.

    Raises:
        Occupied: a Deployment of Volcano's or ours is there.
    """
    for item in deployments:
        labels = item["spec"]["template"]["metadata"].get("labels") or {}
        if labels.get("app") in APPS and item["spec"].get("replicas", 1):
            name = f"{item['metadata']['namespace']}/{item['metadata']['name']}"
            raise Occupied(
                f"Volcano or Stromboli runs in the cluster already (Deployment {name}): run the suite against it with "
                f"{RUNNING}=1, or uninstall it"
            )
