from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.kube import errors
from stromboli.kube.retrying import MAX_ATTEMPTS, Backoff, Retry, decide, is_transient, retry_after_seconds


@dataclass
class Case:
    method: str
    error: errors.KubeError
    want: Retry | None
    attempt: int = 1


THROTTLED = errors.from_status({"code": 429}, retry_after=2)

CASES = {
    "a read after a 500": Case("GET", errors.from_status({"code": 500}), Retry(None)),
    "a read after a 503 with a hint": Case("GET", errors.from_status({"code": 503}, retry_after=3), Retry(3)),
    "a write after a 503 with a hint": Case("POST", errors.from_status({"code": 503}, retry_after=3), None),
    "a read that was throttled": Case("GET", THROTTLED, Retry(2)),
    "a write that was throttled": Case("PATCH", THROTTLED, Retry(2)),
    "throttled with the hint in the body": Case(
        "POST", errors.from_status({"code": 429, "details": {"retryAfterSeconds": 5}}), Retry(5)
    ),
    "throttled without a hint": Case("GET", errors.from_status({"code": 429}), None),
    "no answer to a read": Case("GET", errors.Unreachable("cut"), Retry(None)),
    "no answer to a write": Case("DELETE", errors.Unreachable("cut"), None),
    "a write that never left": Case("POST", errors.Unreachable("refused", sent=False), Retry(None)),
    "not found": Case("GET", errors.from_status({"code": 404}), None),
    "a conflict": Case("PUT", errors.from_status({"code": 409}), None),
    "the last attempt": Case("GET", THROTTLED, None, attempt=MAX_ATTEMPTS),
    "an answer that is no JSON": Case("GET", errors.MalformedAnswer("html"), None),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_decide(case: Case) -> None:
    assert decide(case.method, case.error, case.attempt) == case.want


@pytest.mark.parametrize(
    ("header", "want"), [(None, None), ("3", 3.0), ("0.5", 0.5), ("-1", 0.0), ("Wed, 21 Oct 2026 07:28:00 GMT", None)]
)
def test_retry_after_headers(header: str | None, want: float | None) -> None:
    assert retry_after_seconds(header) == want


@given(failures=st.integers(1, 200), first=st.floats(0.001, 5), maximum=st.floats(5, 100))
def test_delays_never_exceed_the_maximum_and_start_anew_after_success(
    failures: int, first: float, maximum: float
) -> None:
    backoff = Backoff(first=first, maximum=maximum)
    delays = [backoff.next() for _ in range(failures)]
    assert all(first / 2 <= delay <= maximum for delay in delays)
    assert backoff.failures == failures
    backoff.reset()
    assert first / 2 <= backoff.next() <= first


def test_what_may_pass_by_itself() -> None:
    assert is_transient(errors.Unreachable("cut"))
    assert is_transient(errors.from_status({"code": 503}))
    assert is_transient(errors.from_status({"code": 429}))
    assert not is_transient(errors.from_status({"code": 403}))
    assert not is_transient(ValueError("bug"))
