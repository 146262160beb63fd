"""Objects and requests as tests of admission need them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import orjson

from stromboli.webhooks import reviews
from stromboli.webhooks.context import Context, KnownCluster, Settings
from stromboli.webhooks.endpoints import BY_PATH
from stromboli.webhooks.podtemplates import LocalTemplates
from stromboli.webhooks.reviews import Request, Verdict
from stromboli.webhooks.shapes import JsonObject, Queue, read

T = TypeVar("T")


def container(name: str = "main", **members: Any) -> JsonObject:
    """A container that is accepted."""
    return {"name": name, "image": "busybox:1.36", **members}


def template(**spec: Any) -> JsonObject:
    """A pod template with one container unless ``containers`` says otherwise."""
    return {"spec": {"containers": [container()], **spec}}


def task(name: str = "worker", replicas: int = 1, **members: Any) -> JsonObject:
    """A task that is accepted."""
    return {"name": name, "replicas": replicas, "template": template(), **members}


def job(*tasks: JsonObject, name: str = "sample", **spec: Any) -> JsonObject:
    """A job in queue ``default`` that is accepted."""
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"queue": "default", "minAvailable": 1, "tasks": list(tasks or (task(),)), **spec},
    }


def queue(name: str, *, state: str = "Open", allocated: Mapping[str, Any] | None = None, **spec: Any) -> JsonObject:
    """A queue as it is stored."""
    return {
        "metadata": {"name": name},
        "spec": {"weight": 1, **spec},
        "status": {"state": state, "allocated": dict(allocated or {})},
    }


def cluster(*queues: JsonObject, **namespaces: Mapping[str, str]) -> KnownCluster:
    """A cluster with queue ``default`` and those given; namespaces with their annotations."""
    found = [read(Queue, obj) for obj in (queue("default"), *queues)]
    return KnownCluster({item.name: item for item in found}, namespaces)


def request(
    path: str,
    obj: JsonObject | None,
    old: JsonObject | None = None,
    *,
    operation: str = "",
    name: str = "",
    namespace: str = "team",
) -> JsonObject:
    """``request`` of a review for an endpoint."""
    kind = BY_PATH[path].kind
    return {
        "uid": "9f4c",
        "operation": operation or ("UPDATE" if old else "CREATE"),
        "resource": {"group": kind.group, "version": kind.version, "resource": kind.plural},
        "name": name or ((obj or {}).get("metadata") or {}).get("name", ""),
        "namespace": namespace if kind.namespaced else "",
        "object": obj,
        "oldObject": old,
    }


def review(content: Any) -> bytes:
    """The bytes of a review with this request."""
    return orjson.dumps({"apiVersion": reviews.API_VERSION, "kind": reviews.KIND, "request": content})


def decide(
    path: str,
    obj: JsonObject | None,
    old: JsonObject | None = None,
    *,
    known: KnownCluster | None = None,
    settings: Settings | None = None,
    groups: Any = None,
    operation: str = "",
    name: str = "",
) -> Verdict:
    """The verdict on an object that went through bytes."""
    asked = reviews.parse(review(request(path, obj, old, operation=operation, name=name)))
    return reviews.decide(BY_PATH[path], asked, context_of(asked, known, settings, groups))


async def eventually(condition: Callable[[], Awaitable[T]]) -> T:
    """The condition's first true outcome; the test's time-out is the deadline."""
    while not (outcome := await condition()):  # noqa: ASYNC110 - there is no event for what the other side does
        await asyncio.sleep(0.01)
    return outcome


def context_of(
    asked: Request, known: KnownCluster | None = None, settings: Settings | None = None, groups: Any = None
) -> Context:
    """What a decision may look at."""
    return Context(
        operation=asked.operation,
        name=asked.name,
        namespace=asked.namespace,
        settings=settings or Settings(),
        cluster=known or cluster(),
        templates=LocalTemplates(),
        groups=groups,
    )
