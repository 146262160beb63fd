"""ServiceAccount tokens."""

from __future__ import annotations

import base64

import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from stromboli.localcluster.auth.tokens import BoundObject, InvalidToken, TokenSigner

KEY = ec.generate_private_key(ec.SECP256R1())


class Clock:
    time = 1_800_000_000.0

    def __call__(self) -> float:
        return self.time


def test_a_token_says_whose_it_is() -> None:
    signer = TokenSigner(KEY, Clock())
    token, expires = signer.sign("ns", "robot", "uid-1", seconds=600, bound=BoundObject("Pod", "p", "uid-2"))
    claims = signer.verify(token)
    assert claims.subject == "system:serviceaccount:ns:robot"
    assert (claims.uid, claims.expires, expires) == ("uid-1", Clock.time + 600, Clock.time + 600)
    assert claims.bound == BoundObject("Pod", "p", "uid-2")
    assert claims.audiences == ("https://kubernetes.default.svc.cluster.local",)


def test_a_token_expires() -> None:
    clock = Clock()
    signer = TokenSigner(KEY, clock)
    token, _ = signer.sign("ns", "robot", "uid", seconds=600)
    clock.time += 600
    with pytest.raises(InvalidToken, match="expired"):
        signer.verify(token)


def test_another_key_proves_nothing() -> None:
    token, _ = TokenSigner(ec.generate_private_key(ec.SECP256R1())).sign("ns", "robot", "uid", seconds=600)
    with pytest.raises(InvalidToken, match="signed with another key"):
        TokenSigner(KEY).verify(token)


def test_changed_claims_are_noticed() -> None:
    signer = TokenSigner(KEY)
    header, payload, signature = signer.sign("ns", "robot", "uid", seconds=600)[0].split(".")
    claims = orjson.loads(base64.urlsafe_b64decode(payload + "=="))
    claims["kubernetes.io"]["serviceaccount"]["name"] = "admin"
    forged = base64.urlsafe_b64encode(orjson.dumps(claims)).rstrip(b"=").decode()
    with pytest.raises(InvalidToken):
        signer.verify(f"{header}.{forged}.{signature}")


def test_no_signature_is_no_token() -> None:
    signer = TokenSigner(KEY)
    _, payload, _ = signer.sign("ns", "robot", "uid", seconds=600)[0].split(".")
    header = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    with pytest.raises(InvalidToken):
        signer.verify(f"{header}.{payload}.")


@given(st.text(max_size=80))
def test_noise_is_refused_and_nothing_worse(noise: str) -> None:
    with pytest.raises(InvalidToken):
        TokenSigner(KEY).verify(noise)


@given(st.binary(min_size=1, max_size=60), st.binary(max_size=60))
def test_noise_in_the_right_shape_is_refused(header: bytes, payload: bytes) -> None:
    parts = [base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in (header, payload, bytes(64))]
    with pytest.raises(InvalidToken):
        TokenSigner(KEY).verify(".".join(parts))
