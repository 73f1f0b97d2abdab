"""Rewrites on real releases: refusals with their reasons, upstream's own text, seeded faults."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from specmap.codemap.remedy import Outcome, Proposal
from specmap.codemap.source import Span
from specmap.fix.apply import applied
from specmap.fix.catalogue import CATALOGUE, static_count
from specmap.fix.facts import facts_of
from specmap.fix.lost import lost
from specmap.fix.names import load_names
from specmap.fix.tree import Tree
from specmap.fixed import Request, fix_tree
from specmap.pipeline import scan_tree
from tests.mutations.edits import Edit
from tests.mutations.faults import Mutant, bypassed
from tests.mutations.score import copied, mutate, release_of
from tests.releases.trees import checkout_of

pytestmark = pytest.mark.releases
RELEASES = ("0.5.9", "0.5.12", "0.5.23")
EAGLE = "sglang/srt/speculative/eagle_worker.py"
INFO = "sglang/srt/speculative/eagle_info.py"
MODEL_RUNNER = "sglang/srt/model_executor/model_runner.py"
INFO_V2 = "sglang/srt/speculative/eagle_info_v2.py"
MULTI = "sglang/srt/speculative/multi_layer_eagle_worker"
NGRAM = "sglang/srt/speculative/ngram_info.py"


@cache
def tree_of(release: str) -> Tree:
    root = Path(checkout_of(release).root)
    return Tree(root, scan_tree(f"sglang=={release}"), load_names())


@cache
def proposals(release: str) -> tuple[Proposal, ...]:
    return tuple(p for rewrite in CATALOGUE for p in rewrite.find(tree_of(release)))


def at(release: str, rewrite: str, file: str, line: int) -> Proposal:
    (found,) = (
        p for p in proposals(release)
        if p.rewrite == rewrite and p.span.file == file and p.span.line == line
    )  # fmt: skip
    return found


@pytest.mark.parametrize(
    ("rewrite", "file", "line", "reason"),
    [
        ("SPF205", EAGLE, 951, "this branch depends on whether batch.seq_lens_cpu is there"),
        ("SPF204", INFO, 460, "align_evict_mask_to_page_size"),
        ("SPF204", NGRAM, 217, "accept_length_list is bound at line 265, after the index"),
        ("SPF203", INFO, 149, "may be a device scalar: one wait for each element"),
    ],
)
def test_the_wrong_rewrites_of_the_prototype_are_refused_in_0_5_9(
    rewrite: str, file: str, line: int, reason: str
) -> None:
    proposal = at("0.5.9", rewrite, file, line)
    assert reason in proposal.refused
    assert proposal.changes == ()


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("evict_mask &= batch.out_cache_loc > 0", "the host does not know how many"),
        ("evict_mask.logical_and_(keep)", "evict_mask may be changed at line 448"),
        ("torch.logical_and(evict_mask, keep, out=evict_mask)", "logical_and at line 448 takes"),
        ("evict_mask = evict_mask & keep", "the host does not know how many"),
        ("other = evict_mask", "evict_mask may be changed at line 448"),
        ("accept_length_list = [0] * bs", "accept_length_list is changed at line 448"),
        ("accept_length_list[0] += 1", "accept_length_list is changed at line 448"),
        ("accept_length_list.append(1)", "accept_length_list is changed at line 448"),
    ],
)
def test_a_count_that_something_changes_is_refused(statement: str, reason: str) -> None:
    """A statement in the place of a comment, so that every line stays where the map has it."""
    stock = tree_of("0.5.9")
    comment = "# TODO: boolean array index leads to a device sync. Remove it."
    text = stock.text(INFO)
    assert text.splitlines()[447].strip() == comment
    changed = Tree(stock.root, stock.codemap, stock.names, {INFO: text.replace(comment, statement)})
    (found,) = (p for p in static_count.find(changed) if p.span == Span(INFO, 449, 449))
    assert reason in found.refused
    assert found.changes == ()


def test_the_tokens_of_a_prefill_are_shifted_at_once_where_their_lengths_are_numbers() -> None:
    proposal = at("0.5.9", "SPF208", INFO, 666)
    after = applied(tree_of("0.5.9").text(INFO), proposal.changes, INFO)
    shift = "rotate_segments_(batch.input_ids, batch.extend_lens, self.verified_id)\n\n    @class"
    assert f"        {shift}" in after
    for line in (634, 729):
        assert "may be a tensor" in at("0.5.9", "SPF208", f"{MULTI}.py", line).refused


def test_the_count_of_0_5_9_is_used_where_nothing_changes_it() -> None:
    proposal = at("0.5.9", "SPF204", INFO, 449)
    after = applied(tree_of("0.5.9").text(INFO), proposal.changes, INFO)
    count = "evict_mask.numel() - len(accept_length_list) - sum(accept_length_list)"
    assert f"select_static(batch.out_cache_loc, evict_mask, {count})" in after


SPECULATIVE = "sglang/srt/speculative"


@pytest.mark.parametrize(
    ("rewrite", "file", "line", "reason"),
    [
        ("SPF205", "frozen_kv_mtp_worker_v2.py", 479, "nothing in the function shows that"),
        ("SPF205", "frozen_kv_mtp_worker_v2.py", 339, "depends on whether"),
        ("SPF202", "ngram_worker.py", 268, "prev_token_ids is stored and read by the copies"),
        ("SPF202", "dspark_components/dspark_observability.py", 572, "is stored and read by"),
        ("SPF203", "pp_spec_relay.py", 139, "may be a device scalar"),
    ],
)
def test_the_wrong_rewrites_of_the_prototype_are_refused_in_0_5_23(
    rewrite: str, file: str, line: int, reason: str
) -> None:
    proposal = at("0.5.23", rewrite, f"{SPECULATIVE}/{file}", line)
    assert reason in proposal.refused
    assert proposal.changes == ()


def test_of_the_waits_of_0_5_23_none_is_rewritten() -> None:
    waits = [p for p in proposals("0.5.23") if p.rewrite.startswith("SPF2")]
    assert waits
    assert all(p.refused and not p.changes for p in waits)


def function(text: str, name: str) -> str:
    found = [
        n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef) and n.name == name
    ]
    return ast.dump(found[0])


def test_the_reported_flag_is_threaded_as_upstream_did_in_0_5_10() -> None:
    proposal = at("0.5.9", "SPF901", EAGLE, 379)
    after = applied(tree_of("0.5.9").text(EAGLE), proposal.changes, EAGLE)
    upstream = (Path(checkout_of("0.5.10").root) / EAGLE).read_text("utf-8")
    name = "forward_batch_generation"
    assert function(after, name) == function(upstream, name)


def test_the_test_of_top_p_is_upstreams_statement_of_0_5_10() -> None:
    proposal = at("0.5.9", "SPF207", INFO, 340)
    after = applied(tree_of("0.5.9").text(INFO), proposal.changes, INFO)
    upstream = (Path(checkout_of("0.5.10").root) / INFO).read_text("utf-8")
    statement = "            if sampling_info.need_top_p_sampling:\n"
    assert statement in after
    assert statement in upstream
    assert statement not in tree_of("0.5.9").text(INFO)


@pytest.mark.parametrize(("file", "line"), [(INFO, 424), (NGRAM, 160)])
def test_lists_of_0_5_12_have_one_dtype_through_what_verify_calls(file: str, line: int) -> None:
    """Each tensor is made as ``torch.int32``, and goes through a kernel that returns it."""
    proposal = at("0.5.12", "SPF201", file, line)
    assert proposal.refused == ""
    assert "packed_tolist" in proposal.changes[0].text


def test_a_tensor_is_compared_with_none() -> None:
    proposal = at("0.5.9", "SPF206", NGRAM, 202)
    after = applied(tree_of("0.5.9").text(NGRAM), proposal.changes, NGRAM)
    assert "        if logits_output.hidden_states is not None:\n" in after


@pytest.mark.parametrize("release", RELEASES)
def test_verify_of_a_release_is_not_lost(release: str) -> None:
    tree = tree_of(release)
    assert lost(tree, facts_of(tree)) == []
    ids = {p.rewrite for p in proposals(release) if not p.refused}
    assert not ids & {"SPF101", "SPF102", "SPF103", "SPF104", "SPF105", "SPF106"}


@pytest.mark.parametrize("release", RELEASES)
def test_every_rewrite_of_a_release_parses_and_keeps_the_comments(release: str) -> None:
    tree = tree_of(release)
    for proposal in proposals(release):
        for file in {change.file for change in proposal.changes}:
            before, after = tree.text(file), applied(tree.text(file), proposal.changes, file)
            ast.parse(after)
            assert before.count("#") <= after.count("#")


def test_all_rewrites_of_a_release_that_none_was_written_for() -> None:
    """0.5.14: nothing fails, as a new finding would, and a second run changes nothing."""
    first = fix_tree(Request("sglang==0.5.14", unsafe=True)).report
    outcomes = [attempt.outcome for attempt in first.attempts]
    assert outcomes.count(Outcome.APPLIED) >= 3
    assert set(outcomes) == {Outcome.APPLIED, Outcome.REFUSED}
    release = release_of("0.5.14")
    with copied(release) as again:
        for file, text in first.after.items():
            ast.parse(text)
            assert text.count("#") >= (release.root / file).read_text("utf-8").count("#")
            (again.root / file).write_text(text, "utf-8")
        second = fix_tree(Request(str(again.root), unsafe=True)).report
    assert second.after == {}


def repaired(release: str, mutant: Mutant) -> Iterator[tuple[str, str, str]]:
    """File, untouched text and text after the repair, for one fault."""
    clean = release_of(release)
    with copied(clean) as broken:
        mutate(broken, [mutant])
        fixed = fix_tree(Request(str(broken.root), ("SPF1",)))
        for file, text in fixed.report.after.items():
            yield file, (clean.root / file).read_text("utf-8"), text


def constant(release: str, holder: str) -> Mutant:
    """The decision in a function becomes False."""
    decisions = release_of(release).codemap.decisions
    found = next(d for d in decisions if d.kind == "route" and d.holder == holder)
    line = tree_of(release).text(found.span.file).splitlines()[found.span.line - 1]
    name = line.partition("=")[0].strip()
    edit = Edit("value", found.span.line, name, "False")
    return Mutant("SPM101", found.span.file, (edit,))


def bypass(release: str, holder: str) -> Mutant:
    """A target pass of verify calls the model itself."""
    found = bypassed(release_of(release), random.Random(1))
    return next(m for m in found if m.file == holder and "is_verify" in m.edits[0].target)


@pytest.mark.parametrize(
    ("release", "fault", "holder"),
    [
        ("0.5.9", constant, f"{INFO_V2}::EagleVerifyInputV2Mixin.prepare_for_v2_verify"),
        ("0.5.12", constant, f"{MODEL_RUNNER}::ModelRunner._forward_raw"),
        ("0.5.9", bypass, EAGLE),
    ],
)
def test_a_seeded_fault_is_repaired_to_upstreams_text(
    release: str, fault: Callable[[str, str], Mutant], holder: str
) -> None:
    found = list(repaired(release, fault(release, holder)))
    assert found
    for file, before, after in found:
        assert after == before, file
