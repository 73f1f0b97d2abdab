"""What axe-core finds in a page with everything opened, and what is left of it on paper."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page as Tab
from playwright.sync_api import expect

from tests.page.conftest import Open
from tests.page.pages import RELEASES, Page, write
from tests.trace.recorded import MAX_BS_2

pytestmark = pytest.mark.page


def open_all(tab: Tab) -> None:
    """Open what can be opened, and wait until the graph is there."""
    tab.locator("#graph").scroll_into_view_if_needed()
    expect(tab.locator("svg.graph [data-node]").first).to_be_visible()
    tab.locator("svg.graph [data-node]").first.click()
    tab.locator("tr[data-phase] button").first.click()
    unfold(tab)


def unfold(tab: Tab) -> None:
    """Open all that is folded."""
    for _ in range(2):  # what opens holds more to open
        tab.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        tab.wait_for_timeout(100)


def faults(tab: Tab, axe: str) -> list[str]:
    """Return all that axe finds, whatever its impact."""
    tab.evaluate(axe)
    found = tab.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    assert found["passes"], "axe looked at nothing"
    return [
        f"{fault['id']}: {json.dumps([node['html'][:200] for node in fault['nodes'][:3]])}"
        for fault in found["violations"]
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_fault_in_a_run_s_page(opened: Open, run_page: Page, axe: str, theme: str) -> None:
    tab = opened(run_page, theme)
    open_all(tab)
    canvas = tab.locator(".lanes canvas")
    canvas.focus()
    canvas.press("n")
    expect(tab.locator(".cycle table")).to_be_visible()
    assert faults(tab, axe) == []


@pytest.mark.parametrize("release_page", RELEASES[-1:], indirect=True)
def test_no_fault_in_the_newest_release(opened: Open, release_page: Page, axe: str) -> None:
    tab = opened(release_page)
    open_all(tab)
    assert faults(tab, axe) == []


def test_no_fault_in_a_comparison(
    opened: Open, runs: Path, run_page: Page, ranks_page: Page, axe: str
) -> None:
    page = write(runs / "beside.html", str(runs / MAX_BS_2.name), str(runs / "two-ranks"))
    tab = opened(page)
    expect(tab.locator("#comparison .differences")).to_be_visible()
    unfold(tab)
    assert faults(tab, axe) == []


def test_the_page_prints(opened: Open, run_page: Page) -> None:
    tab = opened(run_page, "dark")
    tests = tab.locator("#conditions .tests li")
    tab.locator("#conditions").scroll_into_view_if_needed()
    expect(tests.first).to_contain_text("decides")
    unfold(tab)
    tests.locator("button[aria-pressed=false]:visible").first.click()
    expect(tests.nth(1)).to_be_visible()
    tab.emulate_media(media="print")
    expect(tab.locator("#conditions .tests li:visible")).to_have_count(1)  # what was set
    expect(tab.get_by_role("navigation")).to_be_hidden()
    expect(tab.locator("table.phases")).to_be_visible()
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert tab.pdf(format="A4").startswith(b"%PDF")
