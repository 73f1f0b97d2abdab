"""Pages of real releases: table, call graph, conditions, findings, themes."""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page as Tab
from playwright.sync_api import expect

from specmap.report.page.reference import Reference
from tests.page.conftest import Open
from tests.page.pages import RELEASES, Page, repacked, write

pytestmark = pytest.mark.page

SETTINGS, SEED = 200, 11
Settings = list[tuple[int, dict[int, bool | None], int | None]]
"""Worker whose tests are set, truths by test, batch size."""


@pytest.fixture(scope="module")
def static_page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """Return the page of the first release."""
    return write(tmp_path_factory.mktemp("one") / "page.html", f"sglang=={RELEASES[0]}")


def rows(tab: Tab) -> list[tuple[str, str, str]]:
    """Return worker, phase and static verdict of the rows of the phase table."""
    found: list[tuple[str, str, str]] = tab.evaluate(
        """() => [...document.querySelectorAll('tr[data-phase]')].map((row) => [
             row.dataset.worker, row.dataset.phase,
             row.querySelector('[data-column=static] .chip').textContent.replace(/^\\S/, '')])"""
    )
    return [tuple(row) for row in found]  # type: ignore[misc]


def first_worker(page: Page) -> str:
    """Return the name of the first worker with phases."""
    name: str = next(page.phases())[1]["name"]
    return name


def test_the_phase_table_says_what_the_map_says(opened: Open, release_page: Page) -> None:
    tab = opened(release_page)
    expected = [(w["name"], p["name"], p["verdict"]) for _, w, p in release_page.phases()]
    assert len(expected) > 20
    assert rows(tab) == expected
    tab.locator("#phases").get_by_role("button", name="Static").click()
    worst_first = ["EAGER", "UNKNOWN", "depends", "PIECEWISE", "GRAPH", "NOT_RUN"]
    assert rows(tab) == sorted(expected, key=lambda row: worst_first.index(row[2]))
    table = tab.get_by_role("group", name="Filter phases")
    table.get_by_role("combobox", name="Phase").select_option("verify")
    assert rows(tab) == [row for row in expected if row[1] == "verify"]
    table.get_by_role("combobox", name="Worker").select_option(label=first_worker(release_page))
    expect(tab.locator("tr[data-phase]")).to_have_count(1)
    table.get_by_label("Search").fill("no such thing")
    expect(tab.locator("#phases .none")).to_contain_text("No row matches")


def test_a_row_opens_with_the_keyboard_and_shows_its_source(
    opened: Open, release_page: Page
) -> None:
    tab, worker = opened(release_page), first_worker(release_page)
    row = tab.locator(f"tr[data-worker={worker}][data-phase=verify]")
    row.get_by_role("button").focus()
    tab.keyboard.press("Enter")
    place = next(
        p["evidence"] or p["place"]
        for _, w, p in release_page.phases()
        if (w["name"], p["name"]) == (worker, "verify")
    )
    [chunk] = [
        c for c in release_page.side["sources"][place["file"]]
        if c["line"] <= place["line"] < c["line"] + len(c["lines"])
    ]  # fmt: skip
    line = chunk["lines"][place["line"] - chunk["line"]]
    marked = tab.locator("tr.detail .row.here").first
    expect(marked).to_contain_text(line.strip())
    expect(marked).to_contain_text(str(place["line"]))


def test_the_call_graph_is_laid_out_searched_and_walked(opened: Open, release_page: Page) -> None:
    tab = opened(release_page)
    tab.get_by_role("link", name="Call graph").click()
    graph, side = tab.locator("svg.graph"), release_page.side
    expect(graph.locator("[data-node]").first).to_be_visible()
    controls = tab.get_by_role("group", name="Call graph controls")
    controls.get_by_role("combobox").nth(1).select_option("")
    expect(graph.locator(".cluster").first).to_be_attached()
    shown = [w["phases"] != [] for w in side["workers"]].index(True)
    nodes = [
        at for at, node in enumerate(side["graph"]["nodes"])
        if node["kind"] != "leaves" and any(on[0] == shown for on in node["on"])
    ]  # fmt: skip
    found = graph.locator("[data-node]").evaluate_all("all => all.map((one) => one.dataset.node)")
    assert sorted(map(int, found)) == nodes
    phase = next(
        at for at in nodes
        if side["graph"]["nodes"][at]["phase"]
        and side["workers"][shown]["phases"][side["graph"]["nodes"][at]["phase"][1]]["name"]
        == "verify"
    )  # fmt: skip
    graph.locator(f"[data-node='{phase}']").click()
    panel = tab.get_by_role("complementary", name="Selected node")
    expect(panel.get_by_role("heading").first).to_have_text("verify")
    expect(panel.locator("pre.source")).to_be_visible()
    expect(panel).to_contain_text("Leads to")
    graph.locator(f"[data-node='{phase}']").press("ArrowDown")
    walked = graph.locator("[aria-pressed=true]")
    expect(walked).not_to_have_attribute("data-node", str(phase))
    expect(walked).to_be_focused()
    before = graph.locator("> g").get_attribute("transform")
    controls.get_by_role("button", name="Zoom in").click()
    assert graph.locator("> g").get_attribute("transform") != before
    controls.get_by_label("Search").fill("replay")
    expect(tab.locator("#graph .found [role=status]")).to_contain_text("found")
    tab.locator("#graph .found button").first.click()
    expect(panel.get_by_role("heading").first).to_contain_text("replay")
    controls.get_by_role("combobox", name="Worker").select_option("-1")
    drawn = [n for n in side["graph"]["nodes"] if n["phase"]]
    expect(graph.locator(".node.phase")).to_have_count(len(drawn))


