"""``pods/log``: what a simulated container would have printed.

That is the output of ``echo`` commands where they can be read off the command line, and otherwise one line that says
what the container is. ``follow`` streams until the container ends.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping

from stromboli.api import kinds
from stromboli.localcluster import clock
from stromboli.localcluster.extending import Answer, SubresourceRequest
from stromboli.localcluster.nodes.lifecycles import output
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.statuses import StatusError, bad_request
from stromboli.localcluster.storage import Gone, Key, Object

LOOK_SECONDS = 0.25
"""Between two looks whether a client that follows is still there."""

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"


class Logs:
    """Serves logs."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def __call__(self, request: SubresourceRequest) -> Answer:
        """The log of one container, as text."""
        query = request.query
        for number in ("tailLines", "limitBytes", "sinceSeconds"):
            _require_integer(query.get(number, ""))
        pod = self._registry.read(kinds.PODS, request.namespace, request.name).object
        container = chosen_container(pod, query.get("container", ""))
        previous = query.get("previous") in ("true", "1")
        state = _state(pod, container, previous=previous)
        lines = list(_stamped(pod, container, state, query))
        if query.get("tailLines", "").isdigit():
            count = int(query["tailLines"])
            lines = lines[-count:] if count else []
        limit = int(query["limitBytes"]) if query.get("limitBytes", "").isdigit() else None
        follow = query.get("follow") in ("true", "1") and "running" in state
        text = "".join(line + "\n" for line in lines).encode()[:limit]
        return Answer(self._stream(request, pod["metadata"]["uid"], container, text, follow), 200, "text/plain")

    async def _stream(
        self, request: SubresourceRequest, uid: str, container: str, text: bytes, follow: bool
    ) -> AsyncGenerator[bytes, None]:
        """The text; an empty piece now and then while there is nothing new, for looking whether somebody reads on."""
        if text:
            yield text
        if not follow:
            return
        watch = self._registry.watch(kinds.PODS, request.namespace)
        while self._runs(request.namespace, request.name, uid, container):
            try:
                await watch.batch(timeout=LOOK_SECONDS)
            except Gone:
                watch = self._registry.watch(kinds.PODS, request.namespace)
            yield b""

    def _runs(self, namespace: str, name: str, uid: str, container: str) -> bool:
        stored = self._registry.store.get(Key.of(kinds.PODS, namespace, name))
        if stored is None or stored.object["metadata"]["uid"] != uid:
            return False
        status = _status(stored.object, container)
        return "running" in (status.get("state") or {})


def _require_integer(text: str) -> None:
    if text and not text.removeprefix("-").isdecimal():
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')


def chosen_container(pod: Object, asked: str) -> str:
    """The container whose log is meant. 400 in kube-apiserver's words when that cannot be told."""
    name, spec = pod["metadata"]["name"], pod["spec"]
    containers = [one["name"] for one in spec["containers"]]
    init = [one["name"] for one in spec.get("initContainers") or ()]
    if asked:
        if asked not in [*containers, *init]:
            raise bad_request(f"container {asked} is not valid for pod {name}")
        return asked
    default = (pod["metadata"].get("annotations") or {}).get(DEFAULT_CONTAINER)
    if default in containers:
        return str(default)
    if len(containers) > 1:
        extra = f" or one of the init containers: [{' '.join(init)}]" if init else ""
        raise bad_request(
            f"a container name must be specified for pod {name}, choose one of: [{' '.join(containers)}]{extra}"
        )
    return str(containers[0])


def _state(pod: Object, container: str, *, previous: bool) -> Mapping[str, Object]:
    """The state of a container that has run or runs. 400 for one that has not started."""
    name = pod["metadata"]["name"]
    status = _status(pod, container)
    if previous:
        last: Mapping[str, Object] = status.get("lastState") or {}
        if "terminated" not in last:
            raise bad_request(f'previous terminated container "{container}" in pod "{name}" not found')
        return last
    state: Mapping[str, Object] = status.get("state") or {}
    if "waiting" in state and "terminated" in (status.get("lastState") or {}):
        return dict(status["lastState"])
    if "running" in state or "terminated" in state:
        return state
    reason = (state.get("waiting") or {}).get("reason") or "ContainerCreating"
    if not pod["spec"].get("nodeName"):
        raise StatusError(400, "BadRequest", f"pod {name} does not have a host assigned")
    message = f'container "{container}" in pod "{name}" is waiting to start: {reason}'
    if reason in ("ErrImagePull", "ImagePullBackOff"):
        message = f'container "{container}" in pod "{name}" is waiting to start: trying and failing to pull image'
    raise bad_request(message)


def _stamped(pod: Object, container: str, state: Mapping[str, Object], query: Mapping[str, str]) -> Iterable[str]:
    with_times = query.get("timestamps") in ("true", "1")
    since = query.get("sinceTime") or ""
    if query.get("sinceSeconds", "").isdigit():
        since = clock.timestamp(-int(query["sinceSeconds"]))
    for moment, text in _lines(pod, container, state):
        if moment >= since:
            yield f"{moment} {text}" if with_times else text


def _lines(pod: Object, container: str, state: Mapping[str, Object]) -> Iterable[tuple[str, str]]:
    ended = state.get("terminated")
    started = str((ended or state["running"])["startedAt"])
    printed = output(pod, container)
    place = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    for text in printed or [f"simulated container {container} of pod {place} on node {pod['spec'].get('nodeName')}"]:
        yield started, text
    if ended and not printed:
        yield str(ended["finishedAt"]), f"simulated container {container} ended with exit code {ended['exitCode']}"


def _status(pod: Object, container: str) -> Object:
    status = pod.get("status") or {}
    for one in [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]:
        if one["name"] == container:
            return dict(one)
    return {}
