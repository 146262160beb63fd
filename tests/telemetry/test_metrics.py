import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from stromboli.telemetry.metrics import Metrics, PlainCounter, forget, geometric


def test_geometric_bounds_include_both_ends() -> None:
    bounds = geometric(1, 5000, 20)
    assert (len(bounds), bounds[0], bounds[-1]) == (20, 1, 5000)
    ratios = [right / left for left, right in zip(bounds, bounds[1:], strict=False)]
    assert max(ratios) == pytest.approx(min(ratios))


def test_a_counter_keeps_its_contract_name_without_total() -> None:
    metrics = Metrics()
    counter = metrics.counter("job_retry_counts", "retries", ["job_id"])
    counter.labels("j").inc()
    assert 'volcano_job_retry_counts{job_id="j"} 1.0' in metrics.render().decode().splitlines()


def test_a_total_counter_is_not_doubled() -> None:
    metrics = Metrics()
    metrics.counter("total_preemption_attempts_total", "tries").inc()
    assert "volcano_total_preemption_attempts_total 1.0" in metrics.render().decode().splitlines()


def test_counters_only_go_up() -> None:
    counter = Metrics().counter("retries", "retries")
    assert isinstance(counter, PlainCounter)
    with pytest.raises(ValueError, match="only goes up"):
        counter.inc(-1)


def test_forgotten_series_leave_the_exposition() -> None:
    metrics = Metrics()
    gauge = metrics.gauge("queue_share", "share", ["queue_name"])
    gauge.labels("q").set(1)
    forget(gauge, "q")
    forget(gauge, "never seen")
    assert 'queue_name="q"' not in metrics.render().decode()


async def test_the_endpoint_serves_the_text_format() -> None:
    metrics = Metrics(process_series=True)
    metrics.gauge("unschedule_job_count", "jobs").set(3)
    application = web.Application()
    application.add_routes(metrics.routes())
    async with TestClient(TestServer(application)) as client:
        response = await client.get("/metrics")
        assert response.headers["Content-Type"].startswith("text/plain")
        body = await response.text()
    assert "volcano_unschedule_job_count 3.0" in body
    assert "process_resident_memory_bytes" in body
