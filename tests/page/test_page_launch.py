"""Pages of a launch: what decides, what the call graph opens with, and a telephone's width."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect
from playwright.sync_api import Page as Tab

from specmap.launched import Launch
from tests.page.conftest import Open
from tests.page.pages import Page, write

pytestmark = pytest.mark.page

TARGET = "sglang==0.5.12"
COMMAND = (
    "--model-path m --dtype bfloat16 --max-running-requests 8 --cuda-graph-max-bs 2 "
    "--attention-backend triton --speculative-algorithm EAGLE3 --speculative-draft-model-path d "
    "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
)
DECIDES = "cuda_graph_bs <= self.max_bs"
"""Graphs are captured up to a batch of 2, and 4 requests run at once."""

PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def launch_page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """Return the page of a launch whose batches are above the largest captured size."""
    path = tmp_path_factory.mktemp("launch") / "page.html"
    return write(path, TARGET, launch=Launch(COMMAND, gpu_memory=141, sm=90, batch="bs=4"))


def running(page: Page) -> dict[str, Any]:
    """Return the worker that the launch runs."""
    [worker] = [w for w in page.side["workers"] if w["selection"] == "runs"]
    return dict(worker)


def test_the_test_that_decides_comes_first(opened: Open, launch_page: Page) -> None:
    tab = opened(launch_page)
    section = tab.locator("#conditions")
    section.scroll_into_view_if_needed()
    expect(section.get_by_role("combobox", name="Phase")).not_to_have_value("")
    first = section.locator(".tests li").first
    expect(first).to_contain_text(DECIDES)
    expect(first).to_contain_text("decides")
    expect(first).to_contain_text("bs 4 > largest captured 2")
    expect(first.locator(".chip")).to_have_text("false")
    section.get_by_label("Batch size").fill("2")
    expect(first.locator(".chip")).to_have_text("true")


def test_a_search_finds_fixed_tests_and_opens_them(opened: Open, launch_page: Page) -> None:
    tab = opened(launch_page)
    section = tab.locator("#conditions")
    section.scroll_into_view_if_needed()
    section.get_by_role("combobox", name="Phase").select_option("verify")
    expect(section.locator(".tests li").first).to_contain_text("decides")
    atoms = launch_page.side["atoms"]
    [verify] = [p for p in running(launch_page)["phases"] if p["name"] == "verify"]
    fixed = {atoms[value["atom"]]["text"] for value in verify["values"]
             if not atoms[value["atom"]]["togglable"]} - {DECIDES}  # fmt: skip
    assert fixed
    table = section.get_by_role("group", name="Tests that are fixed")
    expect(table).to_have_count(0)
    section.get_by_label("Search").fill(min(fixed))
    expect(table.get_by_role("row").nth(1)).to_be_visible()
    expect(table).to_contain_text(min(fixed))
    section.get_by_label("Search").fill("max_bs")
    expect(section.locator(".tests li").first).to_contain_text(DECIDES)


def test_what_changes_a_verdict_alone_comes_before_what_does_not(
    opened: Open, launch_page: Page
) -> None:
    """With a batch of 2 captured graphs replay, so one test is enough to take that away."""
    tab = opened(launch_page)
    section = tab.locator("#conditions")
    section.scroll_into_view_if_needed()
    section.get_by_role("combobox", name="Phase").select_option("draft")
    folded = section.locator("details", has_text="change no verdict here")
    expect(folded).to_be_visible()
    shown = section.locator(".tests").first.locator("li[data-test]:not(.deciding)")
    verdict = section.locator("tr.current td[data-column=draft]")
    before = verdict.get_attribute("data-verdict")
    for test in shown.all():
        for button in test.locator("button[aria-pressed=false]").all()[:2]:
            button.click()
            if verdict.get_attribute("data-verdict") != before:
                break
        assert verdict.get_attribute("data-verdict") != before
        section.get_by_role("button", name="As given").click()


def test_a_batch_that_does_not_come_about_is_remarked(opened: Open, launch_page: Page) -> None:
    tab = opened(launch_page)
    section = tab.locator("#conditions")
    remark, size = section.locator(".remark"), section.get_by_label("Batch size")
    expect(remark).to_have_text("")
    size.fill("9")
    expect(remark).to_contain_text("admits 8 requests at most")
    size.fill("8")
    expect(remark).to_have_text("")
    size.fill("-3")
    expect(remark).to_contain_text("at least one request")


def test_workers_that_do_not_run_are_folded(opened: Open, launch_page: Page) -> None:
    tab, name = opened(launch_page), running(launch_page)["name"]
    section = tab.locator("#conditions")
    expect(section.locator("table.matrix tbody th")).to_have_text([name])
    others = [w["name"] for w in launch_page.side["workers"] if w["phases"] and w["name"] != name]
    section.get_by_text(f"{len(others)} workers that do not run here").click()
    expect(section.locator("table.matrix tbody th")).to_have_text([name, *others])


def graph_of(tab: Tab) -> Locator:
    """Return the call graph, drawn."""
    tab.locator("#graph").scroll_into_view_if_needed()
    expect(tab.locator("svg.graph [data-node]").first).to_be_visible()
    return tab.locator("svg.graph")


BOXES = """(all) => all.map((one) => {
  const { left, right, top, bottom } = one.getBoundingClientRect();
  return [left, right, top, bottom];
})"""


def boxes(found: Locator) -> list[list[float]]:
    """Return left, right, top and bottom of elements."""
    shown: list[list[float]] = found.evaluate_all(BOXES)
    return shown


def within(inner: list[float], outer: list[float], slack: float = 1) -> bool:
    """Whether a box lies in another."""
    return (
        inner[0] >= outer[0] - slack and inner[1] <= outer[1] + slack
        and inner[2] >= outer[2] - slack and inner[3] <= outer[3] + slack
    )  # fmt: skip


def apart(one: list[float], other: list[float], slack: float = 1) -> bool:
    """Whether two boxes have nothing in common."""
    return (
        one[1] <= other[0] + slack or other[1] <= one[0] + slack
        or one[3] <= other[2] + slack or other[3] <= one[2] + slack
    )  # fmt: skip


def test_the_graph_opens_with_all_of_a_phase_s_ways_readable(
    opened: Open, launch_page: Page
) -> None:
    tab = opened(launch_page)
    graph = graph_of(tab)
    controls = tab.get_by_role("group", name="Call graph controls")
    phase = controls.get_by_role("combobox").nth(1)
    [worker] = [w for w in launch_page.side["workers"] if w["selection"] == "runs"]
    for shown in ("draft", "verify"):
        phase.select_option(shown)
        expect(graph.locator(".node.phase .first")).to_have_text(f"{shown} ")
        [found] = [p for p in worker["phases"] if p["name"] == shown]
        sinks = {arm["sink"] for arm in found["arms"]}
        expect(graph.locator(".node.sink")).to_have_count(len(sinks))
    nodes = graph.locator(".node")
    [frame] = boxes(tab.locator(".graph-frame"))
    assert all(within(box, frame) for box in boxes(nodes.locator("rect")))
    height = boxes(graph.locator(".node .first").first)[0]
    assert height[3] - height[2] >= 9, "the text of a node can be read"
    for node in nodes.all():
        [border] = boxes(node.locator("rect"))
        assert all(within(text, border) for text in boxes(node.locator("text")))
        words = " ".join(node.locator("text").all_text_contents())
        assert words.count("EAGER") <= 1
    borders = boxes(nodes.locator("rect"))
    labels = boxes(graph.locator(".edge text"))
    assert labels
    assert all(apart(label, border) for label in labels for border in borders)
    assert all(apart(a, b) for at, a in enumerate(labels) for b in labels[:at])


def test_a_decision_is_not_taken_for_a_verdict(opened: Open, launch_page: Page) -> None:
    tab = opened(launch_page)
    graph = graph_of(tab)
    decision = graph.locator(".node.decision", has_text="max_bs")
    expect(decision).to_contain_text("is false")
    fill = "(one) => getComputedStyle(one).fill || getComputedStyle(one).backgroundColor"
    ground = "(one) => getComputedStyle(one).backgroundColor"
    colour = decision.locator("rect").evaluate(fill)
    chips = tab.locator("#graph .legend .chip")
    alike = [chip.inner_text() for chip in chips.all() if chip.evaluate(ground) == colour]
    assert alike == ["asks whether a graph can run"]


def test_an_eager_prefill_is_usual_and_no_loss(opened: Open, launch_page: Page) -> None:
    tab = opened(launch_page)
    lost = "#phases tr[data-phase={}] .chip"
    for name in ("target_prefill", "draft_prefill"):
        expect(tab.locator(lost.format(name))).to_have_class("chip usual")
        expect(tab.locator(f"#phases tr[data-phase={name}]")).to_contain_text("once a request")
    for name in ("draft", "verify", "draft_extend"):
        expect(tab.locator(lost.format(name))).to_have_class("chip eager")


def test_what_only_a_run_fills_is_left_out_without_one(
    opened: Open, launch_page: Page, run_page: Page
) -> None:
    tab, recorded = opened(launch_page), opened(run_page)
    for title in ("Observed", "CPU time share"):
        expect(tab.locator("#phases").get_by_role("columnheader", name=title)).to_have_count(0)
        expect(recorded.locator("#phases").get_by_role("columnheader", name=title)).to_be_visible()
    expect(tab.locator("#timeline")).to_have_count(0)
    expect(tab.get_by_role("link", name="Timeline")).to_have_count(0)
    expect(recorded.get_by_role("link", name="Timeline")).to_be_visible()


def test_a_command_breaks_between_arguments_alone(opened: Open, launch_page: Page) -> None:
    tab = opened(launch_page)
    command = tab.locator(".command")
    text = " ".join(launch_page.side["launch"]["command"])
    assert command.inner_text().split() == text.split()
    arguments = command.locator(".argument")
    expect(arguments.filter(has_text="--attention-backend")).to_have_text(
        "--attention-backend triton"
    )
    for width in (1280, 700, 390):
        tab.set_viewport_size({"width": width, "height": 844})
        high = [box[3] - box[2] for box in boxes(arguments)]
        assert max(high) - min(high) < 1, "each stands on one line"


def test_a_telephone_shows_two_sides_whole(opened: Open, launch_page: Page, tmp_path: Path) -> None:
    page = write(tmp_path / "two.html", TARGET, "sglang==0.5.9")
    tab = opened(page)
    tab.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    wide = "document.documentElement.scrollWidth"
    assert tab.evaluate(wide) == PHONE["width"]
    [dark] = boxes(tab.get_by_role("button", name="Dark", exact=True))
    assert dark[1] <= PHONE["width"]
    [switch] = boxes(tab.get_by_role("group", name="Side shown below"))
    assert switch[3] - switch[2] < 40, "one line"
    tab.get_by_role("button", name="B sglang==0.5.9").click()
    expect(tab.locator(".shown-side")).to_contain_text("B: sglang==0.5.9")


def test_a_telephone_shows_verdicts_whole_and_what_scrolls(opened: Open, launch_page: Page) -> None:
    tab = opened(launch_page)
    tab.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    cells = boxes(tab.locator("#conditions tr.current td"))
    assert len(cells) == 5
    assert all(cell[1] <= PHONE["width"] for cell in cells)
    tab.get_by_text("settings after the release's own argument code").click()
    settings = tab.get_by_role("group", name="Settings")
    settings.locator("table").evaluate("(one) => one.style.setProperty('width', '900px')")
    expect(settings).to_have_class("scroll more")
    settings.evaluate("(one) => { one.scrollLeft = 9999; }")
    expect(settings).to_have_class("scroll")


def test_no_empty_panel_beside_the_graph_on_a_telephone(opened: Open, launch_page: Page) -> None:
    tab = opened(launch_page)
    tab.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    graph_of(tab)
    panel = tab.get_by_role("complementary", name="Selected node")
    expect(panel).to_contain_text("Leads to")


def test_code_is_no_larger_than_text_on_paper(opened: Open, launch_page: Page) -> None:
    tab = opened(launch_page)
    tab.emulate_media(media="print")
    size = "(one) => parseFloat(getComputedStyle(one).fontSize)"
    text = tab.locator("body").evaluate(size)
    for one in (".because .mono", ".command", "#phases td.place", "#conditions code"):
        assert tab.locator(one).first.evaluate(size) <= text, one


def test_a_healthy_launch_names_other_causes(opened: Open, tmp_path: Path, axe: str) -> None:
    command = COMMAND.replace("--cuda-graph-max-bs 2", "--cuda-graph-max-bs 32")
    launch = Launch(command, gpu_memory=141, sm=90, batch="bs=4")
    tab = opened(write(tmp_path / "good.html", TARGET, launch=launch))
    sentence = tab.locator(".headline")
    expect(sentence.locator("strong")).to_have_text(
        "draft, verify and draft_extend of EAGLEWorkerV2 replay their graphs at a batch of 4: the "
        "graph is not the cause."
    )
    expect(sentence.get_by_role("heading", name="If it is slow all the same")).to_be_visible()
    expect(sentence).to_contain_text("accept length")
    assert tab.locator("#phases .chip.eager").count() == 0
    tab.evaluate(axe)
    found = tab.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    assert found["passes"] and not found["violations"]
