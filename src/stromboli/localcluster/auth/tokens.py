"""Signed ServiceAccount tokens: JSON Web Tokens (ES256) with the claims that kube-apiserver puts into bound tokens."""

from __future__ import annotations

import base64
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

ISSUER = "https://kubernetes.default.svc.cluster.local"
DEFAULT_AUDIENCE = ISSUER
MIN_SECONDS = 600
MAX_SECONDS = 1 << 32
_HALF = 32  # bytes of r and of s in an ES256 signature


class InvalidToken(ValueError):
    """A token that proves nothing: not ours, malformed, expired or for somebody else."""


@dataclass(frozen=True, slots=True)
class BoundObject:
    """The object a token lives and dies with."""

    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class ServiceAccountClaims:
    """What a token says: which ServiceAccount, for whom, until when (seconds since the epoch)."""

    namespace: str
    name: str
    uid: str
    audiences: tuple[str, ...]
    expires: float
    token_id: str
    bound: BoundObject | None = None

    @property
    def subject(self) -> str:
        """The user name of the ServiceAccount."""
        return f"system:serviceaccount:{self.namespace}:{self.name}"


class TokenSigner:
    """Makes and verifies tokens with one key. ``now`` tells seconds since the epoch."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, now: Callable[[], float] = time.time) -> None:
        self._key = key
        self._now = now

    def sign(
        self,
        namespace: str,
        name: str,
        uid: str,
        *,
        seconds: int,
        audiences: Sequence[str] = (),
        bound: BoundObject | None = None,
    ) -> tuple[str, float]:
        """A token for a ServiceAccount and the time it expires."""
        issued = int(self._now())
        own: dict[str, object] = {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}}
        if bound is not None:
            own[bound.kind.lower()] = {"name": bound.name, "uid": bound.uid}
        claims = {
            "aud": list(audiences) or [DEFAULT_AUDIENCE],
            "exp": issued + seconds,
            "iat": issued,
            "iss": ISSUER,
            "jti": str(uuid.uuid4()),
            "kubernetes.io": own,
            "nbf": issued,
            "sub": f"system:serviceaccount:{namespace}:{name}",
        }
        signed = f"{_encode(orjson.dumps({'alg': 'ES256', 'typ': 'JWT'}))}.{_encode(orjson.dumps(claims))}"
        r, s = decode_dss_signature(self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        signature = r.to_bytes(_HALF, "big") + s.to_bytes(_HALF, "big")
        return f"{signed}.{_encode(signature)}", float(issued + seconds)

    def verify(self, token: str) -> ServiceAccountClaims:
        """The claims of a token of ours that is still valid. Raises :class:`InvalidToken` otherwise."""
        try:
            signed, _, signature = token.rpartition(".")
            header, _, payload = signed.partition(".")
            raw = _decode(signature)
            if orjson.loads(_decode(header)).get("alg") != "ES256" or len(raw) != 2 * _HALF:
                raise InvalidToken("not an ES256 token")
            pair = encode_dss_signature(int.from_bytes(raw[:_HALF], "big"), int.from_bytes(raw[_HALF:], "big"))
            self._key.public_key().verify(pair, signed.encode(), ec.ECDSA(hashes.SHA256()))
            return self._claims(orjson.loads(_decode(payload)))
        except InvalidSignature as error:
            raise InvalidToken("signed with another key") from error
        except InvalidToken:
            raise
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InvalidToken("not a ServiceAccount token") from error

    def _claims(self, claims: dict[str, object]) -> ServiceAccountClaims:
        if claims["iss"] != ISSUER:
            raise InvalidToken("made by another issuer")
        expires = float(str(claims["exp"]))
        if self._now() >= expires:
            raise InvalidToken("Token has expired.")
        own, audiences = claims["kubernetes.io"], claims["aud"]
        if not isinstance(own, dict) or not isinstance(audiences, list):
            raise InvalidToken("not a ServiceAccount token")
        account = own["serviceaccount"]
        bound = next(
            (
                BoundObject(kind, own[kind.lower()]["name"], own[kind.lower()]["uid"])
                for kind in ("Pod", "Secret", "Node")
                if kind.lower() in own
            ),
            None,
        )
        return ServiceAccountClaims(
            own["namespace"], account["name"], account["uid"], tuple(audiences), expires, str(claims["jti"]), bound
        )


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
