"""Why jobs wait, as of the latest cycle that looked at them: kept for ``GET /debug/explain`` on the metrics address.

``/debug/explain`` answers all waiting jobs, ``/debug/explain?job=NAMESPACE/NAME`` one. An addition of ours.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict

import orjson
from aiohttp import web

from stromboli.scheduler.core.results import JobReport


class Explanations:
    """The latest report of each job."""

    def __init__(self) -> None:
        self._reports: dict[str, JobReport] = {}
        self._cycles: dict[str, int] = {}
        self.cycle = 0
        self.problems: tuple[str, ...] = ()

    def record(self, cycle: int, reports: Iterable[JobReport], problems: Iterable[str], alive: Collection[str]) -> None:
        """Take in what a cycle reported; jobs that are not ``alive`` any more are forgotten."""
        self.cycle = cycle
        self.problems = tuple(problems)
        for report in reports:
            self._reports[report.job_id] = report
            self._cycles[report.job_id] = cycle
        for job_id in [job_id for job_id in self._reports if job_id not in alive]:
            del self._reports[job_id], self._cycles[job_id]

    def of(self, job_id: str) -> dict[str, object] | None:
        """What is known of one job."""
        report = self._reports.get(job_id)
        return None if report is None else {"cycle": self._cycles[job_id], **asdict(report)}

    def routes(self) -> list[web.RouteDef]:
        """The routes to add to the metrics server."""
        return [web.get("/debug/explain", self._answer)]

    async def _answer(self, request: web.Request) -> web.Response:
        job_id = request.query.get("job")
        if job_id is None:
            return _json(
                {"cycle": self.cycle, "problems": self.problems, "jobs": [self.of(job) for job in self._reports]}
            )
        found = self.of(job_id)
        if found is None:
            return _json(
                {"error": f"nothing is known of job {job_id}: it does not exist, or does not wait"}, status=404
            )
        return _json(found)


def _json(value: object, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(value, default=str), content_type="application/json", status=status)
