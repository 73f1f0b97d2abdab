"""What axe-core finds in a page with everything opened, and what is left of it on paper."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page as Tab
from playwright.sync_api import expect

from tests.page.conftest import Open
from tests.page.pages import RELEASES, Page

pytestmark = pytest.mark.page


def open_all(tab: Tab) -> None:
    """Open what can be opened, and wait until the graph is there."""
    tab.locator("#graph").scroll_into_view_if_needed()
    expect(tab.locator("svg.graph [data-node]").first).to_be_visible()
    tab.locator("svg.graph [data-node]").first.click()
    tab.locator("tr[data-phase] button").first.click()
    for _ in range(2):  # what opens holds more to open
        tab.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        tab.wait_for_timeout(100)


def serious(tab: Tab, axe: str) -> list[str]:
    """Return the serious faults that axe finds."""
    tab.evaluate(axe)
    found = tab.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    assert found["passes"], "axe looked at nothing"
    return [
        f"{fault['id']}: {json.dumps([node['html'][:200] for node in fault['nodes'][:3]])}"
        for fault in found["violations"]
        if fault["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_serious_fault_in_a_run_s_page(
    opened: Open, run_page: Page, axe: str, theme: str
) -> None:
    tab = opened(run_page, theme)
    open_all(tab)
    canvas = tab.locator(".lanes canvas")
    canvas.focus()
    canvas.press("n")
    expect(tab.locator(".cycle table")).to_be_visible()
    assert serious(tab, axe) == []


@pytest.mark.parametrize("release_page", RELEASES[-1:], indirect=True)
def test_no_serious_fault_in_the_newest_release(opened: Open, release_page: Page, axe: str) -> None:
    tab = opened(release_page)
    open_all(tab)
    assert serious(tab, axe) == []


def test_the_page_prints(opened: Open, run_page: Page) -> None:
    tab = opened(run_page, "dark")
    tests = tab.locator("#conditions .tests li")
    tests.first.locator("button[aria-pressed=false]").first.click()
    expect(tests.nth(1)).to_be_visible()
    tab.emulate_media(media="print")
    expect(tab.locator("#conditions .tests li:visible")).to_have_count(1)  # what was set
    expect(tab.get_by_role("navigation")).to_be_hidden()
    expect(tab.locator("table.phases")).to_be_visible()
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert tab.pdf(format="A4").startswith(b"%PDF")
