from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.kube.informers import identity_of
from stromboli.kube.stores import Identity, PackedStore, Store

Thing = tuple[str, ...]

STEPS = st.lists(
    st.tuples(st.sampled_from("abc"), st.none() | st.lists(st.sampled_from("xyz"), max_size=3).map(tuple)),
    max_size=40,
)


def identity(name: str) -> Identity:
    return Identity("ns", name, f"uid-{name}", "1")


@given(steps=STEPS)
def test_indexes_always_agree_with_the_objects(steps: list[tuple[str, Thing | None]]) -> None:
    store: Store[Thing] = Store({"letters": lambda thing: thing})
    model: dict[str, Thing] = {}
    for name, thing in steps:
        if thing is None:
            store.remove(("ns", name))
            model.pop(name, None)
        else:
            store.put(identity(name), thing)
            model[name] = thing
        for letter in "xyz":
            want = sorted(thing for thing in model.values() if letter in thing)
            assert sorted(store.by_index("letters", letter)) == want
    assert sorted(store) == sorted(model.values())
    assert len(store) == len(model)


def test_an_index_added_later_covers_what_is_there() -> None:
    store: Store[Thing] = Store()
    store.put(identity("a"), ("x",))
    store.add_index("letters", lambda thing: thing)
    assert store.by_index("letters", "x") == (("x",),)
    with pytest.raises(KeyError):
        store.by_index("unknown", "x")


def test_a_failing_index_function_changes_nothing() -> None:
    def picky(thing: Thing) -> Thing:
        if "bad" in thing:
            raise ValueError("bad")
        return thing

    store: Store[Thing] = Store({"letters": picky})
    store.put(identity("a"), ("x",))
    with pytest.raises(ValueError, match="bad"):
        store.put(identity("a"), ("bad",))
    assert store.get(("ns", "a")) == ("x",)
    assert store.by_index("letters", "x") == (("x",),)


def test_objects_are_found_by_namespace() -> None:
    store: Store[Thing] = Store()
    store.put(Identity("one", "a", "1", "1"), ("x",))
    store.put(Identity("two", "a", "2", "1"), ("y",))
    assert store.list("two") == [("y",)]
    assert store.list() == [("x",), ("y",)]
    assert ("one", "a") in store and ("three", "a") not in store


def test_identity_is_read_from_dictionaries_and_attributes() -> None:
    class Meta:
        namespace, name, uid, resource_version = "ns", "n", "u", "7"

    class Thing:
        metadata = Meta()

    plain = {"metadata": {"namespace": "ns", "name": "n", "uid": "u", "resourceVersion": "7"}}
    assert identity_of(plain) == identity_of(Thing()) == Identity("ns", "n", "u", "7")
    with pytest.raises(ValueError, match="no metadata.name"):
        identity_of({"metadata": {}})


class TestPackedStore:
    """Plain objects kept as JSON."""

    @pytest.fixture
    def store(self) -> PackedStore:
        store = PackedStore({"phase": lambda obj: (obj["status"]["phase"],)})
        store.put(identity("a"), {"metadata": {"name": "a"}, "status": {"phase": "Running", "nodes": [1, 2.5, None]}})
        return store

    def test_what_comes_out_is_what_went_in(self, store: PackedStore) -> None:
        want = {"metadata": {"name": "a"}, "status": {"phase": "Running", "nodes": [1, 2.5, None]}}
        assert store.get(("ns", "a")) == want
        assert store.list() == store.list("ns") == list(store) == [want]
        assert store.by_index("phase", "Running") == (want,)
        assert store.keys_by_index("phase", "Running") == (("ns", "a"),)
        assert store.identity(("ns", "a")) == identity("a")

    def test_what_a_reader_does_to_its_copy_is_its_own_affair(self, store: PackedStore) -> None:
        taken = store.get(("ns", "a"))
        assert taken is not None
        taken["status"]["phase"] = "Failed"
        assert store.by_index("phase", "Running")[0]["status"]["phase"] == "Running"

    def test_what_is_replaced_and_removed_is_given_back_as_an_object(self, store: PackedStore) -> None:
        replaced = store.put(identity("a"), {"status": {"phase": "Completed"}})
        assert replaced is not None
        assert replaced.obj["status"]["phase"] == "Running"
        removed = store.remove(("ns", "a"))
        assert removed is not None
        assert removed.obj == {"status": {"phase": "Completed"}}
        for ask in (store.get, store.identity):
            assert ask(("ns", "a")) is None
        assert store.keys_by_index("phase", "Completed") == ()

    def test_an_index_added_later_covers_what_is_there(self, store: PackedStore) -> None:
        store.add_index("size", lambda obj: (str(len(obj["status"]["nodes"])),))
        assert store.keys_by_index("size", "3") == (("ns", "a"),)
