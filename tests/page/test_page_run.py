"""Pages of recorded runs: verdicts observed, timeline, ranks, and two runs side by side."""

from __future__ import annotations

import re
from bisect import bisect_left
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect
from playwright.sync_api import Page as Tab

from specmap.traced import read_run
from tests.page.conftest import Open
from tests.page.pages import LONG_CYCLES, MADE_EAGER, RELEASES, Page, recorded_on_cpu, write
from tests.trace.recorded import MAX_BS_2

pytestmark = pytest.mark.page

REASON = "bs 4 > largest captured 2"


def canvas_of(tab: Tab) -> Locator:
    """Return the timeline, painted."""
    canvas = tab.locator(".lanes canvas")
    canvas.scroll_into_view_if_needed()
    expect(tab.locator(".lanes canvas[data-frames]")).to_be_visible()
    return canvas


def span(canvas: Locator) -> tuple[float, float]:
    """Return the first and the last cycle that the canvas shows."""
    start, end = canvas.get_attribute("data-from"), canvas.get_attribute("data-to")
    assert start is not None and end is not None
    return float(start), float(end)


def test_the_table_shows_what_ran_beside_what_the_source_says(
    opened: Open, run_page: Page, runs: Path
) -> None:
    tab = opened(run_page)
    [rank] = read_run(runs / MAX_BS_2.name).ranks
    for phase in rank.phases:
        row = tab.locator(f"tr[data-worker={phase.worker}][data-phase={phase.phase}]")
        observed = row.locator("[data-column=observed]")
        states = {state.value: number for state, number in phase.counts.items() if number}
        for state, number in states.items() if len(states) > 1 else ():
            expect(observed).to_contain_text(f"{number} {state}")
        word = "mixed" if len(states) > 1 else next(iter(states))
        expect(observed.locator(".chip")).to_contain_text(word)
    verify = tab.locator("tr[data-phase=verify]")
    expect(verify).to_have_count(1)  # workers that did not run are left out
    expect(verify).to_contain_text(REASON)
    [worker] = {phase.worker for phase in rank.phases}
    tab.get_by_role("group", name="Filter phases").get_by_role(
        "combobox", name="Worker"
    ).select_option("*")
    expect(tab.locator(f"tr[data-phase=verify]:not([data-worker={worker}])").first).to_be_visible()
    expect(tab.locator(".headline strong")).to_contain_text(REASON)


def test_a_run_of_the_cpu_tier(opened: Open, runs: Path) -> None:
    page = write(runs / "cpu.html", run=recorded_on_cpu(runs))
    tab = opened(page)
    # One prefill and seven decode cycles, as SGLang counted them; the last extends no draft.
    for phase, passes in (("draft", 7), ("verify", 7), ("draft_extend", 6)):
        row = tab.locator(f"tr[data-worker=StandaloneWorker][data-phase={phase}]")
        expect(row.locator("[data-column=observed] .chip")).to_contain_text("GRAPH")
        line = tab.locator(".run-tables tr", has_text=re.compile(rf"TP 0{phase} "))
        expect(line.locator("td").nth(1)).to_have_text(str(passes))
    canvas = canvas_of(tab)
    assert span(canvas) == (0, 8)
    canvas.focus()
    canvas.press("Home")
    expect(tab.locator(".cycle tbody tr")).to_have_count(2)  # both prefills
    canvas.press("ArrowRight")
    expect(tab.locator(".cycle .chip.graph")).to_have_count(3)


def test_the_timeline_goes_from_eager_pass_to_eager_pass(opened: Open, run_page: Page) -> None:
    tab = opened(run_page)
    canvas = canvas_of(tab)
    numbers = run_page.column(0, "cycle", "number")
    counts = run_page.column(0, "cycle", "passes")
    states = run_page.side["run"]["ranks"][0]["timeline"]["states"]
    passes = iter(states[code] for code in run_page.column(0, "pass", "state"))
    eager = [
        number
        for number, count in zip(numbers, counts, strict=True)
        if "EAGER" in [next(passes) for _ in range(count)]
    ]
    canvas.focus()
    canvas.press("Home")
    visited = [int(tab.locator(".cycle[data-cycle]").get_attribute("data-cycle") or -1)]
    for _ in eager[1:5]:
        canvas.press("n")
        expect(tab.locator(".cycle[data-cycle]")).not_to_have_attribute(
            "data-cycle", str(visited[-1])
        )
        visited.append(int(tab.locator(".cycle[data-cycle]").get_attribute("data-cycle") or -1))
    assert visited == eager[:5]
    expect(tab.locator(".cycle")).to_contain_text(REASON)
    canvas.press("End")
    expect(tab.locator(".cycle[data-cycle]")).to_have_attribute("data-cycle", str(numbers[-1]))
    expect(tab.locator(".cycle .chip.eager")).to_have_count(0)


