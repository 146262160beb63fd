"""Authorization over the stored Roles, ClusterRoles and their bindings, or none at all.

The answer always reflects what is stored at that moment: bindings are few, and reading them costs less than keeping a
cache right. Aggregated ClusterRoles are resolved here, when they are asked, rather than written back by a controller.
Creating a role that grants more than its author has is not refused, as it would be by kube-apiserver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.localcluster.auth.rules import Rule, any_covers, refusal, subject_matches
from stromboli.localcluster.extending import Attributes, Authorizer, User
from stromboli.localcluster.labels import selects
from stromboli.localcluster.statuses import StatusError
from stromboli.localcluster.storage import Key, Object, Store

MASTERS = "system:masters"


class AlwaysAllow:
    """Everybody may do everything (``--authorization-mode=AlwaysAllow``)."""

    async def authorize(self, user: User, attributes: Attributes) -> str | None:
        """Allowed."""
        return None


@dataclass(frozen=True, slots=True)
class Grants:
    """Rules that a user has, and roles that bindings of his name but that do not exist."""

    rules: list[Rule]
    missing: list[str]

    @property
    def reason(self) -> str:
        """What to add to a refusal."""
        return f"RBAC: {', '.join(self.missing)}" if self.missing else ""


class RbacAuthorizer:
    """Role-based access control; the group ``system:masters`` may do everything."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def authorize(self, user: User, attributes: Attributes) -> str | None:
        """None when allowed, else what to add to the refusal."""
        if MASTERS in user.groups:
            return None
        grants = self.grants(user, attributes.namespace)
        return None if any_covers(grants.rules, attributes) else grants.reason

    def grants(self, user: User, namespace: str) -> Grants:
        """All rules of a user that hold in a namespace (or, when it is empty, cluster-wide)."""
        found = Grants([], [])
        for binding in self._bindings(namespace):
            where = binding["metadata"].get("namespace", "")
            if any(
                subject_matches(subject, user.name, user.groups, where) for subject in binding.get("subjects") or ()
            ):
                self._add(found, binding.get("roleRef") or {}, where)
        return found

    def _bindings(self, namespace: str) -> Iterator[Object]:
        for stored in self._store.list(kinds.CLUSTER_ROLE_BINDINGS):
            yield stored.object
        if namespace:
            for stored in self._store.list(kinds.ROLE_BINDINGS, namespace):
                yield stored.object

    def _add(self, found: Grants, reference: Mapping[str, Any], namespace: str) -> None:
        kind = kinds.ROLES if reference.get("kind") == "Role" else kinds.CLUSTER_ROLES
        role = self._role(kind, namespace if kind is kinds.ROLES else "", str(reference.get("name", "")))
        if role is None:
            found.missing.append(f'{kind.kind.lower()}.{kind.group} "{reference.get("name")}" not found')
        else:
            found.rules.extend(self._rules(role))

    def _role(self, kind: Kind, namespace: str, name: str) -> Object | None:
        stored = self._store.get(Key.of(kind, namespace, name))
        return stored.object if stored else None

    def _rules(self, role: Object) -> Iterator[Rule]:
        yield from role.get("rules") or ()
        for selector in (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ():
            for stored in self._store.list(kinds.CLUSTER_ROLES):
                other = stored.object
                if other["metadata"]["name"] == role["metadata"]["name"]:
                    continue
                if selects(selector, other["metadata"].get("labels") or {}):
                    yield from other.get("rules") or ()


async def require(authorizer: Authorizer, user: User, attributes: Attributes) -> None:
    """Raise the 403 that kube-apiserver would answer, unless the user may do this."""
    reason = await authorizer.authorize(user, attributes)
    if reason is None:
        return
    why = refusal(user.name, attributes, reason)
    if attributes.path:
        raise StatusError(403, "Forbidden", f"forbidden: {why}", details={})
    resource = f"{attributes.resource}.{attributes.group}" if attributes.group else attributes.resource
    subject = f'{resource} "{attributes.name}"' if attributes.name else resource
    details = {"name": attributes.name, "group": attributes.group, "kind": attributes.resource}
    raise StatusError(
        403,
        "Forbidden",
        f"{subject} is forbidden: {why}",
        details={key: value for key, value in details.items() if value},
    )
