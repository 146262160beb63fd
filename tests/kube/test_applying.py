from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api import kinds
from stromboli.kube import applying, json
from stromboli.kube.client import Client
from stromboli.kube.errors import Conflict, NotFound
from stromboli.kube.json import JsonObject
from stromboli.testing import patching
from stromboli.testing.apiserver import FakeApiServer
from tests.kube.objects import config_map, pod

# -- comparing -------------------------------------------------------------------------------------------------------


@dataclass
class Comparison:
    present: object
    wanted: object
    want: bool


COMPARISONS = {
    "equal": Comparison({"a": 1}, {"a": 1}, True),
    "more is there than wanted": Comparison({"a": 1, "b": 2}, {"a": 1}, True),
    "less is there than wanted": Comparison({"a": 1}, {"a": 1, "b": 2}, False),
    "different deep inside": Comparison({"a": {"b": [{"c": 1}]}}, {"a": {"b": [{"c": 2}]}}, False),
    "a list with defaults filled in": Comparison([{"a": 1, "default": True}], [{"a": 1}], True),
    "a longer list": Comparison([1, 2], [1], False),
    "a list in another order": Comparison([2, 1], [1, 2], False),
    "true is not one": Comparison({"a": True}, {"a": 1}, False),
    "wanted absent and absent": Comparison({}, {"a": None}, True),
    "wanted absent and there": Comparison({"a": 1}, {"a": None}, False),
    "a map where text is wanted": Comparison({"a": {}}, {"a": "x"}, False),
}


@pytest.mark.parametrize("case", COMPARISONS.values(), ids=COMPARISONS.keys())
def test_covers(case: Comparison) -> None:
    assert applying.covers(case.present, case.wanted) is case.want


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4)


@given(old=OBJECTS, new=OBJECTS)
def test_a_merge_patch_makes_the_new_of_the_old_and_is_empty_only_when_nothing_changes(
    old: JsonObject, new: JsonObject
) -> None:
    patch = applying.merge_patch(old, new)
    assert json.encode(_sorted(patching.merge(old, patch))) == json.encode(_sorted(new))
    assert (patch == {}) == (json.encode(_sorted(old)) == json.encode(_sorted(new)))


@given(obj=OBJECTS)
def test_everything_covers_itself(obj: JsonObject) -> None:
    assert applying.covers(obj, obj)


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_sorted(item) for item in value]
    return value


# -- applying --------------------------------------------------------------------------------------------------------


async def test_apply_writes_once(client: Client, server: FakeApiServer) -> None:
    wanted = config_map("a", color="red")
    first = await applying.apply(client, kinds.CONFIG_MAPS, wanted, field_manager="test")
    again = await applying.apply(client, kinds.CONFIG_MAPS, wanted, field_manager="test", present=first)
    assert again is first
    assert server.count("patch") == 1


async def test_apply_with_a_uid_writes_to_no_namesake(client: Client, server: FakeApiServer) -> None:
    server.put(kinds.CONFIG_MAPS, config_map("a", color="red"))
    wanted = config_map("a", color="blue")
    wanted["metadata"]["uid"] = "somebody-else"
    with pytest.raises(Conflict):
        await applying.apply(client, kinds.CONFIG_MAPS, wanted, field_manager="test")
    assert server.get(kinds.CONFIG_MAPS, "a", "default")["data"] == {"color": "red"}


async def test_changes_are_sent_as_a_small_patch_and_nothing_is_sent_for_nothing(
    client: Client, server: FakeApiServer
) -> None:
    old = server.put(kinds.PODS, pod("a"))
    new = {**old, "status": {"phase": "Running"}}
    written = await applying.patch_changes(client, kinds.PODS, old, new, subresource="status")
    assert written["status"] == {"phase": "Running"}
    assert await applying.patch_changes(client, kinds.PODS, written, written) is written
    assert server.count("patch") == 1


async def test_changes_do_not_land_on_a_namesake(client: Client, server: FakeApiServer) -> None:
    old = server.put(kinds.PODS, pod("a"))
    server.remove(kinds.PODS, "a", "default")
    server.put(kinds.PODS, pod("a"))
    with pytest.raises(Conflict):
        await applying.patch_changes(client, kinds.PODS, old, {**old, "spec": {}})


async def test_locked_changes_conflict_with_any_other_write(client: Client, server: FakeApiServer) -> None:
    old = server.put(kinds.PODS, pod("a"))
    server.put(kinds.PODS, pod("a", touched="yes"))
    with pytest.raises(Conflict):
        await applying.patch_changes(client, kinds.PODS, old, {**old, "spec": {}}, lock=True)
    await applying.patch_changes(client, kinds.PODS, old, {**old, "spec": {"nodeName": "n"}})
    assert server.get(kinds.PODS, "a", "default")["metadata"]["labels"] == {"touched": "yes"}


# -- creating and deleting -------------------------------------------------------------------------------------------


async def test_create_if_absent_creates_once(client: Client, server: FakeApiServer) -> None:
    first, created = await applying.create_if_absent(client, kinds.CONFIG_MAPS, config_map("a", color="red"))
    second, again = await applying.create_if_absent(client, kinds.CONFIG_MAPS, config_map("a", color="blue"))
    assert (created, again) == (True, False)
    assert second == first


