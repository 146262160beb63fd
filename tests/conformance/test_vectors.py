"""The vectors as tests: files listed here are complete, and stay so.

A file is added once ``python -m tests.conformance`` reports no failure for it. Cases that need what is not built yet
are not applicable there and do not count here.
"""

from __future__ import annotations

import pytest

from tests.conformance import scheduler_runner, vectors
from tests.conformance.exclusions import Exclusions
from tests.conformance.reports import Verdict, detail_lines

ROOT = vectors.directory()
COMPLETE = (
    "actions-allocate.functions.json",
    "actions-backfill.functions.json",
    "actions-backfill.sessions.json",
    "actions-enqueue.sessions.json",
    "actions-preempt.sessions.json",
    "actions-reclaim.sessions.json",
    "actions-shuffle.sessions.json",
    "api-devices-ascend-hami.functions.json",
    "api-devices-config.functions.json",
    "api-devices-nvidia-gpushare.functions.json",
    "api-devices-nvidia-vgpu.functions.json",
    "api-helpers.functions.json",
    "api.functions.json",
    "cache.functions.json",
    "framework.functions.json",
    "plugins-binpack.sessions.json",
    "plugins-capacity.sessions.json",
    "plugins-cdp.functions.json",
    "plugins-conformance.functions.json",
    "plugins-deviceshare.functions.json",
    "plugins-drf.sessions.json",
    "plugins-network-topology-aware.functions.json",
    "plugins-network-topology-aware.sessions.json",
    "plugins-nodegroup.sessions.json",
    "plugins-nodeorder.sessions.json",
    "plugins-numaaware-policy.functions.json",
    "plugins-numaaware-provider-cpumanager.functions.json",
    "plugins-overcommit.sessions.json",
    "plugins-predicates.sessions.json",
    "plugins-proportion.sessions.json",
    "plugins-resource-strategy-fit.functions.json",
    "plugins-resourcequota.sessions.json",
    "plugins-tdm.sessions.json",
    "plugins-usage.sessions.json",
    "random-A.sessions.json",
    "random-B.sessions.json",
    "random-D.sessions.json",
    "random-H.sessions.json",
)

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(vectors.suite(ROOT, "scheduler") is None, reason=f"no vectors in {ROOT}; set CONFORMANCE_DIR"),
]


@pytest.mark.parametrize("name", COMPLETE)
def test_complete_file_has_no_failing_case(name: str) -> None:
    directory = vectors.suite(ROOT, "scheduler")
    assert directory is not None
    report = scheduler_runner.run_file(vectors.load(directory / name), None, Exclusions.read())
    assert not list(detail_lines(report))
    assert report.count(Verdict.PASSED) + report.count(Verdict.NOT_APPLICABLE) == len(report.cases) > 0
