import pytest
from aiohttp import ClientSession, web

from stromboli.telemetry.listening import Address, ListenError, listening


@pytest.mark.parametrize(
    ("text", "want"),
    [
        (":8080", Address("", 8080)),
        ("127.0.0.1:0", Address("127.0.0.1", 0)),
        ("[::1]:443", Address("::1", 443)),
        ("localhost:11251", Address("localhost", 11251)),
    ],
)
def test_go_addresses_are_read(text: str, want: Address) -> None:
    assert Address.parse(text) == want


@pytest.mark.parametrize("text", ["8080", "host", "host:http", ":70000", ""])
def test_other_texts_are_refused_with_the_form(text: str) -> None:
    with pytest.raises(ListenError, match="expected host:port"):
        Address.parse(text)


async def test_a_port_in_use_is_one_clear_line() -> None:
    async with listening(web.Application(), Address("127.0.0.1", 0)) as first:
        with pytest.raises(ListenError, match=f"cannot listen on {first}: the port is in use"):
            async with listening(web.Application(), first):
                pass


async def test_the_bound_port_answers_while_the_block_runs() -> None:
    async with (
        listening(web.Application(), Address("127.0.0.1", 0)) as address,
        ClientSession() as session,
        session.get(f"http://{address}/") as response,
    ):
        assert response.status == 404
