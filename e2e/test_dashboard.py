"""The dashboard in a real browser: what it shows, how it follows, how it is walked through, what it does not run."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from e2e.browser import Browser, window
from e2e.cluster import Cluster, Json, eventually, vcjob
from e2e.conftest import OpenQueue
from stromboli.api.kinds import EVENTS, HYPER_NODES, JOBS, NODES
from stromboli.cli.stack import CLUSTER, DASHBOARD, Stack

EVIL = '<img src="x" onerror="window.pwned = 1"><script>window.pwned = 2</script>'
UP, DOWN, LEFT, RIGHT, HOME, END, ENTER = "\ue013", "\ue015", "\ue012", "\ue014", "\ue011", "\ue010", "\ue007"
"""Keys as the WebDriver protocol writes them."""
FOCUSED = "return document.activeElement.dataset.queue ?? ''"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def browser_window(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Browser]:
    """The dashboard of the suite's cluster, and one browser for the module."""
    await stack.start(DASHBOARD)
    assert stack.dashboard_url
    with window(stack.dashboard_url, tmp_path_factory.mktemp("browser")) as opened:
        yield opened
    await stack.stop(DASHBOARD)


@pytest_asyncio.fixture(loop_scope="session")
async def browser(browser_window: Browser) -> AsyncIterator[Browser]:
    """The browser; afterwards nothing forbidden was tried and no script had failed."""
    await browser_window.alarms()
    yield browser_window
    assert await browser_window.alarms() == []


async def test_queues_are_a_tree_with_a_bar_for_each_resource(
    browser: Browser, cluster: Cluster, open_queue: OpenQueue
) -> None:
    team = await open_queue(
        "team", capability={"cpu": "8"}, deserved={"cpu": "4"}, guarantee={"resource": {"cpu": "1"}}
    )
    limits = {"capability": {"cpu": "4"}, "deserved": {"cpu": "2"}, "guarantee": {"resource": {"cpu": "1"}}}
    leaf = await open_queue("leaf", parent=team, **limits)
    await cluster.create(JOBS, vcjob("holder", queue=leaf, replicas=3, cpu="1", command="sleep 600"))
    await browser.open(f"#queues?search={leaf}")
    rows = "return [...document.querySelectorAll('.queues tbody tr')].map((row) => [row.dataset.queue, row.ariaLevel])"
    assert await browser.until(rows, lambda seen: len(seen) == 3) == [["root", "1"], [team, "2"], [leaf, "3"]]
    words = f"return document.querySelector('[data-queue=\"{leaf}\"] .use [role=img]')?.getAttribute('aria-label')"
    want = "cpu: 3 in use, 2 deserved, 1 guaranteed, at most 4"
    assert await browser.until(words, lambda seen: seen == want, what=want) == want
    drawn = f"""
        const bar = document.querySelector('[data-queue="{leaf}"] .use .bar');
        const share = (kind) => bar.querySelector(kind).getBoundingClientRect().width / bar.clientWidth;
        return ['.fill', '.beyond', '.guarantee'].map((kind) => Math.round(share(kind) * 100));
    """
    want_shares = [50, 25, 25]  # two of four deserved, one more beyond that, one of four guaranteed
    assert await browser.until(drawn, lambda seen: seen == want_shares) == want_shares
    await browser.shows("3 of 4", "deserves 2 · guaranteed 1", "1 running")


async def test_a_waiting_job_says_why_in_numbers_and_the_page_follows_without_a_reload(
    browser: Browser, cluster: Cluster, open_queue: OpenQueue
) -> None:
    small = await open_queue("small", capability={"cpu": "1"})
    await cluster.create(JOBS, vcjob("holder", queue=small, replicas=2, cpu="500m", command="sleep 600"))
    await cluster.phase_is("holder", "Running")
    await browser.open(f"#jobs?namespace={cluster.namespace}")
    await browser.shows("holder", "2 running")
    await browser.ask("window.never_reloaded = true")
    await cluster.create(JOBS, vcjob("waits", queue=small, replicas=1, cpu="500m", command="sleep 600"))
    told = await browser.shows("waits", "Pending", "QueueQuotaInsufficient", "short by cpu 500m")
    assert told.index("waits") < told.index("holder"), "what waits comes first"
    await cluster.delete(JOBS, "holder")
    await eventually(
        browser.text, lambda seen: "holder" not in seen and "1 running" in seen and "QueueQuota" not in seen
    )
    assert await browser.ask("return window.never_reloaded") is True


