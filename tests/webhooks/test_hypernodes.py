import time

import pytest

from stromboli.webhooks.shapes import JsonObject
from tests.webhooks.building import decide

PATH = "/hypernodes/validate"


def node(*patterns: str) -> JsonObject:
    members = [{"type": "Node", "selector": {"regexMatch": {"pattern": pattern}}} for pattern in patterns]
    return {"metadata": {"name": "h"}, "spec": {"tier": 1, "members": members}}


GOOD = ["node-[0-9]+", "(?P<n>a)", "(?<n>a)", "(?i)node", r"\pN", r"[[:alpha:]]\d", "a{1000}", "^a|b$"]
BAD = {
    "a(b": "missing closing ): `a(b`",
    "b[": "missing closing ]: `[`",
    "a)b": "unexpected ): `a)b`",
    "*a": "missing argument to repetition operator: `*`",
    "a**": "invalid nested repetition operator: `**`",
    "a{1001}": "invalid repeat count: `{1001}`",
    "(?=a)": "invalid or unsupported Perl syntax: `(?=`",
    r"\1": r"invalid escape sequence: `\1`",
    r"node\Z": r"invalid escape sequence: `\Z`",
    "[z-a]": "invalid character class range: `z-a`",
    "a\\": "trailing backslash at end of expression: ``",
}


@pytest.mark.parametrize("pattern", GOOD)
def test_a_pattern_is_accepted(pattern: str) -> None:
    assert decide(PATH, node(pattern)).allowed


@pytest.mark.parametrize("pattern", BAD)
def test_a_pattern_is_refused(pattern: str) -> None:
    verdict = decide(PATH, node(pattern), node())
    assert not verdict.allowed
    assert verdict.message.endswith(f"member regexMatch pattern is invalid: error parsing regexp: {BAD[pattern]}")


def test_members_are_needed() -> None:
    text = "[].spec.members: Invalid value: {}: member must have at least one member"
    assert decide(PATH, node()).message == text.format("[]")
    assert decide(PATH, {"metadata": {"name": "h"}}).message == text.format("null")


def test_the_same_fault_is_told_once_and_two_in_brackets() -> None:
    once = decide(PATH, node("a(", "a(")).message
    assert once.count("missing closing )") == 1
    both = decide(PATH, node("a(", "b[")).message
    assert both.startswith("[[].spec.members.selector") and both.endswith("]")


def test_selectors_are_the_schemas_business_and_other_operations_nobodys() -> None:
    assert decide(PATH, {"metadata": {"name": "h"}, "spec": {"members": [{"type": "Node"}]}}).allowed
    assert decide(PATH, None, node("a("), operation="DELETE").allowed


def test_a_hostile_pattern_is_judged_quickly() -> None:
    started = time.perf_counter()
    for pattern in ("(a+)+$" * 1000, "(" * 5000, "a{1000}{1000}", "(a{100}){100}{100}"):
        decide(PATH, node(pattern))
    assert time.perf_counter() - started < 2
