"""Who asks: static tokens, ServiceAccount tokens, client certificates of the cluster's CA, and impersonation.

A request that shows no valid identity is refused (401): nobody is anonymous here, except on health paths, which the
HTTP layer serves before it asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stromboli.api import kinds
from stromboli.localcluster.auth.authorizing import require
from stromboli.localcluster.auth.tokens import DEFAULT_AUDIENCE, InvalidToken, ServiceAccountClaims, TokenSigner
from stromboli.localcluster.extending import Attributes, Authorizer, User
from stromboli.localcluster.storage import Key, Store

AUTHENTICATED = "system:authenticated"
ADMIN = User("kubernetes-admin", ("system:masters", AUTHENTICATED))


class TokenAuthenticator:
    """Knows the users of tokens and certificates. ``tokens`` are static ones, valid as long as the process lives."""

    def __init__(
        self, store: Store, signer: TokenSigner, authorizer: Authorizer, tokens: Mapping[str, User] | None = None
    ) -> None:
        self._store = store
        self._signer = signer
        self._authorizer = authorizer
        self._tokens = dict(tokens or {})

    async def authenticate(self, headers: Mapping[str, str], peer_certificate: Mapping[str, Any] | None) -> User | None:
        """The user, after impersonation. Raises a 403 ``StatusError`` when that is asked for but not allowed."""
        user = self._asking(headers, peer_certificate)
        return None if user is None else await self._impersonated(user, headers)

    def token_user(self, token: str, audiences: Sequence[str] = ()) -> User:
        """The user of a bearer token for one of ``audiences`` (none: the API itself). Raises :class:`InvalidToken`."""
        known = self._tokens.get(token)
        if known is not None:
            return known
        claims = self._signer.verify(token)
        if not set(audiences or [DEFAULT_AUDIENCE]) & set(claims.audiences):
            raise InvalidToken(f"token audiences {list(claims.audiences)!r} is invalid for the target audiences")
        self._check_alive(claims)
        extra = {"authentication.kubernetes.io/credential-id": [f"JTI={claims.token_id}"]}
        if claims.bound is not None:
            kind = claims.bound.kind.lower()
            extra[f"authentication.kubernetes.io/{kind}-name"] = [claims.bound.name]
            extra[f"authentication.kubernetes.io/{kind}-uid"] = [claims.bound.uid]
        return service_account(claims.namespace, claims.name, claims.uid, extra)

    def _asking(self, headers: Mapping[str, str], peer_certificate: Mapping[str, Any] | None) -> User | None:
        scheme, _, token = headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "bearer" and token.strip():
            try:
                return self.token_user(token.strip())
            except InvalidToken:
                return None
        return certificate_user(peer_certificate) if peer_certificate else None

    def _check_alive(self, claims: ServiceAccountClaims) -> None:
        account = self._store.get(Key.of(kinds.SERVICE_ACCOUNTS, claims.namespace, claims.name))
        if account is None or account.object["metadata"]["uid"] != claims.uid:
            raise InvalidToken("its ServiceAccount has been deleted")
        if claims.bound is None:
            return
        kind = {"Pod": kinds.PODS, "Secret": kinds.SECRETS, "Node": kinds.NODES}[claims.bound.kind]
        bound = self._store.get(Key.of(kind, claims.namespace, claims.bound.name))
        if bound is None or bound.object["metadata"]["uid"] != claims.bound.uid:
            raise InvalidToken(f"its {claims.bound.kind} has been deleted")

    async def _impersonated(self, user: User, headers: Mapping[str, str]) -> User:
        name = headers.get("Impersonate-User", "")
        groups = _all(headers, "Impersonate-Group")
        if not name:
            return user
        parts = name.split(":")
        account = parts[2:] if name.startswith("system:serviceaccount:") and len(parts) == 4 else None
        if account:
            wanted = Attributes("impersonate", resource="serviceaccounts", namespace=account[0], name=account[1])
        else:
            wanted = Attributes("impersonate", resource="users", name=name)
        await require(self._authorizer, user, wanted)
        for group in groups:
            await require(self._authorizer, user, Attributes("impersonate", resource="groups", name=group))
        if account and not groups:
            return service_account(account[0], account[1], "", {})
        return User(name, tuple(dict.fromkeys([*groups, AUTHENTICATED])))


def service_account(namespace: str, name: str, uid: str, extra: Mapping[str, Sequence[str]]) -> User:
    """The user that a ServiceAccount is."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
    return User(f"system:serviceaccount:{namespace}:{name}", groups, uid, extra)


def certificate_user(certificate: Mapping[str, Any]) -> User | None:
    """The user of a verified client certificate (as ``SSLSocket.getpeercert`` shows it): CN, with O as groups."""
    pairs = [pair for part in certificate.get("subject", ()) for pair in part]
    name = next((value for key, value in pairs if key == "commonName"), "")
    groups = [value for key, value in pairs if key == "organizationName"]
    return User(name, (*groups, AUTHENTICATED)) if name else None


def _all(headers: Mapping[str, str], name: str) -> list[str]:
    """All values of a header that may stand several times, where the mapping can tell."""
    several = getattr(headers, "getall", None)
    if several is not None:
        return list(several(name, []))
    return [headers[name]] if name in headers else []