async def test_the_first_page_counts_states_rates_and_what_waits_longest(browser: Browser, cluster: Cluster) -> None:
    await cluster.create(JOBS, vcjob("huge", replicas=1000, cpu="1"))
    await cluster.create(JOBS, vcjob("runs", replicas=2, command="sleep 600"))
    await cluster.phase_is("runs", "Running")
    await browser.open("#overview")
    await browser.shows("Jobs waiting", "Nodes ready", f"{cluster.namespace}/huge", "ClusterOvercommitted")
    figure = (
        "return [...document.querySelectorAll('.tile')].find((tile) => tile.innerText.includes('Bound in a minute'))"
    )
    bound = await browser.until(f"{figure}.querySelector('.figure').innerText", lambda seen: int(seen) >= 2)
    assert int(bound) >= 2
    assert await browser.ask("return document.querySelectorAll('.chart rect').length") == 60


async def test_search_and_filters_choose_rows_and_are_kept_in_the_address(browser: Browser, cluster: Cluster) -> None:
    for name in ("alpha-1", "alpha-2", "beta"):
        await cluster.create(JOBS, vcjob(name, command="sleep 600", cpu="10m"))
    await browser.open(f"#jobs?namespace={cluster.namespace}")
    await browser.shows("3 jobs", "alpha-1", "alpha-2", "beta")
    await browser.click("#jobs-search")
    await browser.press("ALPHA")
    await eventually(browser.text, lambda seen: "2 jobs of" in seen and "beta" not in seen)
    assert "search=ALPHA" in await browser.ask("return location.hash")
    await browser.ask("location.reload()")
    await browser.shows("2 jobs of", "alpha-1", "alpha-2")
    await browser.open("#jobs?search=no-such-job-anywhere")
    await browser.shows("Nothing matches these filters.")


async def test_the_tree_is_walked_with_the_keyboard(browser: Browser, open_queue: OpenQueue) -> None:
    team = await open_queue("walk")
    first = await open_queue("walk-a", parent=team)
    second = await open_queue("walk-b", parent=team)
    await browser.open("#queues")
    opened = f"return document.querySelector('[data-queue=\"{team}\"]')?.ariaExpanded"
    await browser.until(opened, lambda seen: seen in ("true", "false"), what="the new queue, with children")
    await browser.ask("document.querySelector('.queues tbody tr[tabindex=\"0\"]').focus()")
    await browser.press(END, HOME)
    assert await browser.ask(FOCUSED) == await browser.ask(
        "return document.querySelector('.queues tbody tr').dataset.queue"
    )
    await walk_to(browser, team)
    await browser.press(LEFT)
    assert (await browser.ask(opened), await browser.ask(FOCUSED)) == ("false", team)
    assert await browser.ask(f"return document.querySelector('[data-queue=\"{first}\"]')") is None
    await browser.press(RIGHT)
    assert (await browser.ask(opened), await browser.ask(FOCUSED)) == ("true", team)
    await browser.press(RIGHT, DOWN)
    assert await browser.ask(FOCUSED) == second
    place = (
        f"const row = document.querySelector('[data-queue=\"{second}\"]'); return [row.ariaPosInSet, row.ariaSetSize]"
    )
    assert await browser.ask(place) == ["2", "2"]
    assert await browser.ask("return document.querySelectorAll('.queues tr[tabindex=\"0\"]').length") == 1
    await browser.press(LEFT)
    assert await browser.ask(FOCUSED) == team
    await browser.press(ENTER)
    await browser.until("return location.hash", lambda seen: seen == f"#jobs?queue={team}")
    await browser.until("return document.body.dataset.loaded", lambda seen: seen == "jobs")


