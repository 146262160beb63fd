"""Orders to the controllers: Command objects that they take and delete (spec 08 section 1, "Bus commands")."""

from __future__ import annotations

from stromboli.api.kinds import COMMANDS, JOBS, QUEUES, Kind
from stromboli.cli.commanding.api import Api
from stromboli.kube import json
from stromboli.kube.json import JsonObject

QUEUE_COMMANDS_NAMESPACE = "default"
ABORT, RESUME, OPEN, CLOSE = "AbortJob", "ResumeJob", "OpenQueue", "CloseQueue"


def order_job(api: Api, name: str, namespace: str, action: str, *, dry_run: bool = False) -> JsonObject:
    """Ask for a job to be aborted or resumed. Raises NotFound when there is no such job."""
    return _order(api, JOBS, api.get(JOBS, name, namespace), action, namespace, dry_run=dry_run)


def order_queue(api: Api, name: str, action: str, *, dry_run: bool = False) -> JsonObject:
    """Ask for a queue to be opened or closed. Raises NotFound when there is no such queue."""
    return _order(api, QUEUES, api.get(QUEUES, name), action, QUEUE_COMMANDS_NAMESPACE, dry_run=dry_run)


def _order(api: Api, kind: Kind, obj: JsonObject, action: str, namespace: str, *, dry_run: bool) -> JsonObject:
    name = json.key_of(obj)[1]
    owner = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": name,
        "uid": json.uid_of(obj),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    command = {
        "apiVersion": COMMANDS.api_version,
        "kind": COMMANDS.kind,
        "metadata": {
            "generateName": f"{name}-{action.lower()}-",
            "namespace": namespace,
            "ownerReferences": [owner],
        },
        "action": action,
        "target": owner,
    }
    return api.create(COMMANDS, command, namespace, dry_run=dry_run)