def test_ranks_differ_and_can_be_chosen(opened: Open, ranks_page: Page) -> None:
    tab = opened(ranks_page)
    canvas = canvas_of(tab)
    numbers = ranks_page.column(1, "cycle", "number")
    diverging = ranks_page.column(1, "cycle", "diverges")
    first = numbers[diverging.index(1)]
    assert first == MADE_EAGER
    tab.get_by_role("button", name="next divergence").click()
    expect(tab.locator(".cycle[data-cycle]")).to_have_attribute("data-cycle", str(first))
    expect(tab.locator(".cycle")).to_contain_text("did not all do the same")
    tab.get_by_role("group", name="Timeline controls").get_by_role(
        "combobox", name="Rank"
    ).select_option("1")
    expect(canvas).to_have_attribute("aria-label", "Timeline of 1 rank")
    tab.get_by_role("link", name="Call graph").click()
    controls = tab.get_by_role("group", name="Call graph controls")
    controls.get_by_role("button", name="observed").click()
    verify = tab.locator("svg.graph .node.phase", has_text="TARGET_VERIFY")
    for rank, word in (("0", "GRAPH"), ("1", "mixed"), ("", "mixed")):
        controls.get_by_role("combobox", name="Rank").select_option(rank)
        expect(verify.locator(".verdict")).to_contain_text(word)


def test_a_hundred_thousand_cycles_are_scrolled_through(opened: Open, long_page: Page) -> None:
    tab = opened(long_page)
    canvas = canvas_of(tab)
    assert span(canvas) == (0, LONG_CYCLES)
    box = canvas.bounding_box()
    assert box is not None and box["height"] < 500  # what cannot be seen is not painted
    assert tab.evaluate("document.querySelectorAll('*').length") < 6000
    canvas.click(position={"x": 700, "y": 60})
    for _ in range(12):
        tab.mouse.wheel(0, -400)
    expect(canvas).not_to_have_attribute("data-to", str(LONG_CYCLES))
    near = span(canvas)
    assert near[1] - near[0] < LONG_CYCLES / 10
    for _ in range(20):
        tab.mouse.wheel(300, 0)
    expect(canvas).not_to_have_attribute("data-from", str(near[0]))
    far = span(canvas)
    assert far[0] > near[0]
    assert far[1] - far[0] == pytest.approx(near[1] - near[0])
    numbers, start = long_page.column(0, "cycle", "number"), 88_888
    tab.get_by_label("Go to cycle").fill(str(start))
    tab.get_by_label("Go to cycle").press("Enter")
    detail = tab.locator(".cycle[data-cycle]")
    expect(detail).to_have_attribute("data-cycle", str(start))
    counts = long_page.column(0, "cycle", "passes")
    expect(detail.locator("tbody tr")).to_have_count(counts[bisect_left(numbers, start)])
    canvas.press("0")
    expect(canvas).to_have_attribute("data-to", str(LONG_CYCLES))
    keys = long_page.side["run"]["ranks"][0]["timeline"]["keys"]
    expect(tab.locator(".histogram")).to_have_count(len(keys))


def test_two_sides_begin_with_what_differs_in_their_headers(
    opened: Open, runs: Path, run_page: Page, ranks_page: Page
) -> None:
    page = write(runs / "two.html", str(runs / MAX_BS_2.name), str(runs / "two-ranks"))
    tab = opened(page)
    section = tab.locator("#comparison")
    found = section.locator(".differences tbody tr")
    expect(found).to_have_count(len(page.data["differences"]))
    names = found.locator("th").all_inner_texts()
    assert names == [one["name"] for one in page.data["differences"]]
    top = [section.locator(one).first.bounding_box() for one in (".differences", ".scroll.tall")]
    assert top[0] is not None and top[1] is not None and top[0]["y"] < top[1]["y"]
    expect(tab.locator(".headline")).to_have_count(2)
    tab.get_by_role("button", name="B two-ranks").click()
    expect(tab.locator("#timeline header")).to_contain_text("2 ranks")


def static(page: Page) -> list[dict[tuple[str, str], str]]:
    """Return the verdicts of the source by worker and phase, side by side."""
    return [
        {(w["name"], p["name"]): p["verdict"] for w in side["workers"] for p in w["phases"]}
        for side in page.data["sides"]
    ]


@pytest.mark.parametrize("first", [f"sglang=={RELEASES[0]}", MAX_BS_2.name])
def test_a_release_beside_another_or_its_run(opened: Open, runs: Path, first: str) -> None:
    """What only one side was seen to do is no difference."""
    target = str(runs / first) if first == MAX_BS_2.name else first
    page = write(runs / "releases.html", target, f"sglang=={RELEASES[1]}")
    tab = opened(page)
    section = tab.locator("#comparison")
    left, right = static(page)
    differ = [at for at in {**left, **right} if left.get(at) != right.get(at)]
    count = f"{len(differ)} verdict{'' if len(differ) == 1 else 's'}"
    expect(section).to_contain_text(f"{count} of {len({**left, **right})} differ")
    if target == first:
        expect(section.locator(".differences")).to_contain_text("0.5.12")
        expect(section.get_by_role("heading", name="What changed in the source")).to_be_visible()
