"""Engines that take turns, and their table: with stand-ins, as far as a machine without GPU can."""

from __future__ import annotations

import json
import os
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu.forks import Fork, Turns, run
from benchmarks.gpu.forks_table import compare, rate, ratios, table
from benchmarks.gpu.trees import PatchError, copy_tree

OLD = "\n".join(f"line {i}" for i in range(40)) + "\n"
NEW = OLD.replace("line 3\n", "line three\nand more\n").replace("line 30\n", "")


def wave(
    variant: str, ids: list[list[int]], *, number: int = 0, time_ms: int = 1000,
    kind: str = "measured", verifies: int = 0,
) -> dict[str, Any]:  # fmt: skip
    return {
        "variant": variant, "kind": kind, "round": number, "label": f"round {number}",
        "requests": len(ids), "tokens": sum(map(len, ids)), "output_ids": ids,
        "start_ns": 0, "end_ns": time_ms * 10**6, "spec_verify_ct": [verifies or None] * len(ids),
    }  # fmt: skip


def test_a_ratio_is_taken_within_a_round() -> None:
    ids = [[1] * 100]
    base = [wave("base", ids, number=n, time_ms=t) for n, t in ((0, 1000), (1, 2000), (2, 500))]
    mine = [wave("mine", ids, number=n, time_ms=t) for n, t in ((1, 1000), (0, 1000), (5, 1))]
    assert rate(base[0]) == 100
    assert ratios(mine, base) == [2.0, 1.0]


def test_a_short_wave_is_compared_with_the_beginning_of_a_long_one() -> None:
    reference = [wave("base", [[1, 2, 3, 4], [5, 6, 7, 8]])]
    same = compare([wave("mine", [[1, 2], [5, 6]])], reference)
    assert (same.same, same.compared, same.first) == (4, 4, "")
    other = compare([wave("mine", [[1, 2, 3], [5, 9, 7]], number=2)], reference)
    assert (other.same, other.compared) == (4, 6)
    assert other.first == "request 1, token 1 in round 2"


def test_the_reference_is_compared_with_its_own_repetition() -> None:
    longest = wave("base", [[1, 2, 3]])
    assert compare([longest], [longest]).compared == 0
    again = wave("base", [[1, 2, 4]], number=1)
    assert compare([longest, again], [longest, again]).same == 2


def test_the_table_has_every_variant_and_what_was_lost(tmp_path: Path) -> None:
    ids = [[1] * 50] * 4
    waves = [wave("base", ids, number=n, verifies=25) for n in (0, 1)]
    waves += [wave("slow", ids, number=n, time_ms=4000, verifies=25) for n in (0, 1)]
    variants = [{"name": "base"}, {"name": "slow", "base": "base"}, {"name": "gone"}]
    text = table(variants, waves, {"gone": "died: CUDA out of memory"}, tmp_path)
    head, base, slow, gone, lost = text.splitlines()
    assert head.split()[:2] == ["variant", "bs"]
    assert base.split()[:2] == ["base", "4"]
    assert "1.000 (1.000 to 1.000, 2)" in base
    assert "identical (400), base" in slow
    assert " 50 " in slow  # 200 tokens in 4 s
    assert "0.250 (0.250 to 0.250, 2)  2.00" in slow
    assert gone.split()[:2] == ["gone", "-"]
    assert lost == "gone was lost: died: CUDA out of memory"


def test_the_table_says_what_a_cycle_costs_under_a_profiler(tmp_path: Path) -> None:
    ids = [[1] * 50] * 4
    kinds = (("bare", 100), ("profiled", 275), ("bare", 110))
    waves = [wave("one", ids, kind=kind, time_ms=time, verifies=25) for kind, time in kinds]
    _, _, cost = table([{"name": "one"}], waves, {}, tmp_path).splitlines()
    assert cost.startswith("one, a cycle under SGLang's profiler and without: ")
    assert cost.endswith(": bare 4.00 ms, profiled 11.00 ms, bare 4.40 ms")


