"""Connections that are kept, dropped and opened anew, against servers that do as a test tells them."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from stromboli.kube import exchanging
from stromboli.kube.exchanging import AnswerLost, Exchanges, NotConnected
from stromboli.kube.http1 import compose
from stromboli.testing.waiting import eventually
from tests.kube.certificates import Authority

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
Serve = Callable[["Script", asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
SECONDS = 20.0


@dataclass
class Script:
    """A server of one behaviour, and what it saw."""

    serve: Serve
    port: int = 0
    connections: int = 0
    requests: list[bytes] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await self.serve(self, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def request(self, reader: asyncio.StreamReader) -> None:
        self.requests.append(await reader.readuntil(b"\r\n\r\n"))


@asynccontextmanager
async def script(serve: Serve, **options: object) -> AsyncIterator[tuple[Script, Exchanges]]:
    behaviour = Script(serve)
    server = await asyncio.start_server(behaviour.accept, "127.0.0.1", 0)
    behaviour.port = server.sockets[0].getsockname()[1]
    exchanges = Exchanges("127.0.0.1", behaviour.port, **options)  # type: ignore[arg-type]
    try:
        yield behaviour, exchanges
    finally:
        exchanges.close()
        behaviour.gate.set()
        server.close()


async def answers_all(script: Script, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        await script.request(reader)
        writer.write(OK)


async def answers_once(script: Script, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Closes without a word when the next request comes."""
    await script.request(reader)
    writer.write(OK)
    await script.request(reader)


async def answers_when_told(script: Script, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await script.request(reader)
    await script.gate.wait()
    writer.write(OK)


async def send(exchanges: Exchanges, method: str = "POST", timeout: float = SECONDS) -> bytes:
    answer = await exchanges.exchange(method, compose(method, "/", {}, None), timeout=timeout)
    return answer.body


async def test_a_connection_is_used_again() -> None:
    async with script(answers_all) as (server, exchanges):
        for _ in range(3):
            assert await send(exchanges) == b"{}"
        assert (server.connections, len(server.requests), exchanges.kept) == (1, 3, 1)


async def test_requests_at_the_same_time_have_connections_of_their_own() -> None:
    async with script(answers_all) as (server, exchanges):
        await asyncio.gather(*(send(exchanges) for _ in range(5)))
        assert 1 <= server.connections <= 5
        assert len(server.requests) == 5


async def test_many_requests_at_once_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchanging, "TURN_SECONDS", SECONDS)
    async with script(answers_all) as (server, exchanges):
        await asyncio.gather(*(send(exchanges) for _ in range(200)))
        assert (server.connections, len(server.requests)) == (exchanging.READILY_OPENED, 200)


async def test_requests_that_hang_do_not_hold_up_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchanging, "TURN_SECONDS", 0.01)
    async with script(answers_when_told) as (server, exchanges), asyncio.TaskGroup() as tasks:
        hanging = [tasks.create_task(send(exchanges)) for _ in range(exchanging.READILY_OPENED)]
        await eventually(lambda: len(server.requests) == len(hanging))
        server.serve = answers_all
        assert await send(exchanges) == b"{}"
        assert not any(task.done() for task in hanging)
        server.gate.set()


@pytest.mark.parametrize(("turn", "longest"), [(0.001, SECONDS), (0.01, 0.0)])
async def test_every_hanging_request_gets_a_connection_in_the_end(
    monkeypatch: pytest.MonkeyPatch, turn: float, longest: float
) -> None:
    monkeypatch.setattr(exchanging, "TURN_SECONDS", turn)
    monkeypatch.setattr(exchanging, "LONGEST_TURN_SECONDS", longest)
    async with script(answers_when_told) as (server, exchanges), asyncio.TaskGroup() as tasks:
        for _ in range(exchanging.READILY_OPENED + 20):
            tasks.create_task(send(exchanges))
        await eventually(lambda: len(server.requests) == exchanging.READILY_OPENED + 20)
        server.gate.set()


async def test_a_request_that_waits_for_its_turn_opens_a_connection_when_one_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exchanging, "TURN_SECONDS", SECONDS)
    monkeypatch.setattr(exchanging, "READILY_OPENED", 1)
    async with script(answers_when_told) as (server, exchanges), asyncio.TaskGroup() as tasks:
        first = asyncio.create_task(send(exchanges))
        await eventually(lambda: len(server.requests) == 1)
        second = tasks.create_task(send(exchanges))
        server.serve = answers_all
        first.cancel()
        assert await second == b"{}"


async def test_a_request_that_is_cancelled_leaves_its_turn_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchanging, "TURN_SECONDS", SECONDS)
    monkeypatch.setattr(exchanging, "READILY_OPENED", 1)

    async def answers_late(script: Script, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await script.request(reader)
        await script.gate.wait()
        writer.write(OK)
        await answers_all(script, reader, writer)

    async with script(answers_late) as (server, exchanges), asyncio.TaskGroup() as tasks:
        tasks.create_task(send(exchanges))
        await eventually(lambda: len(server.requests) == 1)
        cancelled = asyncio.create_task(send(exchanges))
        last = tasks.create_task(send(exchanges))
        await asyncio.sleep(0)

        def give_and_cancel(waiter: asyncio.Future[object], connection: object) -> bool:
            given: bool = give(waiter, connection)
            cancelled.cancel()
            return given

        give = vars(exchanging)["_give"]
        monkeypatch.setattr(exchanging, "_give", give_and_cancel)
        server.gate.set()
        assert await last == b"{}"
        assert server.connections == 1


async def test_a_connection_that_does_not_come_about_takes_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchanging, "TURN_SECONDS", 10 * SECONDS)
    monkeypatch.setattr(exchanging, "READILY_OPENED", 1)
    exchanges = Exchanges("127.0.0.1", 1)
    for _ in range(3):
        with pytest.raises(NotConnected):
            await send(exchanges)


