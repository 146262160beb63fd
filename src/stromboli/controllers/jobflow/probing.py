"""Asking pods on the network whether they are ready for the next step.

Requests go to the address that the kubelet reports for the pod, follow no redirects and do not read the answer's body.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TypeAlias

import aiohttp

from stromboli.api import names
from stromboli.api.core import Pod
from stromboli.api.phases import PodPhase
from stromboli.controllers.jobflow.conditions import Question

TIMEOUT = 3.0
MOST_AT_ONCE = 32
Ask: TypeAlias = Callable[[Question, str], Awaitable[bool]]
"""Puts a question to the pod at an address. Never raises."""


async def ask(question: Question, address: str) -> bool:
    """Whether the pod at ``address`` answers within three seconds, HTTP with a status from 200 to 399."""
    try:
        async with asyncio.timeout(TIMEOUT):
            return await (_connects(question, address) if question.path is None else _serves(question, address))
    except (OSError, TimeoutError, ValueError, OverflowError, aiohttp.ClientError):
        return False


async def _connects(question: Question, address: str) -> bool:
    _, writer = await asyncio.open_connection(address, question.port)
    writer.close()
    return True


async def _serves(question: Question, address: str) -> bool:
    host = f"[{address}]" if ipaddress.ip_address(address).version == 6 else address
    path = "/" + (question.path or "").lstrip("/")
    headers = dict([question.header]) if question.header else {}
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://{host}:{question.port}{path}", headers=headers, allow_redirects=False) as answer,
    ):
        return 200 <= answer.status < 400


class Prober:
    """Puts questions to all pods that they concern, a bounded number at a time."""

    def __init__(self, ask: Ask = ask) -> None:
        self._ask = ask
        self._slots = asyncio.Semaphore(MOST_AT_ONCE)

    async def answers(self, questions: Collection[Question], pods: Mapping[str, Sequence[Pod]]) -> dict[Question, bool]:
        """An answer to each question that there is somebody to ask about; ``pods`` are those of each job."""
        asked = {one: _concerned(one, pods.get(one.job, ())) for one in dict.fromkeys(questions)}
        asked = {one: found for one, found in asked.items() if found}
        results = await asyncio.gather(*(self._all(one, found) for one, found in asked.items()))
        return dict(zip(asked, results, strict=True))

    async def _all(self, question: Question, pods: Sequence[Pod]) -> bool:
        if any(pod.status.phase != PodPhase.RUNNING or not pod.status.pod_ip for pod in pods):
            return False
        return all(await asyncio.gather(*(self._one(question, pod.status.pod_ip) for pod in pods)))

    async def _one(self, question: Question, address: str) -> bool:
        async with self._slots:
            return await self._ask(question, address)


def _concerned(question: Question, pods: Sequence[Pod]) -> list[Pod]:
    """Pods of the task that have not ended and are not ending."""
    ended = (PodPhase.SUCCEEDED, PodPhase.FAILED)
    return [
        pod
        for pod in pods
        if question.task in ("", pod.metadata.annotations.get(names.TASK_SPEC))
        and pod.status.phase not in ended
        and not pod.deleting
    ]