async def walk_to(browser: Browser, queue: str) -> None:
    """Press the arrow down until the queue has the focus, or the end is reached."""
    rows = await browser.ask("return document.querySelectorAll('.queues tbody tr').length")
    for _ in range(rows):
        if await browser.ask(FOCUSED) == queue:
            return
        await browser.press(DOWN)
    assert await browser.ask(FOCUSED) == queue


async def test_names_and_messages_of_users_are_text_and_never_run(browser: Browser, cluster: Cluster) -> None:
    about = {"kind": "Job", "namespace": cluster.namespace, "name": "victim", "apiVersion": JOBS.api_version}
    await cluster.create(EVENTS, {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "evil"}, "involvedObject": about, "type": "Warning",
        "reason": EVIL[:100], "message": EVIL, "lastTimestamp": "2099-01-01T00:00:00Z", "count": 1,
        "source": {"component": EVIL[:60]},
    })  # fmt: skip
    node = (await cluster.client.list(NODES))[0]["metadata"]["name"]
    name = f"{cluster.namespace[-40:].strip('-')}-evil"
    await cluster.create(HYPER_NODES, hyper_node(name, 1, {"exactMatch": {"name": node}}, tier_name=EVIL))
    try:
        await browser.open(f"#events?namespace={cluster.namespace}")
        await browser.shows(EVIL)
        await browser.open("#overview")
        await browser.shows(EVIL)
        await browser.open("#topology?search=" + "%3Cimg%20src%3Dx%20onerror%3Dwindow.pwned%3D3%3E")
        await browser.shows(EVIL)
        await cluster.create(JOBS, vcjob("any", cpu="10m"))
        await browser.open("#jobs?queue=%3Cscript%3Ewindow.pwned%3D4%3C/script%3E")
        await browser.shows("Nothing matches these filters.")
        assert await browser.ask("return window.pwned ?? 0") == 0
        assert await browser.ask("return document.querySelectorAll('main img, main script').length") == 0
    finally:
        await cluster.delete(HYPER_NODES, name)
        await cluster.delete(EVENTS, "evil")


async def test_no_script_may_be_put_into_the_page(browser_window: Browser) -> None:
    """Even if a bug let markup in, the policy of the page keeps it from running."""
    await browser_window.open("#overview")
    await browser_window.ask("document.body.insertAdjacentHTML('beforeend', arguments[0])", EVIL)
    await browser_window.ask(
        "const s = document.createElement('script'); s.textContent = 'window.pwned = 5'; document.body.append(s)"
    )
    alarms = await eventually(browser_window.alarms, bool, what="the browser refuses")
    assert "Content Security Policy" in alarms[0]
    assert await browser_window.ask("return window.pwned ?? 0") == 0


async def test_the_map_shows_tiers_and_says_what_runs_where(browser: Browser, cluster: Cluster) -> None:
    nodes = sorted(item["metadata"]["name"] for item in await cluster.client.list(NODES))[:4]
    short = cluster.namespace[-40:].strip("-")
    racks = {f"{short}-r0": nodes[:2], f"{short}-r1": nodes[2:]}
    for rack, members in racks.items():
        selectors = [{"exactMatch": {"name": node}} for node in members]
        await cluster.create(HYPER_NODES, hyper_node(rack, 1, *selectors, tier_name="rack"))
    spine = f"{short}-spine"
    children = [{"exactMatch": {"name": rack}} for rack in racks]
    await cluster.create(HYPER_NODES, hyper_node(spine, 2, *children, member="HyperNode"))
    try:
        await cluster.create(JOBS, vcjob("spread", replicas=2, cpu="100m", command="sleep 600"))
        await cluster.phase_is("spread", "Running")
        on = (await cluster.pods("spread"))[0]["spec"]["nodeName"]
        await browser.open(f"#topology?search={cluster.namespace}/spread")
        await browser.shows(spine, *racks, "tier 2")
        nested = f'return document.querySelectorAll(\'[aria-label^="{spine}"] [aria-label^="{short}-r"] .cell\').length'
        assert await browser.until(nested, lambda seen: seen == len(nodes)) == len(nodes)
        hits = "return [...document.querySelectorAll('.cell.hit')].map((cell) => cell.ariaLabel.split(':')[0])"
        assert on in await browser.until(hits, lambda seen: on in seen)
        await browser.ask("document.querySelector('.cell[tabindex=\"0\"]').focus()")
        await browser.press(HOME)
        first = await browser.ask("return document.activeElement.ariaLabel")
        await browser.press(RIGHT)
        second = await browser.ask("return document.activeElement.ariaLabel.split(':')[0]")
        assert first.split(":")[0] != second
        await browser.shows(second, "of its scarcest resource", "cpu", css=".inspector")
    finally:
        for name in (spine, *racks):
            await cluster.delete(HYPER_NODES, name)


