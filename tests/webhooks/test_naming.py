import time

import pytest

from stromboli.webhooks import naming

QUALIFIED = {
    "MyName": [],
    "my.name": [],
    "123-abc": [],
    "a" * 63: [],
    "example.com/Name": [],
    "a" * 64: ["name part must be no more than 63 bytes"],
    "example.com/": ["name part must be non-empty", "name part must consist of"],
    "": ["name part must be non-empty", "name part must consist of"],
    "bad_": ["name part must consist of"],
    "/name": ["prefix part must be non-empty"],
    "Up/name": ["prefix part a lowercase RFC 1123 subdomain"],
    "a/b/c": ["a qualified name must consist of"],
    "é": ["name part must consist of"],
    "a\n": ["name part must consist of"],
}


@pytest.mark.parametrize("name", QUALIFIED)
def test_qualified_names(name: str) -> None:
    found = naming.qualified_name_faults(name)
    assert len(found) == len(QUALIFIED[name])
    for fault, start in zip(found, QUALIFIED[name], strict=True):
        assert fault.startswith(start)


@pytest.mark.parametrize("name", ["a", "a-b.c-d", "1.2.3", "a" * 63 + "." + "b" * 63])
def test_good_subdomains(name: str) -> None:
    assert naming.dns_subdomain_faults(name) == []


@pytest.mark.parametrize("name", ["", "A", "a..b", "-a", "a.", "a_b", "a" * 254])
def test_bad_subdomains(name: str) -> None:
    assert naming.dns_subdomain_faults(name)


@pytest.mark.parametrize(("name", "good"), [("a-1", True), ("a.b", False), ("", False), ("a" * 64, False)])
def test_labels(name: str, good: bool) -> None:
    assert (naming.dns_label_faults(name) == []) is good


@pytest.mark.parametrize(("value", "good"), [("", True), ("My_Value.1", True), ("bad value!", False), ("-a", False)])
def test_label_values(value: str, good: bool) -> None:
    assert (naming.label_value_faults(value) == []) is good


def test_hostile_names_cost_no_more_than_their_length() -> None:
    started = time.perf_counter()
    for name in ("-" * 100_000, "a-" * 100_000 + "!", "a." * 100_000 + "!", "a/" * 100_000):
        naming.qualified_name_faults(name)
        naming.dns_subdomain_faults(name)
        naming.label_value_faults(name)
    assert time.perf_counter() - started < 2
