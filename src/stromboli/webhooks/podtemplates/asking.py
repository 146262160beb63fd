"""Core validation of pod templates, done by the API server itself (spec 07 section 9.2).

Each distinct template is created once as a PodTemplate in a dry run; the answer is remembered by the template's hash.
The server judges what is in the template and nothing else: what has to do with the namespace (quotas, permissions,
other webhooks) is not the template's fault and is passed over, as is a server that does not answer. The pods themselves
are still judged when they are created.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, Protocol

import orjson

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.kube.errors import ApiError, BadRequest, Invalid, KubeError
from stromboli.webhooks.errors import FieldError, Reason, sentence
from stromboli.webhooks.podtemplates import LocalTemplates
from stromboli.webhooks.shapes import JsonObject

log = logging.getLogger(__name__)

REMEMBERED: Final = 4096
AT_ONCE: Final = 8
DEADLINE_SECONDS: Final = 5.0
"""For all templates of one review: the API server itself waits ten seconds for us."""
PROBE_NAME: Final = "template-under-review"
_REASONS: Final = {reason.value: reason for reason in Reason}
MOST_TEMPLATES: Final = 64
"""Distinct templates of one job that the server is asked about."""


class Server(Protocol):
    """What is needed of a :class:`~stromboli.kube.client.Client`."""

    async def create(self, kind: Kind, obj: JsonObject, *, dry_run: bool) -> JsonObject:
        """Create an object, or say what would come of it. Raises ``KubeError``."""


class AskedTemplates:
    """Judges templates by the local rules and by what the API server has said about them."""

    def __init__(self, server: Server, local: LocalTemplates) -> None:
        self._server = server
        self._local = local
        self._answers: OrderedDict[str, tuple[FieldError, ...]] = OrderedDict()
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def ask(self, namespace: str, templates: Iterable[JsonObject]) -> None:
        """Have the API server look at the templates that it has not seen; afterwards :meth:`faults` knows its answers.

        Never raises for a server that fails or is slow: the local rules then stand alone.
        """
        unknown = {digest: template for template in templates if (digest := _digest(template)) not in self._answers}
        try:
            async with asyncio.timeout(DEADLINE_SECONDS), asyncio.TaskGroup() as group:
                for digest, template in list(unknown.items())[:MOST_TEMPLATES]:
                    group.create_task(self._ask(digest, namespace, template))
        except TimeoutError:
            log.warning("the API server did not judge a pod template within %g s; local rules only", DEADLINE_SECONDS)

    def faults(self, name: str, namespace: str, template: JsonObject) -> list[FieldError]:
        """The faults by the local rules or, where these find none, those the API server has named."""
        faults = self._local.faults(name, namespace, template)
        return faults or list(self._answers.get(_digest(template), ()))

    async def _ask(self, digest: str, namespace: str, template: JsonObject) -> None:
        if self._local.faults(PROBE_NAME, namespace, template):
            return
        async with self._slots:
            answer = await self._judgement(namespace, template)
        if answer is not None:
            self._answers[digest] = answer
            while len(self._answers) > REMEMBERED:
                self._answers.popitem(last=False)

    async def _judgement(self, namespace: str, template: JsonObject) -> tuple[FieldError, ...] | None:
        """What the server says; ``None`` where it says nothing about the template itself."""
        metadata = {"generateName": f"{PROBE_NAME}-", "namespace": namespace}
        probe = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": metadata, "template": template}
        try:
            await self._server.create(kinds.POD_TEMPLATES, probe, dry_run=True)
        except Invalid as error:
            return tuple(_faults(error))
        except BadRequest as error:
            # A value of the wrong type: the server cannot even read the template.
            return (sentence("template", f"template: {error}"),)
        except KubeError as error:
            log.warning("a pod template could not be judged by the API server, local rules only: %s", error)
            return None
        return ()


def _faults(error: ApiError) -> Iterable[FieldError]:
    """The causes that lie in the template; those of the probe around it are ours, not the user's."""
    for cause in error.causes:
        field, message = str(cause.get("field", "")), str(cause.get("message", ""))
        if field.startswith("template"):
            yield sentence(field, f"{field}: {message}", _reason(str(cause.get("reason", ""))))


def _reason(text: str) -> Reason:
    return _REASONS.get(text, Reason.INVALID)


def _digest(template: JsonObject) -> str:
    return hashlib.sha256(orjson.dumps(template, option=orjson.OPT_SORT_KEYS)).hexdigest()