def hyper_node(name: str, tier: int, *selectors: Json, member: str = "Node", tier_name: str = "") -> Json:
    """A HyperNode of these members."""
    members = [{"type": member, "selector": selector} for selector in selectors]
    spec = {"tier": tier, "members": members, **({"tierName": tier_name} if tier_name else {})}
    return {"apiVersion": HYPER_NODES.api_version, "kind": HYPER_NODES.kind, "metadata": {"name": name}, "spec": spec}


async def test_while_the_api_server_is_away_the_page_says_since_when_and_goes_on_by_itself(
    browser: Browser, cluster: Cluster, stack: Stack
) -> None:
    if not stack.options.with_cluster:
        pytest.skip("the API server of this cluster cannot be kept away for as long as a look takes")
    await cluster.create(JOBS, vcjob("before", command="sleep 600", cpu="10m"))
    await cluster.phase_is("before", "Running")
    await browser.open(f"#jobs?namespace={cluster.namespace}")
    await browser.shows("before", "Running")
    await browser.ask("window.never_reloaded = true")
    await stack.stop(CLUSTER)
    try:
        await browser.shows("Disconnected from the API server since", css="#notices")
        await browser.shows("disconnected for", css="#connection")
        assert "before" in await browser.text(), "the last view stays"
    finally:
        await stack.start_cluster()
    await eventually(lambda: browser.text("#notices"), lambda seen: not seen, what="the notice goes")
    await cluster.create(JOBS, vcjob("after", command="sleep 600", cpu="10m"))
    await browser.shows("before", "after")
    assert await browser.ask("return window.never_reloaded") is True


async def test_a_dashboard_that_has_gone_is_noticed_and_so_is_its_return(browser: Browser, stack: Stack) -> None:
    await browser.open("#overview")
    stack.kill(DASHBOARD)
    await browser.shows("The dashboard does not answer since", css="#notices")
    await stack.stop(DASHBOARD)
    await stack.start(DASHBOARD)
    await eventually(lambda: browser.text("#notices"), lambda seen: not seen, what="the notice goes")


@pytest.mark.parametrize("view", ["overview", "queues", "jobs", "podgroups", "topology", "events"])
async def test_every_control_has_a_name_and_every_view_a_heading(browser: Browser, view: str) -> None:
    await browser.open(f"#{view}")
    nameless = """
        const name = (node) => node.ariaLabel || node.innerText || node.labels?.length || node.title || node.alt === '';
        return [...document.querySelectorAll('a, button, input, select, [role=img], img, table, section')]
          .filter((node) => node.checkVisibility() && !name(node)).map((node) => node.outerHTML.slice(0, 200));
    """
    assert await browser.ask(nameless) == []
    assert await browser.ask("return document.querySelectorAll('h1').length") == 1
    assert await browser.ask("return document.querySelectorAll('[aria-current=page]').length") == 1
    assert view in (await browser.ask("return document.title")).lower().replace(" ", "")
    wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert await browser.ask(wide) <= 0, "the page itself does not scroll sideways"


async def test_colours_are_chosen_and_remembered(browser: Browser) -> None:
    await browser.open("#overview")
    ground = "return getComputedStyle(document.body).backgroundColor"
    seen = set()
    for _ in range(3):
        await browser.click("#theme")
        seen.add((await browser.text("#theme"), await browser.ask(ground)))
    assert {name for name, _ in seen} == {"Light", "Dark", "Auto"}
    assert len({colour for _, colour in seen}) == 2
    await browser.click("#theme")
    chosen = await browser.text("#theme")
    await browser.open("#overview")
    assert await browser.text("#theme") == chosen
