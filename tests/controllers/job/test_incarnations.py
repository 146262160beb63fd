"""A job that is started again: what is left of it does not count (P73), and it is not started without end (P71)."""

from __future__ import annotations

from stromboli.api import kinds
from tests.controllers.building import job, member
from tests.controllers.job.test_planning import running, steps, view, written
from tests.controllers.stage import stage


async def test_a_gang_that_never_gets_room_is_started_again_a_bounded_number_of_times() -> None:
    """P71: the policy restarts the job whenever its pods have been pending too long, and nothing ever changes."""
    builder = job().task("worker", 2).policy("PodPending", "RestartJob", timeout="100ms").spec(maxRetry=3)
    async with stage() as scene:
        scene.submit(builder)
        for attempt in range(1, 4):
            await scene.admit()
            await scene.until(lambda: len(scene.pods()) == 2, "pending pods")
            await scene.retried(attempt)
        await scene.until(lambda: scene.phase() == "Failed")
        assert scene.status()["state"]["reason"] == "MaxRetryReached"
        assert scene.status()["retryCount"] == 3
        await scene.until(lambda: not scene.pods(), "pods that never ran are gone")
        uids = {pod["metadata"]["uid"] for pod in scene.server.objects(kinds.PODS)}
        assert not uids


def test_pods_of_the_incarnation_before_count_as_ending_and_as_nothing_else() -> None:
    """P73: version 2 is being started while two pods of version 1 still end."""
    builder = running(2).status(version=2)
    ending = [member("worker", at, "Running", version=1, terminating=True) for at in range(2)]
    status = written(steps(view(builder, *ending)))
    assert status["terminating"] == 2
    assert status.get("running", 0) == 0
