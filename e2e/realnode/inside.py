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

from e2e.realcluster import auditing, suites
from e2e.realcluster.cluster import is_usable
from e2e.realcluster.controlplane import START_SECONDS, ControlPlane
from e2e.realcluster.rendering import Release, render
from e2e.realnode import configurations, confinement, leftovers
from e2e.realnode.addresses import CONTROL, NodeAddresses
from e2e.realnode.images import WORKLOAD
from e2e.realnode.nodes import Node
from e2e.realnode.releasing import Helm
from e2e.realnode.surroundings import KEPT, NAMESPACES_FILE, VARIABLE, Settings, Surroundings
from stromboli.api.kinds import NODES
from stromboli.kube.client import Client
from stromboli.kube.json import JsonObject

PROJECT = Path(__file__).parents[2]
SUITE = PROJECT / "e2e" / "node"
NODE_COUNT = 2
WATCH_SECONDS = 0.5
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
        self.control = ControlPlane(settings.volatile, settings.programs, host=CONTROL, more=more)
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

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """A block that ends at once when a program ends by itself: nothing good would come after that.

        Raises:
            DaemonError: names the program and shows the end of its log.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                watch = tasks.create_task(self._watch())
                yield
                watch.cancel()
        except ExceptionGroup as group:
            raise group.exceptions[0] from group

    async def _watch(self) -> None:
        while True:
            self.control.check()
            for node in self.nodes:
                node.check()
            await asyncio.sleep(WATCH_SECONDS)

    async def _start_services(self) -> None:
        """Scheduling of what is no job, Services' addresses, and names."""
        directory, kubeconfig = self.settings.volatile, self.control.kubeconfig
        (directory / "kube-proxy.json").write_text(json.dumps(configurations.proxy(kubeconfig)))
        (directory / "Corefile").write_text(configurations.names(kubeconfig))
        leader = ["--leader-elect=false", "--secure-port=0"]
        await self.control.run("kube-scheduler", [f"--kubeconfig={kubeconfig}", *leader])
        proxy = [f"--config={directory / 'kube-proxy.json'}", f"--hostname-override={self.addresses[0].name}"]
        healthy = f"http://127.0.0.1:{configurations.PROXY_HEALTH_PORT}/livez"
        await self.control.run("kube-proxy", proxy, health=healthy)
        ready = f"http://{CONTROL}:{configurations.NAMES_READY_PORT}/ready"
        await self.control.run("coredns", ["-conf", directory / "Corefile"], health=ready)

    async def _ready(self, client: Client) -> bool:
        nodes = await client.list(NODES)
        return len(nodes) == NODE_COUNT and all(is_usable(node) for node in nodes)


async def main(settings: Settings) -> int:
    """The whole of it; answers the exit code of the suite."""
    written = settings.directory / NAMESPACES_FILE
    written.write_text(json.dumps(sorted(leftovers.namespaces_of("self"))))
    site = Site(settings)
    await confinement.cover(settings.volatile)
    _keep_logs(settings)
    await confinement.connect(site.addresses)
    await site.start()
    surroundings = _write_surroundings(site)
    async with timed("helm install --wait"), site.watched():
        await Helm(settings.programs["helm"], site.control.kubeconfig).install()
    if settings.keep:
        say(f"ready: KUBECONFIG={site.control.kubeconfig} {VARIABLE}={surroundings}; Ctrl-C ends it")
        async with site.watched():
            await asyncio.Event().wait()
    environment = {
        **os.environ,
        VARIABLE: str(surroundings),
        # Containers see the tests' temporary files, which end with the rest.
        "TMPDIR": str(settings.volatile),
        "E2E_KUBECONFIG": str(site.control.kubeconfig),
        "E2E_RUNNING": "1",
    }
    async with timed("the suite"), site.watched():
        code = await _suite(environment, settings.pytest)
    objects = await render(settings.programs["helm"], Release(), {}, crds=False)
    forbidden = _forbidden(site.control.audit_log, objects)
    for line in forbidden:
        say(f"forbidden: {line}; the chart's roles lack it")
    return code or (1 if forbidden else 0)


def _forbidden(audit_log: Path, objects: Sequence[JsonObject]) -> tuple[str, ...]:
    """What the chart's processes were not allowed to do by the roles that the chart gives them."""
    with audit_log.open() as log:
        return auditing.check(log, objects, Release().namespace, {}).forbidden


def _keep_logs(settings: Settings) -> None:
    """Logs outlast the rest, which is in memory."""
    for name in KEPT:
        (settings.volatile / name).symlink_to(settings.directory / name)


def _write_surroundings(site: Site) -> Path:
    path = site.settings.volatile / "surroundings.json"
    Surroundings(
        kubeconfig=site.control.kubeconfig,
        audit_log=site.control.audit_log,
        programs=site.settings.programs,
        nodes=[node.name for node in site.nodes],
        workload_image=WORKLOAD,
    ).write(path)
    return path


async def _suite(environment: Mapping[str, str], arguments: Sequence[str]) -> int:
    command = [sys.executable, "-m", "pytest", *suites.chosen("", arguments, SUITE)]
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
    sys.exit(suites.exit_code("e2e-node", main(Settings.read(Path(sys.argv[1])))))
