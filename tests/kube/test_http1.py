"""Requests as bytes, and answers in whatever pieces they arrive."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.kube import http1
from stromboli.kube.http1 import Answer, AnswerReader, BadAnswer, compose, target

# -- requests --------------------------------------------------------------------------------------------------------


def test_a_request_says_who_is_asked_and_how_long_its_body_is() -> None:
    raw = compose("POST", "/api/v1/pods", {"Host": "one:6443", "Accept": "application/json"}, b"{}")
    assert (
        raw
        == b"POST /api/v1/pods HTTP/1.1\r\nHost: one:6443\r\nAccept: application/json\r\nContent-Length: 2\r\n\r\n{}"
    )


@dataclass
class Sized:
    method: str
    body: bytes | None
    want: bool


SIZED = {
    "a delete without a body": Sized("DELETE", None, want=False),
    "a delete with options": Sized("DELETE", b"{}", want=True),
    "a post without a body": Sized("POST", None, want=True),
    "an empty patch": Sized("PATCH", b"", want=True),
}


@pytest.mark.parametrize("case", SIZED.values(), ids=SIZED.keys())
def test_a_length_is_given_where_servers_want_one(case: Sized) -> None:
    assert (b"Content-Length" in compose(case.method, "/", {}, case.body)) is case.want


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\rb", "a\0b"])
def test_a_header_cannot_break_out_of_its_line(value: str) -> None:
    with pytest.raises(ValueError, match="line break"):
        compose("POST", "/", {"Authorization": value}, None)


TARGETS = {
    "plain": ("/api/v1/namespaces/ns/pods/p-1.x", {}, "/api/v1/namespaces/ns/pods/p-1.x"),
    "a colon stays": ("/apis/rbac/clusterroles/system:admin", {}, "/apis/rbac/clusterroles/system:admin"),
    "what would end the path": ("/a b?c#d%e", {}, "/a%20b%3Fc%23d%25e"),
    "a line break": ("/a\r\nHost: b", {}, "/a%0D%0AHost:%20b"),
    "parameters": ("/p", {"dryRun": "All", "selector": "a in (b,c)"}, "/p?dryRun=All&selector=a+in+%28b%2Cc%29"),
}  # fmt: skip


@pytest.mark.parametrize(("path", "query", "want"), TARGETS.values(), ids=TARGETS.keys())
def test_paths_and_parameters_are_quoted(path: str, query: dict[str, str], want: str) -> None:
    assert target(path, query) == want


# -- answers ---------------------------------------------------------------------------------------------------------

HEAD = b"HTTP/1.1 201 Created\r\nAudit-Id: 1\r\nContent-Type: application/json\r\n"


@dataclass
class Given:
    raw: bytes
    want: Answer


ANSWERS = {
    "of a known length": Given(HEAD + b"Content-Length: 4\r\n\r\nbody", Answer(201, b"body")),
    "empty": Given(HEAD + b"Content-Length: 0\r\n\r\n", Answer(201, b"")),
    "in chunks": Given(
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nbod\r\n1;why=not\r\ny\r\n0\r\n\r\n", Answer(201, b"body")
    ),
    "in chunks with a trailer": Given(
        HEAD + b"transfer-encoding: Chunked\r\n\r\nA\r\n0123456789\r\n0\r\nX-Sum: 1\r\n\r\n", Answer(201, b"0123456789")
    ),
    "without content": Given(b"HTTP/1.1 204 No Content\r\n\r\n", Answer(204, b"")),
    "after an interim one": Given(
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", Answer(200, b"x")
    ),
    "of a throttling server": Given(
        b"HTTP/1.1 429 Too Many Requests\r\nRetry-After:  7 \r\nContent-Length: 2\r\n\r\n{}", Answer(429, b"{}", "7")
    ),
    "before the server closes": Given(
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", Answer(200, b"x", keep_alive=False)
    ),
    "of an old server": Given(
        b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", Answer(200, b"x", keep_alive=False)
    ),
    "of an old server that keeps connections": Given(
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx", Answer(200, b"x")
    ),
    "with fields that say nothing": Given(HEAD + b"X:\r\nY: \r\nContent-Length: 4\r\n\r\nbody", Answer(201, b"body")),
    "with a trailer that could be a head": Given(
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nRetry-After: 7\r\nContent-Encoding: gzip\r\n\r\n",
        Answer(201, b"x"),
    ),
    "after an interim one that names a file": Given(
        b"HTTP/1.1 103 Early Hints\r\nRetry-After: 7\r\n\r\n" + HEAD + b"Content-Length: 1\r\n\r\nx", Answer(201, b"x")
    ),
    "without a reason": Given(b"HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx", Answer(200, b"x")),
}  # fmt: skip


@pytest.mark.parametrize("case", ANSWERS.values(), ids=ANSWERS.keys())
def test_an_answer_is_read(case: Given) -> None:
    assert AnswerReader().feed(case.raw) == case.want


@given(st.sampled_from(list(ANSWERS.values())), st.lists(st.integers(0, 200)))
def test_an_answer_is_the_same_however_it_is_cut(case: Given, cuts: list[int]) -> None:
    reader = AnswerReader()
    edges = [0, *sorted(min(cut, len(case.raw)) for cut in cuts), len(case.raw)]
    answers = [reader.feed(case.raw[start:end]) for start, end in zip(edges, edges[1:], strict=False) if start < end]
    assert answers[-1] == case.want
    assert answers[:-1] == [None] * (len(answers) - 1)
    assert reader.idle


@given(st.lists(st.sampled_from([case for case in ANSWERS.values() if case.want.keep_alive]), min_size=2))
def test_a_connection_carries_one_answer_after_the_other(cases: list[Given]) -> None:
    reader = AnswerReader()
    assert [reader.feed(case.raw) for case in cases] == [case.want for case in cases]


def test_a_body_without_a_length_goes_on_until_the_connection_ends() -> None:
    reader = AnswerReader()
    assert reader.feed(b"HTTP/1.1 502 Bad Gateway\r\n\r\nno such") is None
    assert reader.feed(b" server") is None
    assert reader.end() == Answer(502, b"no such server", keep_alive=False)


@pytest.mark.parametrize("more", [b"HTTP/1.1 200", b"H", b"\0", b"HTTP/1.1 204 No Content\r\n\r\n"])
def test_what_follows_unasked_spoils_the_connection(more: bytes) -> None:
    answer = AnswerReader().feed(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx" + more)
    assert answer == Answer(200, b"x", keep_alive=False)


CUT = {
    "in the head": b"HTTP/1.1 200 OK\r\nContent-",
    "in the body": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx",
    "after an interim answer": b"HTTP/1.1 100 Continue\r\n\r\n",
    "between chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n",
}


@pytest.mark.parametrize("raw", CUT.values(), ids=CUT.keys())
def test_half_an_answer_is_none(raw: bytes) -> None:
    reader = AnswerReader()
    assert reader.feed(raw) is None
    assert not reader.idle
    with pytest.raises(BadAnswer, match="ended in the middle"):
        reader.end()


NONSENSE = {
    "TLS": b"\x15\x03\x01\x00\x02\x02\x16\r\n\r\n",
    "another protocol": b"HTTP/2 200 OK\r\n\r\n",
    "another version": b"HTTP/2.0 200 OK\r\n\r\n",
    "no status": b"HTTP/1.1 OK\r\n\r\n",
    "an upgrade": b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    "a field without a colon": b"HTTP/1.1 200 OK\r\nContent-Length\r\n\r\n",
    "a length that is none": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    "a length of more digits than numbers have": b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n",
    "a length of a body in chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    "an absurd length": b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
    "packed": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n",
    "packed in transfer": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    "a chunk without a size": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello\r\n",
    "a chunk of a size with a sign": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+1\r\nx\r\n",
    "a chunk that is longer than it says": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxyz\r\n",
    "an absurd chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
    "an endless head": b"HTTP/1.1 200 OK\r\nX: " + b"x" * http1.MAX_HEAD_BYTES,
    "an endless line before a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    + b"1" * (http1.MAX_HEAD_BYTES + 1),
}


@pytest.mark.parametrize("raw", NONSENSE.values(), ids=NONSENSE.keys())
def test_nonsense_is_refused(raw: bytes) -> None:
    with pytest.raises(BadAnswer):
        AnswerReader().feed(raw)


def test_memory_is_not_the_senders_to_fill(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http1, "MAX_BODY_BYTES", 10)
    for raw in (
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 11,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"6\r\nxxxxxx\r\n" * 2,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n" + b"x" * 11,
        b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n",
    ):
        with pytest.raises(BadAnswer, match="longer than"):
            AnswerReader().feed(raw)


IN_CHUNKS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
ENDLESS = {
    "fields": (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 100),
    "one field": (b"HTTP/1.1 200 OK\r\nX: ", b"y" * 1000),
    "interim answers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 40),
    "words after the size of a chunk": (IN_CHUNKS + b"1;", b"y" * 1000),
    "trailers": (IN_CHUNKS + b"0\r\n", b"X: y\r\n" * 100),
}


@pytest.mark.parametrize(("start", "more"), ENDLESS.values(), ids=ENDLESS.keys())
def test_what_has_no_end_is_given_up(start: bytes, more: bytes) -> None:
    reader = AnswerReader()
    assert reader.feed(start) is None if start else reader.idle
    fed = 0
    with pytest.raises(BadAnswer, match="none of its body"):
        while fed <= http1.MAX_HEAD_BYTES:
            fed += len(more)
            reader.feed(more)


def test_a_body_may_come_in_more_chunk_lines_than_a_head_may_be_long() -> None:
    reader = AnswerReader()
    assert reader.feed(IN_CHUNKS) is None
    number = http1.MAX_HEAD_BYTES
    for _ in range(number // 64):
        assert reader.feed(b"1\r\nx\r\n" * 64) is None
    assert reader.feed(b"0\r\n\r\n") == Answer(200, b"x" * number)


@given(st.binary(max_size=300))
def test_any_bytes_are_an_answer_nonsense_or_not_complete(raw: bytes) -> None:
    reader = AnswerReader()
    try:
        answer = reader.feed(b"HTTP/1.1 200 OK\r\n" + raw)
    except BadAnswer:
        return
    assert answer is None or answer.status >= 200
