import io
import logging
from collections.abc import Iterator

import orjson
import pytest

from stromboli.telemetry import logs


@pytest.fixture(autouse=True)
def untouched_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.getLogger("stromboli").setLevel(logging.NOTSET)


def test_text_lines_carry_level_room_and_fields() -> None:
    stream = io.StringIO()
    logs.setup(stream=stream)
    logging.getLogger("stromboli.kube.informers").warning("list failed", extra={"kind": "pods"})
    line = stream.getvalue()
    assert line.startswith("W")
    assert line.endswith('kube.informers] list failed kind="pods"\n')


def test_json_lines_parse_and_keep_the_traceback() -> None:
    stream = io.StringIO()
    logs.setup(form="json", stream=stream)
    try:
        raise ValueError("boom")
    except ValueError:
        logging.getLogger("stromboli.x").exception("failed", extra={"job": "ns/j"})
    body = orjson.loads(stream.getvalue())
    assert (body["level"], body["msg"], body["job"]) == ("error", "failed", "ns/j")
    assert "ValueError: boom" in body["error"]


@pytest.mark.parametrize(("verbosity", "shown"), [(0, False), (3, False), (4, True), (9, True)])
def test_debug_needs_verbosity_four(verbosity: int, shown: bool) -> None:
    stream = io.StringIO()
    logs.setup(verbosity, stream=stream)
    logging.getLogger("stromboli.x").debug("detail")
    assert ("detail" in stream.getvalue()) is shown


def test_other_libraries_speak_from_warning_up() -> None:
    stream = io.StringIO()
    logs.setup(9, stream=stream)
    logging.getLogger("aiohttp").info("noise")
    assert stream.getvalue() == ""