def settable(side: dict[str, Any], worker: int) -> list[int]:
    """Return the tests of a worker that the page lets people set."""
    atoms = side["atoms"]
    found = {
        atoms[value["atom"]]["same"]
        for phase in side["workers"][worker]["phases"]
        for value in phase["values"]
    }
    return sorted(same for same in found if atoms[same]["togglable"])


def hold(side: dict[str, Any], term: int, truths: dict[int, bool | None], value: bool) -> None:
    """Set the tests of a condition so that it has this value, the first alternative of each."""
    found = side["terms"][term]
    if isinstance(found, int):
        truths[side["atoms"][found]["same"]] = value
    elif found[0] == "not":
        hold(side, found[1], truths, not value)
    else:
        every = (found[0] == "and") == value
        for inner in found[1:] if every else found[1:2]:
            hold(side, inner, truths, value)


def random_settings(side: dict[str, Any]) -> Settings:
    """Return random tests and batch sizes, as many settings for each worker.

    Every other one starts from tests that let one phase replay its graph: chance alone hardly
    ever meets all of them.
    """
    made = random.Random(SEED)
    workers = [at for at in range(len(side["workers"])) if settable(side, at)]
    settings: Settings = []
    for index in range(SETTINGS):
        worker = workers[index * len(workers) // SETTINGS]
        truths: dict[int, bool | None] = {}
        arms = [a for p in side["workers"][worker]["phases"] for a in p["arms"]]
        if index % 2:
            hold(side, made.choice(arms)["when"], truths, True)
        for same in settable(side, worker):
            if made.random() < (0.05 if index % 2 else 0.5):
                truths[same] = made.choice((True, True, False, False, None))
        free = {same: truths[same] for same in settable(side, worker) if same in truths}
        settings.append((worker, free, made.choice((None, 1, 1, 2, 8))))
    return settings


PRESS = """async ({ toggles, batch }) => {
  const section = document.querySelector('#conditions');
  const drawn = () => new Promise((done) => setTimeout(done));
  const named = (word) => (one) => one.textContent === word;
  const reset = [...section.querySelectorAll('button')].find(named('As given'));
  if (!reset.disabled) { reset.click(); await drawn(); }
  const size = section.querySelector('input[type=number]');
  size.value = batch === null ? '' : String(batch);
  size.dispatchEvent(new Event('input', { bubbles: true }));
  for (const fold of section.querySelectorAll('details:has(summary)')) fold.open = true;
  await drawn();
  await drawn();
  for (const [same, truth] of toggles) {
    const word = truth === null ? 'unknown' : String(truth);
    const buttons = [...section.querySelectorAll(`li[data-test="${same}"] button`)];
    const button = buttons.find(named(word));
    if (button.getAttribute('aria-pressed') !== 'true') button.click();
  }
  await drawn();
  await drawn();
  return [...section.querySelectorAll('td[data-verdict]')].map((cell) => [
    Number(cell.dataset.worker), Number(cell.dataset.phase), cell.dataset.verdict]);
}"""


def size_truth(side: dict[str, Any], kind: str, batch: int | None) -> bool | None:
    """Return the truth of a test of the batch size without a launch: one request is captured."""
    assert side["launch"] is None
    return True if batch == 1 and kind == "at most" else None


def expected(side: dict[str, Any], reference: Reference, setting: Any) -> dict[Any, str]:
    """Return what Python says of every phase under a setting."""
    _, truths, batch = setting
    found = {}
    for w, worker in enumerate(side["workers"]):
        for p, phase in enumerate(worker["phases"]):
            known: list[bool | None] = [None] * len(side["atoms"])
            for value in phase["values"]:
                known[value["atom"]] = value["value"]
            for at, atom in enumerate(side["atoms"]):
                if atom["size"]:
                    known[at] = size_truth(side, atom["size"], batch)
                if atom["same"] in truths:
                    known[at] = truths[atom["same"]]
            found[w, p] = reference.verdict(w, p, known).value
    return found


def test_toggling_gives_the_verdicts_of_python(opened: Open, release_page: Page) -> None:
    side = release_page.side
    reference, tab, worker = Reference(side), opened(release_page), -1
    seen = set()
    for setting in random_settings(side):
        if setting[0] != worker:
            worker = setting[0]
            tab.locator("#conditions").get_by_role("combobox", name="Tests of").select_option(
                str(worker)
            )
            tab.locator("#conditions").get_by_role("combobox", name="Phase").select_option("")
        pressed = {"toggles": list(setting[1].items()), "batch": setting[2]}
        shown = {(w, p): verdict for w, p, verdict in tab.evaluate(PRESS, pressed)}
        wanted = expected(side, reference, setting)
        assert {at: verdict for at, verdict in shown.items() if at[1] >= 0} == wanted, setting
        seen |= set(wanted.values())
    assert len(seen) > 2


def test_findings_are_all_there_with_their_rule_pages(opened: Open, release_page: Page) -> None:
    tab, side = opened(release_page), release_page.side
    section = tab.locator("#findings")
    section.get_by_role("combobox", name="Status").select_option("all")
    expect(section.get_by_role("status").first).to_have_text(f"{len(side['findings'])} shown")
    rule = next(iter(side["rules"].values()))
    section.get_by_role("combobox", name="Rule").select_option(rule["id"])
    group = section.locator(f"[data-rule={rule['id']}]")
    if group.locator("> details").get_attribute("open") is None:
        group.locator("> details > summary").click()
    found = [one for one in side["findings"] if one["rule"] == rule["id"]]
    expect(group.locator(".findings > li")).to_have_count(len(found))
    group.locator(".findings > li summary").first.click()
    expect(group.locator(".excerpt").first).to_be_visible()
    group.get_by_text(f"About {rule['id']}").click()
    heading = next(line[3:] for line in rule["page"].splitlines() if line.startswith("## "))
    expect(group.locator(".prose h3", has_text=heading)).to_be_visible()


def test_remedies_and_suppressions(opened: Open, static_page: Page, tmp_path: Path) -> None:
    data = copy.deepcopy(static_page.data)
    side = data["sides"][0]
    place, rewrite = side["findings"][0]["place"], next(iter(side["rewrites"]))
    side["findings"][0] |= {"status": "suppressed", "reason": "known since March"}
    assert not side["tried"]
    side["tried"] = True
    side["crashes"] = ["SPM999 rules/x.py:1: division by zero"]
    side["remedies"] = [
        {
            "rewrite": rewrite, "place": place, "holder": "W.verify", "what": "asks the runner",
            "outcome": "applied", "reason": "", "facts": ["one caller"], "workers": ["W"],
            "proven": True, "diff": "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-<b>old</b>\n+new\n",
            "proof": [{"layer": "ledger", "status": "held", "detail": "3 crossings fewer"}],
        },
        {
            "rewrite": rewrite, "place": place, "holder": "W.draft", "what": "asks the runner",
            "outcome": "refused", "reason": "two callers", "facts": [], "workers": [],
            "proven": False, "diff": "", "proof": [],
        },
    ]  # fmt: skip
    tab = opened(repacked(static_page, tmp_path / "remedies.html", data))
    section = tab.locator("#findings")
    expect(section).to_contain_text("division by zero")
    section.get_by_role("combobox", name="Status").select_option("suppressed")
    section.locator(".findings summary").first.click()
    expect(section.locator(".findings")).to_contain_text("Suppressed: known since March")
    first, second = section.locator(".remedies > details").all()
    first.locator("summary").first.click()
    expect(first).to_contain_text("✓ proven")
    expect(first.locator("table")).to_contain_text("3 crossings fewer")
    expect(first.locator(".row.minus")).to_have_text("-<b>old</b>\n")
    expect(first.locator(".row.plus")).to_have_text("+new\n")
    second.locator("summary").first.click()
    expect(second).to_contain_text("two callers")
    expect(second).not_to_contain_text("proven")


def test_rewrites_that_were_not_tried_are_named_as_such(opened: Open, static_page: Page) -> None:
    tab, rewrites = opened(static_page), static_page.side["rewrites"]
    section = tab.locator("#findings .remedies")
    expect(section.locator(".none")).to_contain_text("add --fix")
    expect(section.locator("> details")).to_have_count(len(rewrites))
    section.locator("summary").first.click()
    expect(section.locator("details .prose").first).to_be_visible()


def test_nothing_scrolls_sideways_and_the_themes_differ(opened: Open, release_page: Page) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    tab = opened(release_page, "dark")
    dark = tab.evaluate(ground)
    tab.get_by_role("button", name="Light", exact=True).click()
    light = tab.evaluate(ground)
    assert dark != light
    tab.get_by_role("button", name="Auto", exact=True).click()
    assert tab.evaluate(ground) == dark
    tab.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    tab.locator("tr[data-phase] button").first.click()
    wide = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    assert tab.evaluate(wide) == [1280, 1280]
    tab.set_viewport_size({"width": 380, "height": 800})
    assert tab.evaluate(wide) == [380, 380]
