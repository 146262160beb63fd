"""What a test's namespace looked like when the test failed: the first thing anybody asks who was not there."""

from __future__ import annotations

from collections.abc import Iterator

from e2e.cluster import Cluster, Json
from stromboli.api.kinds import EVENTS, JOBS, NODES, POD_GROUPS, PODS, QUEUES

MOST_EVENTS = 60


async def story(cluster: Cluster) -> str:
    """Jobs, PodGroups, pods and events of the namespace, all queues, and what holds room on nodes from elsewhere."""
    lines = [f"--- {cluster.namespace}"]
    for kind in (JOBS, POD_GROUPS, PODS):
        for item in await cluster.client.list(kind, cluster.namespace):
            lines.append(f"{kind.kind} {_name(item)}: {_state(item)}")
            lines.extend(f"    {line}" for line in _conditions(item))
    queues, nodes = await cluster.client.list(QUEUES), await cluster.client.list(NODES)
    lines.extend(f"Queue {_name(item)}: {item.get('spec')} {item.get('status')}" for item in queues)
    lines.extend(f"Node {_name(item)}: {item['status'].get('allocatable')}" for item in nodes)
    for kind in (POD_GROUPS, PODS):
        elsewhere = [one for one in await cluster.client.list(kind) if _namespace(one) != cluster.namespace]
        lines.extend(f"{kind.kind} {_namespace(one)}/{_name(one)}: {_state(one)}" for one in elsewhere)
    events = await cluster.client.list(EVENTS, cluster.namespace)
    lines.extend(_told(event) for event in sorted(events, key=_last)[-MOST_EVENTS:])
    return "\n".join(lines)


def _name(item: Json) -> str:
    return str(item["metadata"]["name"])


def _namespace(item: Json) -> str:
    return str(item["metadata"].get("namespace", ""))


def _state(item: Json) -> str:
    status = item.get("status", {})
    phase = status.get("phase") or status.get("state", {}).get("phase") or "no phase"
    going = "(going)" if "deletionTimestamp" in item["metadata"] else ""
    return " ".join(part for part in (str(phase), item.get("spec", {}).get("nodeName", ""), going) if part)


def _conditions(item: Json) -> Iterator[str]:
    for one in item.get("status", {}).get("conditions") or []:
        if one.get("message"):
            yield f"{one.get('type')}={one.get('status')} {one.get('reason')}: {one['message']}"


def _last(event: Json) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")


def _told(event: Json) -> str:
    about = event.get("involvedObject", {})
    return f"{_last(event)} {about.get('kind')} {about.get('name')}: {event.get('reason')}: {event.get('message')}"
