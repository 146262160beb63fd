"""``serviceaccounts/token``: TokenRequest, answered with a signed token that expires."""

from __future__ import annotations

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.localcluster.auth.tokens import DEFAULT_AUDIENCE, MAX_SECONDS, MIN_SECONDS, BoundObject, TokenSigner
from stromboli.localcluster.extending import Answer, SubresourceRequest
from stromboli.localcluster.nodes.timestamps import stamp
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.statuses import Cause, bad_request, conflict, invalid
from stromboli.localcluster.storage import Object

TOKEN_REQUESTS = Kind("authentication.k8s.io", "v1", "tokenrequests", "TokenRequest")
DEFAULT_SECONDS = 3600
_BOUND_KINDS = {("v1", "Pod"): kinds.PODS, ("v1", "Secret"): kinds.SECRETS}


class TokenRequests:
    """Serves token requests."""

    def __init__(self, registry: Registry, signer: TokenSigner) -> None:
        self._registry = registry
        self._signer = signer

    async def __call__(self, request: SubresourceRequest) -> Answer:
        """A token for the ServiceAccount in the path."""
        account = self._registry.read(kinds.SERVICE_ACCOUNTS, request.namespace, request.name).object
        body = request.body or {}
        spec = body.get("spec") or {}
        seconds = _lifetime(request.name, spec.get("expirationSeconds"))
        audiences = spec.get("audiences") or [DEFAULT_AUDIENCE]
        token, expires = self._signer.sign(
            request.namespace,
            request.name,
            account["metadata"]["uid"],
            seconds=seconds,
            audiences=audiences,
            bound=self._bound(request, spec.get("boundObjectRef")),
        )
        answer: Object = {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"name": request.name, "namespace": request.namespace},
            "spec": {
                "audiences": audiences,
                "expirationSeconds": seconds,
                "boundObjectRef": spec.get("boundObjectRef"),
            },
            "status": {"token": token, "expirationTimestamp": stamp(expires)},
        }
        return Answer(answer, 201)

    def _bound(self, request: SubresourceRequest, reference: Object | None) -> BoundObject | None:
        if not reference:
            return None
        kind = _BOUND_KINDS.get((str(reference.get("apiVersion")), str(reference.get("kind"))))
        if kind is None:
            text = f'cannot bind token for serviceaccount "{request.name}" to object type {reference.get("kind")}'
            raise bad_request(text)
        bound = self._registry.read(kind, request.namespace, str(reference.get("name"))).object
        uid = bound["metadata"]["uid"]
        if reference.get("uid") not in (None, "", uid):
            why = f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record ({uid})"
            raise conflict(kind, bound["metadata"]["name"], why)
        if kind is kinds.PODS and bound["spec"].get("serviceAccountName") != request.name:
            raise bad_request(
                f'cannot bind token for serviceaccount "{request.name}" to pod running with different serviceaccount '
                f'"{bound["spec"].get("serviceAccountName")}"'
            )
        return BoundObject(kind.kind, bound["metadata"]["name"], uid)


def _lifetime(name: str, asked: object) -> int:
    if asked is None:
        return DEFAULT_SECONDS
    problem = ""
    if not isinstance(asked, int) or isinstance(asked, bool):
        raise bad_request("spec.expirationSeconds: expected a whole number of seconds")
    if asked < MIN_SECONDS:
        problem = "may not specify a duration less than 10 minutes"
    elif asked > MAX_SECONDS:
        problem = "may not specify a duration larger than 2^32 seconds"
    if problem:
        cause = Cause("FieldValueInvalid", "spec.expirationSeconds", f"Invalid value: {asked}: {problem}")
        raise invalid(TOKEN_REQUESTS, name, [cause])
    return asked
