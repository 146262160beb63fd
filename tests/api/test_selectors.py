"""Selectors in text and structure, fields, node terms, tolerations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api import core, selectors
from stromboli.api.selectors import BadSelector, LabelSelector

TEXT: dict[str, tuple[str, dict[str, str], bool]] = {
    "nothing matches everything": ("", {}, True),
    "blank": ("  ", {"a": "b"}, True),
    "equal": ("a=b", {"a": "b"}, True),
    "double equal": ("a==b", {"a": "b"}, True),
    "different value": ("a=b", {"a": "c"}, False),
    "absent key": ("a=b", {}, False),
    "empty value": ("a=", {"a": ""}, True),
    "unequal": ("a!=b", {"a": "c"}, True),
    "unequal holds for an absent key": ("a!=b", {}, True),
    "in": ("a in (x, y)", {"a": "y"}, True),
    "not in a set": ("a in (x,y)", {"a": "z"}, False),
    "notin": ("a notin (x,y)", {"a": "x"}, False),
    "notin holds for an absent key": ("a notin (x,y)", {}, True),
    "exists": ("a", {"a": ""}, True),
    "exists not": ("!a", {"a": ""}, False),
    "exists not, spaced": ("! a", {}, True),
    "greater": ("a>5", {"a": "6"}, True),
    "greater needs a number": ("a>5", {"a": "six"}, False),
    "less": ("a<5", {"a": "5"}, False),
    "all must hold": ("a=b,c!=d,e in (x,y),!f", {"a": "b", "e": "x"}, True),
    "one does not hold": ("a=b,c!=d,e in (x,y),!f", {"a": "b", "e": "x", "f": ""}, False),
    "keys with a domain": ("volcano.sh/job-name=x", {"volcano.sh/job-name": "x"}, True),
    "a key called in": ("in=x", {"in": "x"}, True),
}


@pytest.mark.parametrize("name", TEXT)
def test_text_selector(name: str) -> None:
    text, labels, want = TEXT[name]
    assert LabelSelector.parse(text).matches(labels) is want


@pytest.mark.parametrize("text", ["a=b,", ",", "=b", "a in x", "a in (x", "a in", "!", "a b", "a>x", "a!b", "(a)"])
def test_bad_text_is_refused_with_the_text(text: str) -> None:
    with pytest.raises(BadSelector):
        LabelSelector.parse(text)


def structured(*expressions: tuple[str, str, tuple[str, ...]], **labels: str) -> core.LabelSelector:
    items = tuple(core.Requirement(key=key, operator=op, values=values) for key, op, values in expressions)
    return core.LabelSelector(match_labels=labels, match_expressions=items)


STRUCTURED: dict[str, tuple[core.LabelSelector, dict[str, str], bool]] = {
    "empty": (structured(), {"x": "y"}, True),
    "labels": (structured(app="test"), {"app": "test"}, True),
    "labels and expressions": (structured(("tier", "Exists", ()), app="test"), {"app": "test"}, False),
    "in": (structured(("app", "In", ("test", "demo"))), {"app": "demo"}, True),
    "not in": (structured(("app", "NotIn", ("test",))), {}, True),
    "does not exist": (structured(("app", "DoesNotExist", ())), {"app": "x"}, False),
    "an unknown operator matches nothing": (structured(("app", "Invalid", ("x",))), {"app": "x"}, False),
    "In without values matches nothing": (structured(("app", "In", ())), {"app": "x"}, False),
    "Exists with values matches nothing": (structured(("app", "Exists", ("x",))), {"app": "x"}, False),
    "labels have no Gt": (structured(("app", "Gt", ("1",))), {"app": "2"}, False),
}


@pytest.mark.parametrize("name", STRUCTURED)
def test_structured_selector(name: str) -> None:
    selector, labels, want = STRUCTURED[name]
    assert selectors.matches_selector(selector, labels, absent=True) is want


def test_an_absent_selector_answers_what_the_field_says() -> None:
    assert selectors.matches_selector(None, {}, absent=True)
    assert not selectors.matches_selector(None, {}, absent=False)


def test_a_bad_structured_selector_names_key_and_operator() -> None:
    with pytest.raises(BadSelector, match=r"app: operator 'Invalid' is not one of In, NotIn, Exists, DoesNotExist$"):
        LabelSelector.of(structured(("app", "Invalid", ())))


keys = st.sampled_from(["a", "b.c/d", "in", "x_y"])
values = st.sampled_from(["", "x", "1", "a-b"])
requirements = st.one_of(
    st.builds(selectors.Requirement, keys, st.sampled_from(["Exists", "DoesNotExist"])),
    st.builds(
        selectors.Requirement,
        keys,
        st.sampled_from(["In", "NotIn"]),
        st.sets(values, min_size=1).map(lambda found: tuple(sorted(found))),
    ),
    st.builds(selectors.Requirement, keys, st.sampled_from(["Gt", "Lt"]), st.integers().map(lambda n: (str(n),))),
)


@given(st.lists(requirements, max_size=4), st.dictionaries(keys, values))
def test_the_text_of_a_selector_selects_the_same(found: list[selectors.Requirement], labels: dict[str, str]) -> None:
    selector = LabelSelector(tuple(found))
    again = LabelSelector.parse(str(selector))
    assert again == selector
    assert again.matches(labels) == selector.matches(labels)


POD = {"metadata": {"name": "p"}, "spec": {"nodeName": "n1", "hostNetwork": True}, "status": {"phase": "Running"}}
FIELDS: dict[str, bool] = {
    "": True,
    "spec.nodeName=n1": True,
    "spec.nodeName==n2": False,
    "status.phase!=Succeeded,status.phase!=Failed": True,
    "metadata.namespace=": True,
    "spec.hostNetwork=true": True,
    "spec.nodeName!=n1,metadata.name=p": False,
}


@pytest.mark.parametrize("text", FIELDS)
def test_field_selector(text: str) -> None:
    assert selectors.parse_field_selector(text).matches(POD) is FIELDS[text]


def test_escaped_commas_belong_to_the_value() -> None:
    selector = selectors.parse_field_selector(r"a=x\,y,b!=z")
    assert selector.matches({"a": "x,y"})
    assert selectors.parse_field_selector(str(selector)) == selector


@pytest.mark.parametrize("text", ["a", "=b", "a>b"])
def test_bad_field_selectors_are_refused(text: str) -> None:
    with pytest.raises(BadSelector, match="field selector"):
        selectors.parse_field_selector(text)


NODE = core.Node(metadata=core.ObjectMeta(name="n1", labels={"zone": "a", "cores": "16"}))


def term(*labels: tuple[str, str, tuple[str, ...]], name: tuple[str, tuple[str, ...]] | None = None) -> bool:
    items = tuple(core.Requirement(key=key, operator=op, values=values) for key, op, values in labels)
    fields = (core.Requirement(key="metadata.name", operator=name[0], values=name[1]),) if name else ()
    return selectors.matches_node_term(core.NodeSelectorTerm(match_expressions=items, match_fields=fields), NODE)


TERMS: dict[str, tuple[bool, bool]] = {
    "an empty term matches nothing": (term(), False),
    "in": (term(("zone", "In", ("a", "b"))), True),
    "greater": (term(("cores", "Gt", ("8",))), True),
    "greater is strict": (term(("cores", "Gt", ("16",))), False),
    "less": (term(("cores", "Lt", ("32",))), True),
    "less needs a number": (term(("zone", "Lt", ("32",))), False),
    "greater needs one number": (term(("cores", "Gt", ("8", "9"))), False),
    "by name": (term(name=("In", ("n1",))), True),
    "by another name": (term(name=("NotIn", ("n1",))), False),
    "names take one value": (term(name=("In", ("n1", "n2"))), False),
    "label and name": (term(("zone", "Exists", ()), name=("In", ("n1",))), True),
    "unknown operator": (term(("zone", "Like", ("a",))), False),
}


@pytest.mark.parametrize("name", TERMS)
def test_node_selector_term(name: str) -> None:
    found, want = TERMS[name]
    assert found is want


TOLERATED: dict[str, tuple[core.Toleration, core.Taint, bool]] = {
    "same key and value": (
        core.Toleration(key="k", value="v", effect="NoSchedule"),
        core.Taint(key="k", value="v", effect="NoSchedule"),
        True,
    ),
    "other value": (core.Toleration(key="k", value="w"), core.Taint(key="k", value="v"), False),
    "other effect": (
        core.Toleration(key="k", operator="Exists", effect="NoExecute"),
        core.Taint(key="k", effect="NoSchedule"),
        False,
    ),
    "no effect means all": (core.Toleration(key="k", operator="Exists"), core.Taint(key="k", effect="NoExecute"), True),
    "everything": (core.Toleration(operator="Exists"), core.Taint(key="k", value="v", effect="NoSchedule"), True),
    "no key without Exists is nothing": (core.Toleration(value="v"), core.Taint(key="k", value="v"), False),
    "unknown operator": (core.Toleration(key="k", operator="Like", value="v"), core.Taint(key="k", value="v"), False),
    "greater": (core.Toleration(key="k", operator="Gt", value="5"), core.Taint(key="k", value="6"), True),
    "less needs numbers": (core.Toleration(key="k", operator="Lt", value="5"), core.Taint(key="k", value="x"), False),
}


@pytest.mark.parametrize("name", TOLERATED)
def test_toleration(name: str) -> None:
    toleration, taint, want = TOLERATED[name]
    assert selectors.tolerates(toleration, taint) is want


def test_only_taints_that_keep_pods_off_are_looked_for() -> None:
    soft = core.Taint(key="soft", effect="PreferNoSchedule")
    hard = core.Taint(key="hard", effect="NoSchedule")
    assert selectors.untolerated([soft, hard], []) == hard
    assert selectors.untolerated([soft, hard], [core.Toleration(key="hard", operator="Exists")]) is None
    assert selectors.untolerated([soft], [], ["PreferNoSchedule"]) == soft
