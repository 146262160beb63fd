"""Who asks: tokens, certificates, impersonation, and the reviews about it."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from multidict import CIMultiDict

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.localcluster.auth import reviews
from stromboli.localcluster.auth.authenticating import ADMIN, TokenAuthenticator
from stromboli.localcluster.auth.authorizing import RbacAuthorizer
from stromboli.localcluster.auth.reviews import Reviews
from stromboli.localcluster.auth.tokens import BoundObject, TokenSigner
from stromboli.localcluster.extending import SubresourceRequest, User
from stromboli.localcluster.statuses import StatusError
from stromboli.localcluster.storage import Object
from tests.localcluster.sim.simulation import Simulation, pod, simulation
from tests.localcluster.sim.test_rbac import binding, role, rule

SIGNER = TokenSigner(ec.generate_private_key(ec.SECP256R1()))


def authenticator(cluster: Simulation) -> TokenAuthenticator:
    return TokenAuthenticator(cluster.store, SIGNER, RbacAuthorizer(cluster.store), {"secret": ADMIN})


def bearer(token: str, **more: str) -> CIMultiDict[str]:
    return CIMultiDict(
        {"Authorization": f"Bearer {token}", **{key.replace("_", "-"): value for key, value in more.items()}}
    )


async def account_token(cluster: Simulation, **kwargs: Any) -> str:
    account = cluster.find(kinds.SERVICE_ACCOUNTS, "default")
    assert account is not None
    return SIGNER.sign("default", "default", account["metadata"]["uid"], seconds=600, **kwargs)[0]


async def test_the_admin_token() -> None:
    async with simulation() as cluster:
        assert await authenticator(cluster).authenticate(bearer("secret"), None) == ADMIN


@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Basic YTpi"}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer"}]
)
async def test_who_proves_nothing_is_nobody(headers: dict[str, str]) -> None:
    async with simulation() as cluster:
        assert await authenticator(cluster).authenticate(headers, None) is None


async def test_a_service_account_token() -> None:
    async with simulation() as cluster:
        user = await authenticator(cluster).authenticate(bearer(await account_token(cluster)), None)
        assert user is not None
        assert user.name == "system:serviceaccount:default:default"
        assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated")


async def test_a_token_for_another_audience_is_refused() -> None:
    async with simulation() as cluster:
        token = await account_token(cluster, audiences=["vault"])
        assert await authenticator(cluster).authenticate(bearer(token), None) is None
        assert authenticator(cluster).token_user(token, ["vault"]).name == "system:serviceaccount:default:default"


async def test_a_token_dies_with_its_account() -> None:
    async with simulation() as cluster:
        token = await account_token(cluster)
        account = cluster.find(kinds.SERVICE_ACCOUNTS, "default")
        assert account is not None
        await cluster.registry.delete(kinds.SERVICE_ACCOUNTS, "default", "default")
        await cluster.until(lambda: cluster.find(kinds.SERVICE_ACCOUNTS, "default"))  # made again, under another UID
        assert await authenticator(cluster).authenticate(bearer(token), None) is None


async def test_a_bound_token_dies_with_its_pod() -> None:
    async with simulation() as cluster:
        made = await cluster.create(pod("p"))
        token = await account_token(cluster, bound=BoundObject("Pod", "p", made["metadata"]["uid"]))
        user = await authenticator(cluster).authenticate(bearer(token), None)
        assert user is not None
        assert user.extra["authentication.kubernetes.io/pod-name"] == ["p"]
        await cluster.registry.delete(kinds.PODS, "default", "p")
        assert await authenticator(cluster).authenticate(bearer(token), None) is None


async def test_a_client_certificate() -> None:
    async with simulation() as cluster:
        subject = ((("organizationName", "system:masters"),), (("commonName", "kubernetes-admin"),))
        user = await authenticator(cluster).authenticate({}, {"subject": subject})
        assert user == User("kubernetes-admin", ("system:masters", "system:authenticated"))
        assert await authenticator(cluster).authenticate({}, {"subject": ()}) is None


async def test_impersonation_by_who_may() -> None:
    async with simulation() as cluster:
        headers = bearer("secret", Impersonate_User="jane")
        headers.add("Impersonate-Group", "a")
        headers.add("Impersonate-Group", "b")
        user = await authenticator(cluster).authenticate(headers, None)
        assert user == User("jane", ("a", "b", "system:authenticated"))
        account = bearer("secret", Impersonate_User="system:serviceaccount:ns:robot")
        user = await authenticator(cluster).authenticate(account, None)
        assert user is not None
        assert "system:serviceaccounts:ns" in user.groups


async def test_impersonation_by_who_may_not() -> None:
    async with simulation() as cluster:
        headers = bearer(await account_token(cluster), Impersonate_User="jane")
        with pytest.raises(StatusError) as caught:
            await authenticator(cluster).authenticate(headers, None)
        assert caught.value.message == (
            'users "jane" is forbidden: User "system:serviceaccount:default:default" cannot impersonate resource '
            '"users" in API group "" at the cluster scope'
        )


async def ask(cluster: Simulation, kind: Kind, body: Object | None, user: User, namespace: str = "") -> Object:
    answers = Reviews(RbacAuthorizer(cluster.store), authenticator(cluster)).handlers()
    request = SubresourceRequest("create", kind, namespace, "", "", body, {}, user)
    answer = await answers[kind](request)
    assert answer.code == 201
    assert isinstance(answer.body, dict)
    return answer.body["status"]  # type: ignore[no-any-return]


async def test_can_i() -> None:
    async with simulation() as cluster:
        await cluster.create(role("reader", rule("get", "", "pods")))
        await cluster.create(binding("reader", "jane", "default"))
        for verb, want in (("get", True), ("delete", False)):
            wanted = {"verb": verb, "resource": "pods", "namespace": "default"}
            own = await ask(
                cluster, reviews.SELF_SUBJECT_ACCESS_REVIEWS, {"spec": {"resourceAttributes": wanted}}, User("jane")
            )
            other = await ask(
                cluster,
                reviews.SUBJECT_ACCESS_REVIEWS,
                {"spec": {"user": "jane", "resourceAttributes": wanted}},
                ADMIN,
            )
            assert own["allowed"] is other["allowed"] is want


async def test_what_can_i() -> None:
    async with simulation() as cluster:
        await cluster.create(role("reader", rule("get", "", "pods")))
        await cluster.create(binding("reader", "jane", "default"))
        body = {"spec": {"namespace": "default"}}
        status = await ask(cluster, reviews.SELF_SUBJECT_RULES_REVIEWS, body, User("jane", ("system:authenticated",)))
        assert {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]} in status["resourceRules"]
        assert any("/version" in one["nonResourceURLs"] for one in status["nonResourceRules"])
        everything = await ask(cluster, reviews.SELF_SUBJECT_RULES_REVIEWS, body, ADMIN)
        assert everything["resourceRules"] == [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]


async def test_who_am_i() -> None:
    async with simulation() as cluster:
        status = await ask(cluster, reviews.SELF_SUBJECT_REVIEWS, None, User("jane", ("a",), "7", {"k": ("v",)}))
        assert status["userInfo"] == {"username": "jane", "groups": ["a"], "uid": "7", "extra": {"k": ["v"]}}


async def test_whose_token_is_this() -> None:
    async with simulation() as cluster:
        good = await ask(cluster, reviews.TOKEN_REVIEWS, {"spec": {"token": await account_token(cluster)}}, ADMIN)
        assert good["authenticated"]
        assert good["user"]["username"] == "system:serviceaccount:default:default"
        bad = await ask(cluster, reviews.TOKEN_REVIEWS, {"spec": {"token": "nonsense"}}, ADMIN)
        assert "authenticated" not in bad
        assert bad["error"].startswith("[invalid bearer token, ")


BAD_REVIEWS = {
    "no spec": (reviews.SELF_SUBJECT_ACCESS_REVIEWS, {}, "spec: expected an object"),
    "neither resource nor path": (
        reviews.SELF_SUBJECT_ACCESS_REVIEWS,
        {"spec": {}},
        "exactly one of nonResourceAttributes or resourceAttributes must be specified",
    ),
    "no user": (
        reviews.SUBJECT_ACCESS_REVIEWS,
        {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}},
        "at least one of user or group must be specified",
    ),
    "no namespace": (reviews.SELF_SUBJECT_RULES_REVIEWS, {"spec": {}}, "no namespace on request"),
}


@pytest.mark.parametrize(("kind", "body", "want"), BAD_REVIEWS.values(), ids=BAD_REVIEWS.keys())
async def test_reviews_that_ask_nothing(kind: Kind, body: Object, want: str) -> None:
    async with simulation() as cluster:
        with pytest.raises(StatusError) as caught:
            await ask(cluster, kind, body, ADMIN)
        assert want in caught.value.message
