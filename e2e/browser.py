"""A real browser without a window (Debian's chromium and chromium-driver), and what a test says to it.

The driver is a blocking library; it is called in threads, so that the test's event loop goes on.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from e2e.cluster import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selenium.webdriver import Chrome

T = TypeVar("T")

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
DRIVER = "chromedriver"
FLAGS = (
    "--headless=new",
    "--window-size=1440,1000",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",  # nothing but the page is asked for
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
)
ALARMS = ("Content Security Policy", "Uncaught", "is not a function", "is not defined")
"""What the browser's console says when a page has tried something forbidden, or has a bug."""


class Browser:
    """One window on the dashboard."""

    def __init__(self, driver: Chrome, url: str) -> None:
        self._driver = driver
        self._url = url

    async def open(self, address: str) -> None:
        """Load the page anew at this place (``#jobs?state=waiting``), and wait until the view is drawn."""
        await self._do(self._driver.get, "about:blank")
        await self._do(self._driver.get, self._url + address)
        view = address.removeprefix("#").partition("?")[0] or "overview"
        await self.until("return document.body.dataset.loaded", lambda seen: seen == view, what=f"the view {view}")

    async def ask(self, script: str, *arguments: Any) -> Any:
        """What a script answers in the page."""
        return await self._do(self._driver.execute_script, script, *arguments)

    async def until(self, script: str, holds: Callable[[Any], object] = bool, *, what: str = "") -> Any:
        """Ask until the answer holds; answers it."""
        return await eventually(lambda: self.ask(script), holds, what=what or script)

    async def text(self, css: str = "main") -> str:
        """What a person reads in an element."""
        return str(await self.ask("return document.querySelector(arguments[0])?.innerText ?? ''", css))

    async def shows(self, *words: str, css: str = "main") -> str:
        """Wait until all the words are to be read in an element; answers its text."""
        return await eventually(
            lambda: self.text(css), lambda seen: all(word in seen for word in words), what=f"{words} in {css}"
        )

    async def press(self, *keys: str) -> None:
        """Press keys, one after the other, where the focus is."""
        from selenium.webdriver.common.action_chains import ActionChains

        for key in keys:
            await self._do(ActionChains(self._driver).send_keys(key).perform)

    async def click(self, css: str) -> None:
        """Click on the first such element."""
        from selenium.webdriver.common.by import By

        await self._do(lambda: self._driver.find_element(By.CSS_SELECTOR, css).click())

    async def alarms(self) -> list[str]:
        """Lines of the console that no page of ours should cause."""
        lines = await self._do(self._driver.get_log, "browser")
        return [line["message"] for line in lines if any(alarm in line["message"] for alarm in ALARMS)]

    async def _do(self, call: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.to_thread(call, *arguments)


@contextmanager
def window(url: str, profile: Path) -> Iterator[Browser]:
    """A browser over the page at ``url``. Where there is none the test is skipped, and fails under ``CI=true``."""
    program, driver = _found()
    from selenium.webdriver import Chrome
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # chromium's own sandbox refuses root
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = Chrome(options=options, service=Service(driver))
    try:
        yield Browser(chrome, url)
    finally:
        chrome.quit()


def _found() -> tuple[str, str]:
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which(DRIVER)
    if program and driver:
        return program, driver
    missing = "no browser for the dashboard's tests: apt-get install chromium chromium-driver"
    if os.environ.get("CI") == "true":
        pytest.fail(missing)
    pytest.skip(missing)
