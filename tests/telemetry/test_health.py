from aiohttp.test_utils import TestClient, TestServer

from stromboli.telemetry.health import Health


async def ask(health: Health, path: str) -> tuple[int, str]:
    async with TestClient(TestServer(health.application())) as client:
        response = await client.get(path)
        return response.status, await response.text()


async def test_a_fresh_process_is_healthy_in_one_word() -> None:
    assert await ask(Health(), "/healthz") == (200, "ok")


async def test_verbose_lists_every_check_and_the_verdict() -> None:
    assert await ask(Health(), "/healthz?verbose") == (200, "[+]ping ok\nhealthz check passed\n")


async def test_readiness_fails_with_the_reason_while_liveness_holds() -> None:
    health = Health()
    health.add_readiness("caches", lambda: "pods not listed yet")
    assert await ask(health, "/readyz") == (
        500,
        "[+]ping ok\n[-]caches failed: pods not listed yet\nreadyz check failed\n",
    )
    assert await ask(health, "/livez") == (200, "ok")


async def test_a_check_that_raises_is_a_failed_check() -> None:
    health = Health()

    def broken() -> str | None:
        raise RuntimeError("boom")

    health.add_readiness("broken", broken)
    assert await ask(health, "/readyz/broken") == (500, "RuntimeError: boom\n")


async def test_single_checks_have_their_own_path() -> None:
    assert await ask(Health(), "/healthz/ping") == (200, "ok")
    assert (await ask(Health(), "/healthz/absent"))[0] == 404