async def test_create_if_absent_wins_against_a_deletion_in_between(client: Client, server: FakeApiServer) -> None:
    server.faults.fail(409, verb="create", reason="AlreadyExists", times=2)
    _, created = await applying.create_if_absent(client, kinds.CONFIG_MAPS, config_map("a"))
    assert created
    assert server.count("create") == 3


async def test_create_if_absent_does_not_try_for_ever(client: Client, server: FakeApiServer) -> None:
    server.faults.fail(409, verb="create", reason="AlreadyExists", times=None)
    with pytest.raises(NotFound):
        await applying.create_if_absent(client, kinds.CONFIG_MAPS, config_map("a"))


async def test_delete_if_present_spares_namesakes(client: Client, server: FakeApiServer) -> None:
    stored = server.put(kinds.PODS, pod("a"))
    assert not await applying.delete_if_present(client, kinds.PODS, "a", "default", uid="somebody-else")
    assert await applying.delete_if_present(client, kinds.PODS, "a", "default", uid=stored["metadata"]["uid"])
    assert not await applying.delete_if_present(client, kinds.PODS, "a", "default")


async def test_a_conflict_over_the_object_itself_is_no_deletion(client: Client, server: FakeApiServer) -> None:
    stored = server.put(kinds.PODS, pod("a"))
    server.faults.fail(409, verb="delete", reason="Conflict")
    with pytest.raises(Conflict):
        await applying.delete_if_present(client, kinds.PODS, "a", "default", uid=stored["metadata"]["uid"])


# -- updating --------------------------------------------------------------------------------------------------------


def paint(color: str) -> Any:
    def change(obj: JsonObject) -> JsonObject:
        obj["data"]["color"] = color
        return obj

    return change


async def test_an_update_is_repeated_on_the_present_state_after_a_conflict(
    client: Client, server: FakeApiServer
) -> None:
    server.put(kinds.CONFIG_MAPS, config_map("a", color="red"))
    server.faults.fail(409, verb="update", reason="Conflict", times=2)
    written = await applying.update_with_retry(client, kinds.CONFIG_MAPS, "a", "default", paint("blue"))
    assert written["data"]["color"] == "blue"
    assert (server.count("get"), server.count("update")) == (3, 3)


async def test_an_update_that_changes_nothing_is_not_sent(client: Client, server: FakeApiServer) -> None:
    server.put(kinds.CONFIG_MAPS, config_map("a", color="red"))
    await applying.update_with_retry(client, kinds.CONFIG_MAPS, "a", "default", paint("red"))
    await applying.update_with_retry(client, kinds.CONFIG_MAPS, "a", "default", lambda obj: None)
    assert server.count("update") == 0


async def test_an_update_is_for_the_object_meant_only(client: Client, server: FakeApiServer) -> None:
    server.put(kinds.CONFIG_MAPS, config_map("a", color="red"))
    with pytest.raises(NotFound, match="with UID other is gone"):
        await applying.update_with_retry(client, kinds.CONFIG_MAPS, "a", "default", paint("blue"), uid="other")


async def test_an_update_does_not_fight_for_ever(client: Client, server: FakeApiServer) -> None:
    server.put(kinds.CONFIG_MAPS, config_map("a", color="red"))
    server.faults.fail(409, verb="update", reason="Conflict", times=None)
    with pytest.raises(Conflict):
        await applying.update_with_retry(client, kinds.CONFIG_MAPS, "a", "default", paint("blue"))
    assert server.count("update") == applying.ATTEMPTS


# -- finalizers ------------------------------------------------------------------------------------------------------

FINALIZER = "volcano.sh/test"


async def test_a_finalizer_holds_an_object_until_it_is_removed(client: Client, server: FakeApiServer) -> None:
    held = await applying.add_finalizer(client, kinds.PODS, server.put(kinds.PODS, pod("a")), FINALIZER)
    assert await applying.add_finalizer(client, kinds.PODS, held, FINALIZER) is held
    await client.delete(kinds.PODS, "a", "default")
    dying = server.get(kinds.PODS, "a", "default")
    assert dying["metadata"]["deletionTimestamp"]
    await applying.remove_finalizer(client, kinds.PODS, dying, FINALIZER)
    assert server.objects(kinds.PODS) == []
    assert await applying.remove_finalizer(client, kinds.PODS, dying, FINALIZER) is None


async def test_the_finalizers_of_others_survive_even_when_they_came_meanwhile(
    client: Client, server: FakeApiServer
) -> None:
    stale = server.put(kinds.PODS, pod("a"))
    await applying.add_finalizer(client, kinds.PODS, stale, "example.com/other")
    both = await applying.add_finalizer(client, kinds.PODS, stale, FINALIZER)
    assert both["metadata"]["finalizers"] == ["example.com/other", FINALIZER]
    left = await applying.remove_finalizer(client, kinds.PODS, both, FINALIZER)
    assert left and left["metadata"]["finalizers"] == ["example.com/other"]
    assert await applying.remove_finalizer(client, kinds.PODS, left, FINALIZER) is left


async def test_a_finalizer_is_not_put_on_a_namesake(client: Client, server: FakeApiServer) -> None:
    old = server.put(kinds.PODS, pod("a"))
    server.remove(kinds.PODS, "a", "default")
    server.put(kinds.PODS, pod("a"))
    with pytest.raises(NotFound):
        await applying.add_finalizer(client, kinds.PODS, old, FINALIZER)
