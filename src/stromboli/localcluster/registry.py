"""The API without HTTP: what create, update, patch, delete, list and watch do to the store.

Controllers inside the server and the HTTP layer use the same :class:`Registry`. Objects that come out are read-only
(they are the stored ones); objects that go in are copied first. Every refusal is a
:class:`~stromboli.localcluster.statuses.StatusError`.

A write runs: decode and prune by schema, what the server sets (``uid``, ``generation``, ...), defaults, mutating
admission, defaults and checks again, validating admission, field management, store. Writes that were given no
resourceVersion are tried again when somebody else was faster.

Extension points are attributes set once at assembly: ``admission``, ``strategies`` (through the catalog),
:meth:`Registry.add_subresource`, :meth:`Registry.add_handled_kind`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.localcluster import deleting, identities, normalizing, scaling, statuses, updating
from stromboli.localcluster.catalog import Catalog, Names, ServedKind
from stromboli.localcluster.crds import definitions
from stromboli.localcluster.extending import Admission, AdmissionRequest, Handler, Operation, Subresource
from stromboli.localcluster.patching import fields, patches
from stromboli.localcluster.requests import (
    INTERNAL,
    INTERNAL_DELETE,
    Deleted,
    DeleteOptions,
    Listing,
    WriteOptions,
)
from stromboli.localcluster.schemas.structure import ANYTHING
from stromboli.localcluster.selecting import Selection
from stromboli.localcluster.storage import Exists, Gone, Key, Missing, Object, Stale, Store, Stored, TooLarge, Watch

ATTEMPTS = 8
"""Tries of a write without resourceVersion before a conflict is reported after all."""

NAME_ATTEMPTS = 8
"""Tries of a generated name."""

Change = Callable[[Object], Object]
"""Makes the wanted object from a private copy of the present one."""


class Registry:
    """All verbs on all served kinds."""

    def __init__(self, store: Store, catalog: Catalog, admission: Admission | None = None) -> None:
        self.store = store
        self.kinds = catalog
        self.admission = admission

    # Assembly

    def add_subresource(self, kind: Kind, name: str, subresource: Subresource) -> None:
        """Serve ``kind``'s subresource ``name`` (also over HTTP and in discovery)."""
        served = self.served(kind)
        self.kinds.add(replace(served, subresources={**served.subresources, name: subresource}))

    def add_handled_kind(self, kind: Kind, handler: Handler, verbs: tuple[str, ...] = ("create",)) -> None:
        """Serve a kind that is answered by ``handler`` and never stored, for example SelfSubjectAccessReview."""
        names = Names(kind.kind.lower())
        self.kinds.add(ServedKind(kind, names, lambda: ANYTHING, verbs=verbs, handler=handler))

    # Reading

    def served(self, kind: Kind) -> ServedKind:
        """What is served for ``kind``; 404 when nothing is."""
        found = self.kinds.of(kind)
        if found is None:
            raise statuses.no_such_path()
        return found

    def read(self, kind: Kind, namespace: str | None, name: str) -> Stored:
        """The stored object with its encoded form; 404 when it is not there."""
        stored = self.store.get(Key.of(kind, namespace, name))
        if stored is None:
            raise statuses.not_found(kind, name)
        return stored

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Object:
        """The object; 404 when it is not there."""
        self.served(kind)
        return self.read(kind, namespace, name).object

    async def list(
        self,
        kind: Kind,
        namespace: str | None = None,
        selection: Selection | None = None,
        after: tuple[str, str] = ("", ""),
    ) -> Listing:
        """Objects of a kind that match, in order of namespace and name; behind ``after`` when it is given."""
        self.served(kind)
        items = self.store.list(kind, namespace, after)
        if selection is not None:
            items = [stored for stored in items if selection.matches(stored.object)]
        return Listing(items, self.store.revision)

    def watch(self, kind: Kind, namespace: str | None = None, since: int | None = None) -> Watch:
        """Raw changes after ``since`` (default: from now); 410 when the log does not reach back so far."""
        self.served(kind)
        try:
            return self.store.watch(kind, namespace, since)
        except Gone as error:
            raise statuses.expired(str(error)) from error

    # Writing

    async def create(
        self, kind: Kind, obj: Object, namespace: str | None = None, options: WriteOptions = INTERNAL
    ) -> Object:
        """Create; the namespace is taken from the object when it is not given."""
        served = self.served(kind)
        new = normalizing.decoded(served, obj, namespace, options)
        identities.assign(new)
        generated = identities.generates_name(new)
        if not generated:
            normalizing.require_name(served, new)
        for attempt in range(NAME_ATTEMPTS):
            if generated:
                identities.generate_name(new)
            try:
                return await self._create(served, new, options)
            except Exists as error:
                if not generated or attempt == NAME_ATTEMPTS - 1:
                    raise statuses.already_exists(kind, new["metadata"]["name"]) from error
        raise AssertionError("unreachable: the last attempt raises")

    async def _create(self, served: ServedKind, new: Object, options: WriteOptions) -> Object:
        updating.prepare_create(served, new)
        normalizing.default(served, new)
        request = _admission_request("CREATE", served, new, None, options)
        new = await self._mutate(served, request)
        normalizing.validate(served, new, None)
        await self._validate(request)
        new = fields.track_create(served, new, options.field_manager)
        key = Key.of(served.kind, new["metadata"].get("namespace"), new["metadata"]["name"])
        if options.dry_run:
            if self.store.get(key) is not None:
                raise Exists(key)
            return new
        with _within_limits():
            return self._followed(served, self.store.create(key, new).object)

    async def update(
        self,
        kind: Kind,
        obj: Object,
        namespace: str | None = None,
        options: WriteOptions = INTERNAL,
        subresource: str = "",
    ) -> Object:
        """Replace the object (or, with ``subresource``, its ``status``, ``scale`` or ``finalize`` part).

        409 when ``obj`` carries another resourceVersion or UID than the present one.
        """
        served = self.served(kind)
        if subresource == "scale":
            return await self._scale(served, namespace, options, lambda present: obj, obj["metadata"]["name"])
        new = normalizing.decoded(served, updating.written_part(obj, subresource), namespace, options)
        metadata = new["metadata"]
        updating.require_version(served, new)
        change: Change = lambda present: normalizing.copy(new)  # noqa: E731
        return await self._write(
            served,
            metadata.get("namespace"),
            metadata["name"],
            change,
            options,
            subresource,
            version=metadata.get("resourceVersion"),
            uid=metadata.get("uid"),
        )

    async def patch(
        self,
        kind: Kind,
        namespace: str | None,
        name: str,
        patch: patches.Patch,
        options: WriteOptions = INTERNAL,
        subresource: str = "",
    ) -> Object:
        """Apply a patch (see :mod:`stromboli.localcluster.patching.patches`); server-side apply may create."""
        served = self.served(kind)
        if isinstance(patch, patches.ApplyPatch):
            return await self._apply(served, namespace, name, patch, options, subresource)
        if subresource == "scale":
            change: Change = lambda scale: patch.apply(ANYTHING, scale)  # noqa: E731
            return await self._scale(served, namespace, options, change, name)

        def patched(present: Object) -> Object:
            result = updating.written_part(patch.apply(served.schema, present), subresource)
            return normalizing.decoded(served, result, namespace, options, name=name)

        return await self._write(served, namespace, name, patched, options, subresource, patched=True)

    async def _apply(
        self,
        served: ServedKind,
        namespace: str | None,
        name: str,
        patch: patches.ApplyPatch,
        options: WriteOptions,
        subresource: str,
    ) -> Object:
        applied = normalizing.applied(served, patch.configuration, namespace, name, options)
        key = Key.of(served.kind, namespace, name)
        if self.store.get(key) is None and not subresource:
            new = fields.apply_to_nothing(served, applied, options.field_manager)
            if new["metadata"].get("uid"):
                raise statuses.conflict(
                    served.kind,
                    name,
                    "uid mismatch: the provided object specified uid "
                    f"{new['metadata']['uid']}, and no existing object was found",
                )
            return await self.create(served.kind, new, namespace, replace(options, field_manager=""))

        def merged(present: Object) -> Object:
            return fields.apply(served, present, applied, options.field_manager, options.force, subresource)

        return await self._write(
            served, namespace, name, merged, replace(options, field_manager=""), subresource, patched=True
        )

    async def _scale(
        self, served: ServedKind, namespace: str | None, options: WriteOptions, change: Change, name: str
    ) -> Object:
        def scaled(present: Object) -> Object:
            return scaling.scaled(served, present, change(scaling.scale_of(served, present)))

        result = await self._write(served, namespace, name, scaled, options, "scale", patched=True)
        return scaling.scale_of(served, result)

    async def _write(
        self,
        served: ServedKind,
        namespace: str | None,
        name: str,
        change: Change,
        options: WriteOptions,
        subresource: str,
        *,
        version: str | None = None,
        uid: str | None = None,
        patched: bool = False,
    ) -> Object:
        for _ in range(ATTEMPTS):
            old = self.read(served.kind, namespace, name)
            identities.check_preconditions(served.kind, old.object, uid, version)
            new = change(normalizing.copy(old.object))
            if patched:
                wanted = new["metadata"]
                identities.check_preconditions(
                    served.kind, old.object, wanted.get("uid"), wanted.get("resourceVersion")
                )
            try:
                return await self._replace(served, old, new, options, subresource)
            except Stale:
                continue
            except Missing as error:
                raise statuses.not_found(served.kind, name) from error
        raise statuses.conflict(served.kind, name)

    async def _replace(
        self, served: ServedKind, old: Stored, new: Object, options: WriteOptions, subresource: str
    ) -> Object:
        present = old.object
        # Parts of the present object are in the new one now; what follows may change them in place.
        new = normalizing.copy(updating.prepare_update(served, new, present, subresource))
        normalizing.default(served, new)
        request = _admission_request("UPDATE", served, new, present, options, subresource)
        new = await self._mutate(served, request)
        updating.bump_generation(served, new, present)
        normalizing.validate(served, new, present, subresource)
        await self._validate(request)
        new = fields.track_update(served, new, present, options.field_manager, subresource)
        if options.dry_run:
            return new
        if deleting.is_finished(served, new):
            gone = self.store.remove(old.key, old.revision).object
            self._unfollowed(served, gone)
            return {**new, "metadata": {**new["metadata"], "resourceVersion": gone["metadata"]["resourceVersion"]}}
        if new == present:
            return present
        with _within_limits():
            return self._followed(served, self.store.replace(old.key, new, old.revision).object)

    # Deleting

    async def delete(
        self, kind: Kind, namespace: str | None, name: str, options: DeleteOptions = INTERNAL_DELETE
    ) -> Deleted:
        """Delete: at once, or gracefully, or once finalizers are gone (then ``gone`` is False)."""
        served = self.served(kind)
        for _ in range(ATTEMPTS):
            old = self.read(kind, namespace, name)
            identities.check_deletion_preconditions(kind, old.object, options.uid, options.resource_version)
            await self._admit_deletion(served, old.object, options)
            try:
                deleted = self._delete(served, old, options)
                if served.kind == kinds.CUSTOM_RESOURCE_DEFINITIONS and not options.dry_run:
                    await self._delete_instances(deleted.obj)
                return deleted
            except Stale:
                continue
            except Missing as error:
                raise statuses.not_found(kind, name) from error
        raise statuses.conflict(kind, name)

    def _delete(self, served: ServedKind, old: Stored, options: DeleteOptions) -> Deleted:
        marked = deleting.marked(served, old.object, options)
        if options.dry_run:
            return Deleted(old.object if marked is None else marked, marked is None)
        if marked is None:
            gone = self.store.remove(old.key, old.revision).object
            self._unfollowed(served, gone)
            return Deleted(gone, True)
        if marked == old.object:
            return Deleted(old.object, False)
        return Deleted(self.store.replace(old.key, marked, old.revision).object, False)

    async def delete_collection(
        self,
        kind: Kind,
        namespace: str | None,
        selection: Selection | None = None,
        options: DeleteOptions = INTERNAL_DELETE,
    ) -> Listing:
        """Delete everything that matches; the answer lists what was there."""
        listing = await self.list(kind, namespace, selection)
        for stored in listing.items:
            try:
                await self.delete(kind, stored.key.namespace, stored.key.name, options)
            except statuses.StatusError as error:
                if error.reason != "NotFound":
                    raise
        return listing

    # Custom resource definitions

    def publish_definitions(self) -> None:
        """Serve what the stored definitions define (after a restore)."""
        for stored in self.store.list(kinds.CUSTOM_RESOURCE_DEFINITIONS):
            self._publish(stored.object)

    def _publish(self, definition: Object) -> None:
        served = definitions.served_kinds(definition)
        for kind in definitions.all_kinds(definition):
            if all(one.kind != kind for one in served):
                self.kinds.remove(kind)
        for one in served:
            self.kinds.add(one)

    def _followed(self, served: ServedKind, obj: Object) -> Object:
        if served.kind == kinds.CUSTOM_RESOURCE_DEFINITIONS:
            self._publish(obj)
        return obj

    def _unfollowed(self, served: ServedKind, gone: Object) -> None:
        """After a removal: the kinds of a definition are served no longer; the last object lets its definition go."""
        if served.kind == kinds.CUSTOM_RESOURCE_DEFINITIONS:
            for kind in definitions.all_kinds(gone):
                self.kinds.remove(kind)
        elif served.is_custom and self.store.count(served.kind) == 0:
            self._release_definition(served.kind)

    async def _delete_instances(self, definition: Object) -> None:
        kind = definitions.storage_kind(definition)
        if definitions.CLEANUP not in (definition["metadata"].get("finalizers") or ()):
            return
        if self.kinds.of(kind) is not None:
            await self.delete_collection(kind, None)
        if self.store.count(kind) == 0:
            self._release_definition(kind)

    def _release_definition(self, kind: Kind) -> None:
        definition = self.store.get(Key.of(kinds.CUSTOM_RESOURCE_DEFINITIONS, None, kind.resource))
        if definition is None or "deletionTimestamp" not in definition.object["metadata"]:
            return
        metadata = dict(definition.object["metadata"])
        finalizers = [one for one in metadata.get("finalizers") or () if one != definitions.CLEANUP]
        metadata["finalizers"] = finalizers
        if finalizers:
            self.store.replace(definition.key, {**definition.object, "metadata": metadata})
        else:
            gone = self.store.remove(definition.key).object
            self._unfollowed(self.served(kinds.CUSTOM_RESOURCE_DEFINITIONS), gone)

    # Admission

    async def _mutate(self, served: ServedKind, request: AdmissionRequest) -> Object:
        assert request.obj is not None
        if self.admission is None:
            return request.obj
        before = normalizing.encoded(request.obj)
        mutated = await self.admission.mutate(request)
        new = request.obj if mutated is None else mutated
        # Most admission changes nothing, and checking an object again costs more than all else.
        request.obj = new if normalizing.encoded(new) == before else normalizing.mutated(served, new)
        return request.obj

    async def _validate(self, request: AdmissionRequest) -> None:
        if self.admission is not None:
            await self.admission.validate(request)

    async def _admit_deletion(self, served: ServedKind, old: Object, options: DeleteOptions) -> None:
        if self.admission is None:
            return
        metadata = old["metadata"]
        request = AdmissionRequest(
            "DELETE",
            served.kind,
            metadata.get("namespace", ""),
            metadata["name"],
            None,
            old,
            options.user,
            dry_run=options.dry_run,
            options=deleting.wire_options(options),
            warn=options.warn,
        )
        await self.admission.mutate(request)
        await self.admission.validate(request)


@contextmanager
def _within_limits() -> Iterator[None]:
    try:
        yield
    except TooLarge as error:
        raise statuses.StatusError(500, "", "etcdserver: request is too large") from error


def _admission_request(
    operation: Operation,
    served: ServedKind,
    obj: Object,
    old: Object | None,
    options: WriteOptions,
    subresource: str = "",
) -> AdmissionRequest:
    metadata = obj["metadata"]
    kind = "CreateOptions" if operation == "CREATE" else "UpdateOptions"
    wire: Object = {"apiVersion": "meta.k8s.io/v1", "kind": kind}
    if options.field_manager:
        wire["fieldManager"] = options.field_manager
    if options.dry_run:
        wire["dryRun"] = ["All"]
    name = metadata["name"]
    namespace = name if served.kind == kinds.NAMESPACES else metadata.get("namespace", "")
    return AdmissionRequest(
        operation,
        served.kind,
        namespace,
        name,
        obj,
        old,
        options.user,
        subresource,
        options.dry_run,
        wire,
        options.warn,
    )