def diff(before: Path, after: Path) -> str:
    """Return git's diff of two folders."""
    return subprocess.run(
        ["git", "diff", "--no-index", "--no-prefix", before.name, after.name],
        cwd=before.parent, capture_output=True, text=True, check=False,
    ).stdout  # fmt: skip


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Make an installed package of two files and a folder of kernels."""
    package = tmp_path / "site" / "sglang"
    (package / "jit_kernel").mkdir(parents=True)
    (package / "jit_kernel" / "kernel.cu").write_text("kernel")
    (package / "one.py").write_text(OLD)
    (package / "two.py").write_text("two\n")
    return tmp_path / "site"


def test_a_patch_of_git_changes_the_copy_only(site: Path, tmp_path: Path) -> None:
    before, after = tmp_path / "a", tmp_path / "b"
    for folder, text in ((before, OLD), (after, NEW)):
        (folder / "sglang").mkdir(parents=True)
        (folder / "sglang" / "one.py").write_text(text)
    (after / "sglang" / "new.py").write_text("made = True\n")
    patch = tmp_path / "fork.patch"
    patch.write_text(f"{diff(before, after)}-- \n2.39\n")  # as `git format-patch` ends it
    tree = copy_tree(site, tmp_path / "copy", [patch])
    assert (tree / "sglang" / "one.py").read_text() == NEW
    assert (tree / "sglang" / "new.py").read_text() == "made = True\n"
    assert (site / "sglang" / "one.py").read_text() == OLD
    assert (tree / "sglang" / "two.py").samefile(site / "sglang" / "two.py")
    kernels = (tree / "sglang" / "jit_kernel").resolve()
    assert kernels == (site / "sglang" / "jit_kernel").resolve()


def test_a_patch_that_does_not_fit_says_where(site: Path, tmp_path: Path) -> None:
    patch = tmp_path / "fork.patch"
    patch.write_text("--- a/sglang/two.py\n+++ b/sglang/two.py\n@@ -1 +1 @@\n-three\n+four\n")
    with pytest.raises(PatchError, match=r"fork\.patch: sglang/two\.py, line 1: .* does not fit"):
        copy_tree(site, tmp_path / "copy", [patch])
    patch.write_text("--- a/sglang/two.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-two\n")
    with pytest.raises(PatchError, match="only changed and new files"):
        copy_tree(site, tmp_path / "copy", [patch])


def state(fork: Fork) -> str:
    """Return the state of a process as the kernel has it; T is stopped."""
    return Path(f"/proc/{fork.process.pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_an_engine_is_stopped_outside_its_turn(tmp_path: Path) -> None:
    case = {"name": "one", "stand_in": {"rate": 1000}}
    fork = Fork(case, tmp_path / "one", dict(os.environ))
    try:
        plan = {"warm_up": 1, "turn_s": 20}
        turns = Turns(plan, [fork], tmp_path, tmp_path)
        turns.wait_for_all(30)
        assert (fork.fate, state(fork)) == ("", "T")
        turns.wave(fork, "measured", 2, 5)
        assert state(fork) == "T"
        assert [len(ids) for ids in turns.waves[0]["output_ids"]] == [5, 5]
    finally:
        fork.end()


def test_what_dies_or_never_starts_does_not_stop_the_others(tmp_path: Path) -> None:
    stand_ins: dict[str, dict[str, Any]] = {
        "base": {}, "dies": {"dies_in": 6}, "never": {"never_starts": True}, "last": {},
    }  # fmt: skip
    variants = [
        {"name": name, "base": "base", "profiled": True, "stand_in": {"rate": 20000} | how}
        for name, how in stand_ins.items()
    ]
    plan = {
        "warm_up": 2, "checked": [[2, 20]], "measured": [[2, 20]], "rounds": 3,
        "profiled": [1, 20], "traced": [1, 2], "start_s": 12, "turn_s": 20, "variants": variants,
    }  # fmt: skip
    out = tmp_path / "out"
    text = run(plan, tmp_path, tmp_path, out, tmp_path / "work", 120)
    waves = [json.loads(line) for line in (out / "waves.jsonl").read_text().splitlines()]
    spans = sorted((w["start_ns"], w["end_ns"]) for w in waves)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    rounds = [[w["variant"] for w in waves if w["round"] == n and w["kind"] == "measured"]
              for n in range(3)]  # fmt: skip
    assert rounds == [["base", "dies", "last"], ["last", "base"], ["base", "last"]]
    profiled = [(w["variant"], w["kind"]) for w in waves if w["kind"] in ("bare", "profiled")]
    bare = ["bare", "profiled", "bare"]
    assert profiled == [(name, kind) for name in ("base", "last") for kind in bare]
    assert "dies was lost: died: a stand-in died, as it was told to" in text
    assert "never was lost: not up in 12 s: it printed nothing" in text
    assert (out / "table.txt").read_text() == f"{text}\n"
    assert (out / "runs.tar.xz").exists()