async def test_there_are_no_more_connections_than_allowed() -> None:
    async with script(answers_when_told, limit=2) as (server, exchanges), asyncio.TaskGroup() as tasks:
        for _ in range(2):
            tasks.create_task(send(exchanges))
        await eventually(lambda: len(server.requests) == 2)
        with pytest.raises(TimeoutError):
            await send(exchanges, timeout=0.05)
        assert server.connections == 2
        server.gate.set()


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
async def test_what_is_safe_to_repeat_outlives_a_connection_that_the_server_closes(method: str) -> None:
    async with script(answers_once) as (server, exchanges):
        await send(exchanges, method)
        assert await send(exchanges, method) == b"{}"
        assert (server.connections, len(server.requests)) == (2, 3)


@pytest.mark.parametrize("method", ["POST", "PATCH"])
async def test_what_may_have_been_carried_out_is_not_sent_again(method: str) -> None:
    async with script(answers_once) as (server, exchanges):
        await send(exchanges, method)
        with pytest.raises(AnswerLost):
            await send(exchanges, method)
        assert len(server.requests) == 2
        assert await send(exchanges, method) == b"{}"


async def test_a_new_connection_that_breaks_is_not_tried_for_ever() -> None:
    async def breaks(script: Script, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await script.request(reader)

    async with script(breaks) as (server, exchanges):
        with pytest.raises(AnswerLost, match="closed the connection"):
            await send(exchanges, "PUT")
        assert server.connections == 1


async def test_a_connection_that_was_closed_meanwhile_is_not_used() -> None:
    async def closes(script: Script, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await script.request(reader)
        writer.write(OK)

    async with script(closes) as (server, exchanges):
        for number in range(3):
            assert await send(exchanges) == b"{}"
            await eventually(lambda: exchanges.kept == 0)
            assert server.connections == number + 1


async def test_a_connection_that_was_long_idle_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchanging, "IDLE_SECONDS", -1.0)
    async with script(answers_all) as (server, exchanges):
        for _ in range(3):
            await send(exchanges)
        assert server.connections == 3
        assert exchanges.kept == 1


async def test_a_connection_whose_answer_is_not_waited_for_is_closed() -> None:
    async with script(answers_when_told) as (server, exchanges):
        waiting = asyncio.create_task(send(exchanges))
        await eventually(lambda: len(server.requests) == 1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert exchanges.kept == 0
        server.gate.set()
        assert await send(exchanges) == b"{}"
        assert server.connections == 2


async def test_an_answer_that_does_not_come_is_given_up() -> None:
    async with script(answers_when_told) as (server, exchanges):
        with pytest.raises(TimeoutError):
            await send(exchanges, timeout=0.05)
        assert exchanges.kept == 0


async def test_an_answer_until_the_end_of_the_connection_is_whole() -> None:
    async def old(script: Script, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await script.request(reader)
        writer.write(b"HTTP/1.0 200 OK\r\n\r\neverything")

    async with script(old) as (server, exchanges):
        assert await send(exchanges) == b"everything"
        assert exchanges.kept == 0


CUT = {
    "half an answer": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx",
    "no HTTP at all": b"SSH-2.0-OpenSSH\r\n\r\n",
}


@pytest.mark.parametrize("raw", CUT.values(), ids=CUT.keys())
async def test_an_answer_that_makes_no_sense_is_lost(raw: bytes) -> None:
    async def cuts(script: Script, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await script.request(reader)
        writer.write(raw)

    async with script(cuts) as (server, exchanges):
        with pytest.raises(AnswerLost):
            await send(exchanges, "PUT")
        assert len(server.requests) == 1


async def test_words_out_of_turn_end_a_connection() -> None:
    async def talks(script: Script, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await script.request(reader)
        writer.write(OK)
        await writer.drain()
        await script.gate.wait()
        writer.write(OK)
        await reader.read()

    async with script(talks) as (server, exchanges):
        await send(exchanges)
        server.gate.set()
        await eventually(lambda: exchanges.kept == 0)
        server.serve = answers_all
        assert await send(exchanges) == b"{}"
        assert server.connections == 2


async def test_nothing_is_sent_where_nobody_listens() -> None:
    with pytest.raises(NotConnected, match=r"cannot connect to 127\.0\.0\.1:1"):
        await send(Exchanges("127.0.0.1", 1))


async def test_a_certificate_of_a_stranger_is_not_accepted(tmp_path: Path) -> None:
    context = Authority(tmp_path).server_context()
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    try:
        with pytest.raises(NotConnected, match="certificate"):
            await send(Exchanges("127.0.0.1", port, tls=ssl.create_default_context()))
    finally:
        server.close()


async def test_connections_in_use_when_all_are_closed_end_after_their_exchange() -> None:
    async with script(answers_when_told) as (server, exchanges), asyncio.TaskGroup() as tasks:
        under_way = tasks.create_task(send(exchanges))
        await eventually(lambda: len(server.requests) == 1)
        exchanges.close()
        server.gate.set()
        assert await under_way == b"{}"
        assert exchanges.kept == 0
