"""A browser, the pages, and a watch on what each page asks for and complains about."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright
from playwright.sync_api import Page as Tab

from tests.page import environment
from tests.page.pages import RELEASES, Page, lengthened, recorded, two_ranks, write

FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
READY = "#specmap-page[data-ready]"
LOCAL = ("file:", "blob:", "data:")

Open = Callable[..., Tab]
"""Opens a page; ``theme`` is ``light`` or ``dark``."""


@pytest.fixture(scope="session")
def app() -> Path:
    """Return the folder of the front end, its packages installed."""
    environment.packages()
    return environment.APP


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Return a headless browser with an empty profile of its own."""
    with sync_playwright() as playwright:
        path = str(environment.browser())
        running = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield running
        running.close()


@pytest.fixture
def opened(browser: Browser) -> Iterator[Open]:
    """Open pages; afterwards fail for whatever left the page or was complained about."""
    complaints: list[str] = []
    tabs: list[Tab] = []

    def open_page(page: Page, theme: str = "light") -> Tab:
        shown = browser.new_page(
            viewport={"width": 1280, "height": 900},
            color_scheme="dark" if theme == "dark" else "light",
        )
        tabs.append(shown)
        shown.on("console", lambda message: complaints.append(f"console: {message.text}"))
        shown.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        shown.on("request", lambda request: complaints.extend(_outside(request.url)))
        shown.goto(page.path.as_uri())
        shown.wait_for_selector(READY)
        return shown

    yield open_page
    for tab in tabs:
        tab.close()
    assert complaints == []


def _outside(url: str) -> list[str]:
    return [] if url.startswith(LOCAL) else [f"request: {url}"]


@pytest.fixture(scope="session", params=RELEASES)
def release_page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Page:
    """Return the page of a release from the package index."""
    release: str = request.param
    return write(tmp_path_factory.mktemp("static") / f"{release}.html", f"sglang=={release}")


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of all runs."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="session")
def run_page(runs: Path) -> Page:
    """Return the page of a recorded run."""
    return write(runs / "run.html", run=recorded(runs))


@pytest.fixture(scope="session")
def ranks_page(runs: Path) -> Page:
    """Return the page of a run of two ranks that are not alike."""
    return write(runs / "ranks.html", run=two_ranks(runs))


@pytest.fixture(scope="session")
def long_page(ranks_page: Page, runs: Path) -> Page:
    """Return the page of two ranks with a hundred thousand cycles each."""
    return lengthened(ranks_page, runs / "long.html")


@pytest.fixture(scope="session")
def axe(app: Path) -> str:
    """Return the script of axe-core."""
    return (app / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")


@pytest.fixture(scope="session")
def npm(app: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a script of the front end."""

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=app, capture_output=True, text=True, timeout=300, check=False
        )

    return run
