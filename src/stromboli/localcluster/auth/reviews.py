"""The review kinds: questions to the API about tokens and permissions, answered and never stored.

They serve ``kubectl auth can-i`` and ``kubectl auth whoami``, and processes that delegate their own authentication.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stromboli.api.kinds import Kind
from stromboli.localcluster.auth.authenticating import TokenAuthenticator
from stromboli.localcluster.auth.authorizing import RbacAuthorizer
from stromboli.localcluster.auth.rules import Rule
from stromboli.localcluster.auth.tokens import DEFAULT_AUDIENCE, InvalidToken
from stromboli.localcluster.extending import Answer, Attributes, Authorizer, Handler, SubresourceRequest, User
from stromboli.localcluster.statuses import Cause, StatusError, bad_request, invalid
from stromboli.localcluster.storage import Object

_AUTHORIZATION = ("authorization.k8s.io", "v1")
_AUTHENTICATION = ("authentication.k8s.io", "v1")

SELF_SUBJECT_ACCESS_REVIEWS = Kind(*_AUTHORIZATION, "selfsubjectaccessreviews", "SelfSubjectAccessReview", False)
SUBJECT_ACCESS_REVIEWS = Kind(*_AUTHORIZATION, "subjectaccessreviews", "SubjectAccessReview", False)
LOCAL_SUBJECT_ACCESS_REVIEWS = Kind(*_AUTHORIZATION, "localsubjectaccessreviews", "LocalSubjectAccessReview")
SELF_SUBJECT_RULES_REVIEWS = Kind(*_AUTHORIZATION, "selfsubjectrulesreviews", "SelfSubjectRulesReview", False)
SELF_SUBJECT_REVIEWS = Kind(*_AUTHENTICATION, "selfsubjectreviews", "SelfSubjectReview", False)
TOKEN_REVIEWS = Kind(*_AUTHENTICATION, "tokenreviews", "TokenReview", False)

_EVERYTHING: tuple[Rule, ...] = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)


class Reviews:
    """Answers reviews with the cluster's own authenticator and authorizer."""

    def __init__(self, authorizer: Authorizer, authenticator: TokenAuthenticator) -> None:
        self._authorizer = authorizer
        self._authenticator = authenticator

    def handlers(self) -> dict[Kind, Handler]:
        """The review kinds and who answers them; all of them know only ``create``."""
        return {
            SELF_SUBJECT_ACCESS_REVIEWS: self.self_access,
            SUBJECT_ACCESS_REVIEWS: self.access,
            LOCAL_SUBJECT_ACCESS_REVIEWS: self.access,
            SELF_SUBJECT_RULES_REVIEWS: self.rules,
            SELF_SUBJECT_REVIEWS: self.who,
            TOKEN_REVIEWS: self.token,
        }

    async def self_access(self, request: SubresourceRequest) -> Answer:
        """May the asking user do this?"""
        review = _review(request)
        return await self._answer(request, review, request.user, _attributes(request, review["spec"]))

    async def access(self, request: SubresourceRequest) -> Answer:
        """May the user named in the review do this?"""
        review = _review(request)
        spec = review["spec"]
        if not spec.get("user") and not spec.get("groups"):
            raise invalid(
                request.kind,
                "",
                [Cause("FieldValueInvalid", "spec.user", "at least one of user or group must be specified")],
            )
        wanted = _attributes(request, spec)
        if request.kind is LOCAL_SUBJECT_ACCESS_REVIEWS and wanted.namespace != request.namespace:
            raise bad_request(f'spec.resourceAttributes.namespace: must be "{request.namespace}"')
        user = User(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""), spec.get("extra") or {})
        return await self._answer(request, review, user, wanted)

    async def rules(self, request: SubresourceRequest) -> Answer:
        """What may the asking user do in a namespace?"""
        review = _review(request)
        namespace = review["spec"].get("namespace", "")
        if not namespace:
            raise bad_request("no namespace on request")
        granted: list[Rule] = list(_EVERYTHING)
        if isinstance(self._authorizer, RbacAuthorizer) and "system:masters" not in request.user.groups:
            granted = self._authorizer.grants(request.user, namespace).rules
        review["status"] = {
            "resourceRules": [dict(rule) for rule in granted if rule.get("resources")],
            "nonResourceRules": [
                {"verbs": rule["verbs"], "nonResourceURLs": rule["nonResourceURLs"]}
                for rule in granted
                if rule.get("nonResourceURLs")
            ],
            "incomplete": False,
        }
        return Answer(review, 201)

    async def who(self, request: SubresourceRequest) -> Answer:
        """Who is asking?"""
        review = _review(request, spec=False)
        review["status"] = {"userInfo": user_info(request.user)}
        return Answer(review, 201)

    async def token(self, request: SubresourceRequest) -> Answer:
        """Whose token is this?"""
        review = _review(request)
        audiences = review["spec"].get("audiences") or [DEFAULT_AUDIENCE]
        try:
            user = self._authenticator.token_user(review["spec"].get("token", ""), audiences)
        except InvalidToken as error:
            review["status"] = {"user": {}, "error": f"[invalid bearer token, {error}]"}
        else:
            review["status"] = {"authenticated": True, "user": user_info(user), "audiences": audiences}
        return Answer(review, 201)

    async def _answer(self, request: SubresourceRequest, review: Object, user: User, wanted: Attributes) -> Answer:
        reason = await self._authorizer.authorize(user, wanted)
        review["status"] = {"allowed": reason is None}
        if reason:
            review["status"]["reason"] = reason
        return Answer(review, 201)


def user_info(user: User) -> Object:
    """A user as reviews and admission show it."""
    info: Object = {"username": user.name, "groups": list(user.groups)}
    if user.uid:
        info["uid"] = user.uid
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra.items()}
    return info


def _review(request: SubresourceRequest, *, spec: bool = True) -> Object:
    if request.verb != "create":
        raise StatusError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    body = dict(request.body or {})
    if spec and not isinstance(body.get("spec"), Mapping):
        raise bad_request(f'{request.kind.kind} in version "v1" cannot be handled: spec: expected an object')
    return {"kind": request.kind.kind, "apiVersion": request.kind.api_version, "metadata": {}, **body}


def _attributes(request: SubresourceRequest, spec: Mapping[str, Any]) -> Attributes:
    resource, path = spec.get("resourceAttributes") or {}, spec.get("nonResourceAttributes") or {}
    if bool(resource) == bool(path):
        message = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise invalid(request.kind, "", [Cause("FieldValueInvalid", "spec.resourceAttributes", message)])
    if path:
        return Attributes(path.get("verb", ""), path=path.get("path", "") or "/")
    return Attributes(
        resource.get("verb", ""),
        group=resource.get("group", ""),
        version=resource.get("version", ""),
        resource=resource.get("resource", ""),
        subresource=resource.get("subresource", ""),
        namespace=resource.get("namespace", ""),
        name=resource.get("name", ""),
    )
