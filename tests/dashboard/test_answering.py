"""Answers are made once for all who ask the same, and anew when what they are made of is."""

from __future__ import annotations

import asyncio
import gzip
from dataclasses import replace
from typing import Any

import aiohttp
import orjson
import pytest

from stromboli.dashboard.answering import COMPRESSED_FROM, KEPT, Answers, as_json
from stromboli.dashboard.following import Connection

CONNECTION = Connection("https://cluster", 0.0, "", ())


class Made:
    """Counts how often content is made."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> dict[str, Any]:
        self.times += 1
        return {"times": self.times}


def test_readers_of_one_section_share_one_answer() -> None:
    answers, made, section = Answers(), Made(), [1]
    first = answers.get("jobs", section, CONNECTION, made)
    assert answers.get("jobs", section, replace(CONNECTION), made) is first
    assert made.times == 1


CHANGES: dict[str, tuple[str, list[int], Connection]] = {
    "another question": ("queues", [1], CONNECTION),
    "an equal section that was made anew": ("jobs", [1], CONNECTION),
    "the cluster has gone": ("jobs", [1], replace(CONNECTION, since=5.0, error="refused")),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_has_changed_is_answered_anew(name: str) -> None:
    question, section, connection = CHANGES[name]
    answers, made = Answers(), Made()
    answers.get("jobs", [1], CONNECTION, made)
    found = orjson.loads(answers.get(question, section, connection, made).body)
    assert (found["times"], found["connection"]["since"]) == (2, connection.since)


def test_many_searches_do_not_pile_up() -> None:
    answers, made, section = Answers(), Made(), [1]
    answers.get("often", section, CONNECTION, made)
    for number in range(3 * KEPT):
        answers.get(number, section, CONNECTION, Made())
        answers.get("often", section, CONNECTION, made)
    assert made.times == 1  # what is asked for again and again stays
    again = Made()
    answers.get(0, section, CONNECTION, again)
    assert again.times == 1  # what was asked for long ago does not


@pytest.mark.parametrize(
    ("accepts", "want"), [("gzip, deflate, br", "gzip"), ("GZIP", "gzip"), ("br", None), ("", None)]
)
async def test_long_answers_are_compressed_for_those_who_read_it(
    page: aiohttp.ClientSession, accepts: str, want: str | None
) -> None:
    async with page.get("/assets/main.js", headers={"Accept-Encoding": accepts}, auto_decompress=False) as answer:
        body = await answer.read()
        assert (answer.headers.get("Content-Encoding"), answer.headers["Vary"]) == (want, "Accept-Encoding")
    async with page.get("/assets/main.js", headers={"Accept-Encoding": "identity"}) as plain:
        assert (gzip.decompress(body) if want else body) == await plain.read()


async def test_short_answers_are_sent_as_they_are(page: aiohttp.ClientSession) -> None:
    async with page.get("/api/jobs?limit=1", headers={"Accept-Encoding": "gzip"}) as answer:
        assert len(await answer.read()) < COMPRESSED_FROM
        assert "Content-Encoding" not in answer.headers


async def test_readers_at_once_get_the_same(page: aiohttp.ClientSession) -> None:
    async def read() -> bytes:
        async with page.get("/api/queues") as answer:
            return await answer.read()

    assert len(set(await asyncio.gather(*(read() for _ in range(8))))) == 1


def test_an_answer_says_how_it_stands_with_the_cluster() -> None:
    assert orjson.loads(as_json(CONNECTION, {"a": 1}).body)["connection"]["server"] == "https://cluster"
