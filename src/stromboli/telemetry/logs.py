"""Structured logs: one line a record on standard error, as text for people or JSON for collectors.

Levels follow the ``-v`` flag of Kubernetes processes: 0 is INFO and above, 1 to 3 is still INFO with more detail, 4
and above DEBUG. Extra fields (``log.info("...", extra={"job": ...})``) are kept in both forms.
Source: spec 08 section 14.
"""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Final, Literal, TextIO

import orjson

Form = Literal["text", "json"]
DEBUG_VERBOSITY: Final = 4
_STANDARD: Final = frozenset(logging.LogRecord("", 0, "", 0, "", (), None).__dict__) | {
    "message",
    "asctime",
    "taskName",
}


def setup(verbosity: int = 0, form: Form = "text", stream: TextIO | None = None) -> None:
    """Send the process's logs to ``stream`` (default standard error). Calling it again replaces the former set-up."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("stromboli").setLevel(level_of(verbosity))


def level_of(verbosity: int) -> int:
    """The logging level that a ``-v`` verbosity stands for."""
    return logging.DEBUG if verbosity >= DEBUG_VERBOSITY else logging.INFO


def _extras(record: logging.LogRecord) -> dict[str, object]:
    return {key: value for key, value in record.__dict__.items() if key not in _STANDARD}


class TextFormatter(logging.Formatter):
    """``I1129 15:04:05.123456 scheduler.binding] message key="value"``: klog's header, which log tools know."""

    def format(self, record: logging.LogRecord) -> str:
        """Render one record."""
        moment = datetime.fromtimestamp(record.created, UTC)
        name = record.name.removeprefix("stromboli.")
        head = f"{record.levelname[0]}{moment:%m%d %H:%M:%S.%f} {name}] {record.getMessage()}"
        fields = "".join(f' {key}="{value}"' for key, value in _extras(record).items())
        trace = "\n" + self.formatException(record.exc_info) if record.exc_info else ""
        return head + fields + trace


class JsonFormatter(logging.Formatter):
    """One JSON object a line: ``ts`` (RFC 3339), ``level``, ``logger``, ``msg``, extra fields, ``error``."""

    def format(self, record: logging.LogRecord) -> str:
        """Render one record."""
        body: dict[str, object] = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
            **_extras(record),
        }
        if record.exc_info:
            body["error"] = self.formatException(record.exc_info)
        return orjson.dumps(body, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
