"""Calls the webhooks of a write: mutating ones in turn, validating ones all at once."""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Sequence

import orjson

from stromboli.localcluster.admission.webhooks import conditions
from stromboli.localcluster.admission.webhooks.calling import Caller, CallFailed
from stromboli.localcluster.admission.webhooks.matching import Hook, hooks, matching
from stromboli.localcluster.admission.webhooks.reviews import (
    InvalidReview,
    Verdict,
    patched,
    question,
    refusal,
    verdict,
)
from stromboli.localcluster.extending import AdmissionRequest
from stromboli.localcluster.statuses import StatusError, bad_request, internal
from stromboli.localcluster.storage import Object, Store

log = logging.getLogger(__name__)


class WebhookDispatcher:
    """The webhooks' part of admission."""

    def __init__(self, store: Store, caller: Caller) -> None:
        self._store = store
        self._caller = caller

    async def mutate(self, request: AdmissionRequest) -> None:
        """Run the mutating webhooks in order, and those that want it again when later ones changed the object."""
        found = hooks("mutating", self._store)
        left: dict[int, Object | None] = {}
        for number, hook in enumerate(found):
            if any(matching(request, [hook], self._store)) and await self._mutate_once(hook, request):
                left[number] = copy.deepcopy(request.obj) if hook.may_run_again else None
        for number, seen in left.items():
            if found[number].may_run_again and request.obj != seen:
                await self._mutate_once(found[number], request)

    async def validate(self, request: AdmissionRequest) -> None:
        """Ask all validating webhooks; the first refusal in their order is the answer."""
        concerned = list(matching(request, hooks("validating", self._store), self._store))
        if not concerned:
            return
        for error in await self._refusals(concerned, request):
            if error is not None:
                raise error

    async def _refusals(self, concerned: Sequence[Hook], request: AdmissionRequest) -> list[StatusError | None]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._refusal(hook, request)) for hook in concerned]
        return [task.result() for task in tasks]

    async def _refusal(self, hook: Hook, request: AdmissionRequest) -> StatusError | None:
        try:
            await self._ask(hook, request)
        except StatusError as error:
            return error
        return None

    async def _mutate_once(self, hook: Hook, request: AdmissionRequest) -> bool:
        answer = await self._ask(hook, request)
        if answer is None:
            return False
        if answer.patch and request.obj is not None:
            try:
                request.obj = patched(request.obj, answer.patch)
            except InvalidReview as error:
                if not hook.ignores_failures:
                    raise internal(str(error)) from error
                log.warning("webhook %s: patch not applied: %s", hook.name, error)
        return True

    async def _ask(self, hook: Hook, request: AdmissionRequest) -> Verdict | None:
        """The webhook's agreement; None when it is passed over. Raises its refusal, or that it could not be asked."""
        try:
            if not conditions.hold(hook.spec.get("matchConditions") or (), request):
                return None
            if request.dry_run and not hook.supports_dry_run:
                raise bad_request(f'admission webhook "{hook.name}" does not support dry run')
            review = question(request)
            answer = verdict(await self._caller.call(hook, orjson.dumps(review)), review["request"]["uid"])
        except (CallFailed, InvalidReview, conditions.ConditionError) as error:
            failure = f'failed calling webhook "{hook.name}": {_described(error)}'
            if not hook.ignores_failures:
                raise internal(failure) from error
            log.warning("%s (ignored by its failurePolicy)", failure)
            return None
        for warning in answer.warnings:
            request.warn(str(warning))
        if not answer.allowed:
            raise refusal(hook.name, answer.status)
        return answer


def _described(error: Exception) -> str:
    if isinstance(error, CallFailed):
        return f"failed to call webhook: {error}"
    if isinstance(error, InvalidReview):
        return f"received invalid webhook response: {error}"
    return str(error)
