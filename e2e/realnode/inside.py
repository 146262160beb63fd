"""Inside the namespaces: control plane, nodes, images, the chart, the suite.

Nothing here cleans up. This process is the first of its process namespace: when it ends, or is killed, the kernel ends
all others, and the other namespaces after them.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from e2e.realcluster.cluster import is_usable
from e2e.realcluster.controlplane import START_SECONDS, ControlPlane
from e2e.realnode import configurations, confinement, leftovers
from e2e.realnode.addresses import CONTROL, NodeAddresses
from e2e.realnode.images import WORKLOAD
from e2e.realnode.nodes import Node
from e2e.realnode.releasing import Helm
from e2e.realnode.surroundings import NAMESPACES_FILE, VARIABLE, Settings, Surroundings
from stromboli.api.kinds import NODES
from stromboli.kube.client import Client

PROJECT = Path(__file__).parents[2]
SUITE = PROJECT / "e2e" / "node"
NODE_COUNT = 2
API_SERVER = [
    f"--advertise-address={CONTROL}",
    # Webhooks are called at the addresses of their pods, as where the API server is no pod.
    "--enable-aggregator-routing=true",
]


class Site:
    """Control plane and nodes of one run."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.addresses = [NodeAddresses(number) for number in range(1, NODE_COUNT + 1)]
        more = {"kube-apiserver": API_SERVER}
        self.control = ControlPlane(settings.directory, settings.programs, host=CONTROL, more=more)
        self.nodes = [Node(addresses, settings, kubeconfig=self.control.kubeconfig) for addresses in self.addresses]

    async def start(self) -> None:
        """Start everything; returns when all nodes are Ready."""
        async with timed("control plane and containerd with its images"):
            await asyncio.gather(
                self.control.start(), *(node.run_containers(WORKLOAD, self.settings.archives) for node in self.nodes)
            )
        async with timed("nodes"):
            await asyncio.gather(self._start_services(), *(node.join() for node in self.nodes))
            async with await Client.connect(kubeconfig=str(self.control.kubeconfig), qps=0) as client:
                await self.nodes[0].until(lambda: self._ready(client), within=START_SECONDS)

    def check(self) -> None:
        """Raises DaemonError when a program has ended by itself."""
        self.control.check()
        for node in self.nodes:
            node.check()

    async def _start_services(self) -> None:
        """Scheduling of what is no job, Services' addresses, and names."""
        directory, kubeconfig = self.settings.directory, self.control.kubeconfig
        (directory / "kube-proxy.json").write_text(json.dumps(configurations.proxy(kubeconfig)))
        (directory / "Corefile").write_text(configurations.names(kubeconfig))
        leader = ["--leader-elect=false", "--secure-port=0"]
        await self.control.run("kube-scheduler", [f"--kubeconfig={kubeconfig}", *leader])
        name = f"--hostname-override={self.addresses[0].name}"
        await self.control.run("kube-proxy", [f"--config={directory / 'kube-proxy.json'}", name])
        await self.control.run(
            "coredns",
            ["-conf", directory / "Corefile"],
            health=f"http://{CONTROL}:{configurations.NAMES_READY_PORT}/ready",
        )

    async def _ready(self, client: Client) -> bool:
        nodes = await client.list(NODES)
        return len(nodes) == NODE_COUNT and all(is_usable(node) for node in nodes)


async def main(settings: Settings) -> int:
    """The whole of it; answers the exit code of the suite."""
    written = settings.directory / NAMESPACES_FILE
    written.write_text(json.dumps(sorted(leftovers.namespaces_of("self"))))
    site = Site(settings)
    await confinement.cover(settings.directory)
    await confinement.connect(site.addresses)
    await site.start()
    async with timed("helm install --wait"):
        await Helm(settings.programs["helm"], site.control.kubeconfig).install()
    surroundings = _write_surroundings(site)
    if settings.keep:
        say(f"ready: KUBECONFIG={site.control.kubeconfig} {VARIABLE}={surroundings}; Ctrl-C ends it")
        await asyncio.Event().wait()
    environment = {
        **os.environ,
        VARIABLE: str(surroundings),
        "E2E_KUBECONFIG": str(site.control.kubeconfig),
        "E2E_RUNNING": "1",
    }
    async with timed("the suite"):
        code = await _suite(environment, settings.pytest)
    site.check()
    return code


def _write_surroundings(site: Site) -> Path:
    path = site.settings.directory / "surroundings.json"
    Surroundings(
        directory=site.settings.directory,
        kubeconfig=site.control.kubeconfig,
        audit_log=site.control.audit_log,
        programs=site.settings.programs,
        nodes=[node.name for node in site.nodes],
        workload_image=WORKLOAD,
    ).write(path)
    return path


async def _suite(environment: Mapping[str, str], arguments: Sequence[str]) -> int:
    command = [sys.executable, "-m", "pytest", *(arguments or [str(SUITE)])]
    process = await asyncio.create_subprocess_exec(*command, env=environment, cwd=PROJECT)
    return await process.wait()


@asynccontextmanager
async def timed(what: str) -> AsyncIterator[None]:
    """Say how long the block took."""
    started = time.monotonic()
    yield
    say(f"{what}: {time.monotonic() - started:.0f} s")


def say(line: str) -> None:
    """Tell the user what happens."""
    print(f"e2e-node: {line}", flush=True)


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(main(Settings.read(Path(sys.argv[1])))))
    except Exception as error:
        if not getattr(error, "for_user", False):
            raise
        print(f"e2e-node: error: {error}", file=sys.stderr)
        sys.exit(1)
