"""Health endpoints: ``/healthz``, ``/livez`` and ``/readyz`` with named checks.

``/healthz`` says only that the process is up; ``/readyz`` also asks the checks that the process has registered (caches
filled, leading or standing by). Answers follow kube-apiserver: ``ok`` as plain text, or with ``?verbose`` one line
a check. Source: spec 08 section 14.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Mapping

Check: TypeAlias = Callable[[], "str | None"]
"""Answers None when all is well, else one line that says what is missing."""


def _ping() -> str | None:
    return None


class Health:
    """The checks of one process."""

    def __init__(self) -> None:
        self._live: dict[str, Check] = {"ping": _ping}
        self._ready: dict[str, Check] = {}

    def add_readiness(self, name: str, check: Check) -> None:
        """Let ``/readyz`` ask ``check`` from now on, under ``name``."""
        self._ready[name] = check

    def add_liveness(self, name: str, check: Check) -> None:
        """Let ``/healthz``, ``/livez`` and ``/readyz`` ask ``check`` from now on, under ``name``."""
        self._live[name] = check

    def failures(self, *, readiness: bool) -> dict[str, str | None]:
        """Every check's name with its complaint (None: passed)."""
        checks = {**self._live, **(self._ready if readiness else {})}
        return {name: _ask(check) for name, check in checks.items()}

    def routes(self) -> list[web.RouteDef]:
        """The routes to add to an aiohttp application."""
        routes = [web.get(path, self._answer) for path in ("/healthz", "/livez", "/readyz")]
        return [*routes, web.get("/{endpoint:healthz|livez|readyz}/{check}", self._answer_one)]

    def application(self) -> web.Application:
        """An application with nothing but these routes."""
        application = web.Application()
        application.add_routes(self.routes())
        return application

    async def _answer(self, request: web.Request) -> web.Response:
        endpoint = request.path.strip("/")
        outcome = self.failures(readiness=endpoint == "readyz")
        failed = any(complaint is not None for complaint in outcome.values())
        if not failed and "verbose" not in request.query:
            return web.Response(text="ok")
        return web.Response(text=_verbose(endpoint, outcome), status=500 if failed else 200)

    async def _answer_one(self, request: web.Request) -> web.Response:
        endpoint, name = request.match_info["endpoint"], request.match_info["check"]
        outcome = self.failures(readiness=endpoint == "readyz")
        if name not in outcome:
            return web.Response(text="404 page not found\n", status=404)
        complaint = outcome[name]
        return web.Response(text="ok") if complaint is None else web.Response(text=complaint + "\n", status=500)


def _ask(check: Check) -> str | None:
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - a broken check is a failed check, never a dead endpoint
        return f"{type(error).__name__}: {error}"


def _verbose(endpoint: str, outcome: Mapping[str, str | None]) -> str:
    lines = [f"[+]{name} ok" if bad is None else f"[-]{name} failed: {bad}" for name, bad in outcome.items()]
    failed = any(bad is not None for bad in outcome.values())
    return "\n".join([*lines, f"{endpoint} check {'failed' if failed else 'passed'}"]) + "\n"
