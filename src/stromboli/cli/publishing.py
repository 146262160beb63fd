"""The policy of a stack of this machine, put where ``vcctl`` looks for the policy of a cluster.

The chart keeps the scheduler's policy file in a ConfigMap; the scheduler of ``stromboli up`` reads a file of this
machine, or has the built-in policy. Without the ConfigMap, ``vcctl job explain`` would have to guess.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from stromboli.api.kinds import CONFIG_MAPS
from stromboli.cli.commanding.api import Api
from stromboli.cli.commanding.kubeconfig import find
from stromboli.kube.errors import KubeError, NotFound
from stromboli.kube.json import JsonObject
from stromboli.scheduler.core.policy import DEFAULT_POLICY, PolicyError
from stromboli.scheduler.core.policy_file import parse, render

NAMED = "volcano-system/volcano-scheduler-configmap"
"""Where ``vcctl`` looks (``rehearsing.policies``, which takes long to load)."""
KEY = "volcano-scheduler.conf"


class Publisher:
    """Writes the policy down, and again when the file has changed; one that cannot be used is not in force either."""

    def __init__(self, kubeconfig: Path, file: Path | None) -> None:
        self._kubeconfig = kubeconfig
        self._file = file
        self._seen: str | None = None

    async def publish(self) -> str:
        """Write down a policy that has not been seen yet; answers what went wrong, empty when nothing did."""
        try:
            content = self._file.read_text(encoding="utf-8") if self._file else render(DEFAULT_POLICY)
        except (OSError, UnicodeDecodeError):
            return ""  # the scheduler goes on with what it has, and so does the ConfigMap
        if content == self._seen:
            return ""
        self._seen = content
        try:
            await asyncio.to_thread(self._write, content)
        except KubeError as error:
            return f"vcctl does not know the policy: it could not be written down: {error}"
        return ""

    def _write(self, content: str) -> None:
        from stromboli.cli.rehearsing.policies import known

        try:
            parse(content, known())
        except PolicyError:
            return
        namespace, name = NAMED.split("/")
        with Api(find(str(self._kubeconfig), "", {})) as api:
            try:
                present = api.get(CONFIG_MAPS, name, namespace).get("data") or {}
            except NotFound:
                api.create(CONFIG_MAPS, _config_map(name, content), namespace)
            else:
                gone: JsonObject = dict.fromkeys(present)
                api.merge(CONFIG_MAPS, name, {"data": {**gone, KEY: content}}, namespace)


def _config_map(name: str, content: str) -> JsonObject:
    return {
        "apiVersion": CONFIG_MAPS.api_version,
        "kind": CONFIG_MAPS.kind,
        "metadata": {"name": name},
        "data": {KEY: content},
    }
