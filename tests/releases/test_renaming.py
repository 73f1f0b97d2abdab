"""The renaming law: with other names and three helpers more, the map stays the same.

A release is copied, three runs of statements move into helpers, and every class, function
and method of its map gets a name that says nothing. Only the vocabulary is told.
"""

from __future__ import annotations

import ast
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from specmap.codemap.condition import Condition, atoms_of, render, simplify
from specmap.codemap.graph import CodeMap, Flag, Phase
from specmap.codemap.source import file_of, qualname_of
from specmap.report import as_json
from specmap.scan.build import scan
from specmap.scan.checkout import resolve_target
from tests.releases import rename
from tests.releases.extract import Block, extract
from tests.releases.lookup import normal
from tests.releases.trees import checkout_of, map_of

pytestmark = pytest.mark.releases

V1 = "sglang/srt/speculative/eagle_worker.py"
V2 = "sglang/srt/speculative/eagle_worker_v2.py"
COMMON = "sglang/srt/speculative/eagle_worker_common.py"

# From the bottom of a file upwards, so that the lines of the next block still hold.
BLOCKS = {
    "0.5.9": [
        # 716-722: batch_result = ...; logits_output, can_run_cuda_graph = (...)
        Block(V1, "EAGLEWorker.verify", 716, 722, "run_target_pass"),
        # 553-571: can_cuda_graph = ...; if can_cuda_graph: replay else: draft_forward
        Block(V1, "EAGLEWorker.draft", 553, 571, "run_draft_steps"),
        # 311-314: with self.draft_tp_context(...): spec_info = self.draft(batch)
        Block(V1, "EAGLEWorker.forward_batch_generation", 311, 314, "propose"),
    ],
    "0.5.23": [
        # 1481-1487: assert ...; batch.spec_info = verify_input; batch_output = self.verify(
        Block(V2, "EAGLEWorkerV2.forward_batch_generation", 1481, 1487, "check_proposal"),
        # 693-715: if can_run_decode_cuda_graph: execute else: draft_forward
        Block(V2, "EagleDraftWorker.draft", 693, 715, "run_draft_steps"),
        # 654-660: forward_batch_output = target_worker.forward_batch_generation(...
        Block(COMMON, "run_eagle_verify", 654, 660, "run_target_pass"),
    ],
}


@dataclass(frozen=True, slots=True)
class Pair:
    """The map of a release and the map of its renamed copy."""

    before: CodeMap
    after: CodeMap
    renaming: rename.Renaming
    release: str

    def back(self, text: str) -> str:
        return normal(self.renaming.back(text))

    def name(self, symbol: str) -> str:
        """A renamed symbol in its old name."""
        return self.renaming.back(qualname_of(symbol))


@pytest.fixture(scope="module", params=sorted(BLOCKS))
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Rename a copy of a release and scan both."""
    release: str = request.param
    folder = tmp_path_factory.mktemp("renamed")
    tree = folder / "tree"
    _copy(checkout_of(release).root, tree)
    for block in BLOCKS[release]:
        extract(tree, block)
    renaming = rename.plan(_scan(tree, folder / "first"), tree)
    rename.rename_tree(tree, renaming)
    vocabulary = folder / "vocabulary.toml"
    rules = Path(__file__).parents[2] / "rules" / "vocabulary.toml"
    text = rules.read_text(encoding="utf-8")
    vocabulary.write_text(rename.vocabulary(text, renaming), encoding="utf-8")
    before = map_of(release)
    assert all((before.workers, before.flags, before.syncs, before.decisions, before.sinks))
    return Pair(before, _scan(tree, folder / "second", vocabulary), renaming, release)


def _copy(root: Path, tree: Path) -> None:
    """Copy what the scheduler's code can import; image models and evaluations stay behind.

    The scheduler of 0.5.23 imports ``sglang.test.scripted_runtime``.
    """

    def unwanted(folder: str, names: list[str]) -> list[str]:
        top = Path(folder) == root / "sglang"
        return [
            name
            for name in names
            if (top and name in {"multimodal_gen", "benchmark", "eval"})
            or ((Path(folder) / name).is_file() and not name.endswith(".py"))
        ]

    shutil.copytree(root / "sglang", tree / "sglang", ignore=unwanted)


def _scan(tree: Path, cache: Path, vocabulary: Path | None = None) -> CodeMap:
    checkout = resolve_target(str(tree), cwd=tree, cache_dir=cache)
    scanned = scan(checkout, platform="cuda", vocabulary=vocabulary)
    return as_json.load(as_json.dumps(scanned))


def test_the_copy_has_other_names(pair: Pair) -> None:
    """Classes, entry, phase methods and runner tests of the cycle are all renamed."""
    old = {w.name for w in pair.before.workers}
    assert old
    assert old.isdisjoint(w.name for w in pair.after.workers)
    assert {"forward_batch_generation", "draft", "verify", "draft_forward"} <= set(
        pair.renaming.all_names
    )
    helpers = {(b.file, b.owner.rpartition(".")[0], b.helper) for b in BLOCKS[pair.release]}
    assert len(helpers) == 3
    found = {(file_of(f.id), *_split(pair.name(f.id))) for f in pair.after.functions}
    assert helpers <= found


def _split(qualname: str) -> tuple[str, str]:
    holder, _, name = qualname.rpartition(".")
    return holder, name


def test_workers(pair: Pair) -> None:
    found = {
        (pair.name(w.id), w.entry and pair.name(w.entry.name), w.reachable)
        for w in pair.after.workers
    }
    assert found == {(w.name, w.entry and w.entry.name, w.reachable) for w in pair.before.workers}


def test_linearised_bases(pair: Pair) -> None:
    found = {pair.name(w.id): [pair.name(b) for b in w.mro] for w in pair.after.workers}
    assert found == {w.name: [qualname_of(b) for b in w.mro] for w in pair.before.workers}


def _atoms(condition: Condition, pair: Pair | None) -> tuple[str, ...]:
    turn = pair.back if pair else normal
    return tuple(sorted({turn(atom.text) for atom in atoms_of(simplify(condition))}))


def _phase(phase: Phase, pair: Pair | None) -> dict[str, object]:
    turn = pair.name if pair else qualname_of
    return {
        "role": phase.role,
        "modes": sorted(turn(mode) for mode in phase.forward_modes),
        "verdict": phase.verdict,
        "sinks": sorted({(str(a.kind), turn(a.chain[-1][0])) for a in phase.arms}),
        "static shape": phase.static_shape is not None and phase.static_shape.fixed,
    }


def _condition(phase: Phase, pair: Pair | None) -> dict[str, object]:
    back = pair.back if pair else normal
    return {
        "graph when": sorted(back(render(phase.graph_when)).split()),
        "atoms": _atoms(phase.graph_when, pair),
    }


def _phases(pair: Pair) -> list[tuple[tuple[str, str], Phase, Phase]]:
    """Worker and name of every phase, the phase of the release and that of the copy."""
    after = {(pair.name(w.id), str(p.name)): p for w in pair.after.workers for p in w.phases}
    before = {(w.name, str(p.name)): p for w in pair.before.workers for p in w.phases}
    assert after.keys() == before.keys()
    return [(key, before[key], after[key]) for key in sorted(before)]


def test_phases(pair: Pair) -> None:
    for key, old, new in _phases(pair):
        assert _phase(new, pair) == _phase(old, None), key


def test_conditions_of_phases(pair: Pair, request: pytest.FixtureRequest) -> None:
    if pair.release == "0.5.23":
        reason = (
            "the graph condition of EAGLEWorkerV2.draft takes in tests of how the scheduler makes "
            "its batch: one of them is too long in the copy, and short enough in the release"
        )
        _unmet(request, reason)
    for key, old, new in _phases(pair):
        assert _condition(new, pair) == _condition(old, None), key


def test_sinks(pair: Pair) -> None:
    found = {(str(s.kind), pair.name(s.holder)) for s in pair.after.sinks}
    assert found == {(str(s.kind), qualname_of(s.holder)) for s in pair.before.sinks}


def _unmet(request: pytest.FixtureRequest, reason: str) -> None:
    request.applymarker(pytest.mark.xfail(strict=True, raises=AssertionError, reason=reason))


def _same(found: Iterable[object], expected: Iterable[object]) -> None:
    new, old = set(found), set(expected)
    assert new == old, f"gained: {sorted(map(str, new - old))}\nlost: {sorted(map(str, old - new))}"


def test_terms_of_decisions(pair: Pair) -> None:
    after = {
        (d.kind, pair.back(t.text), t.graph_when, tuple(sorted(map(str, d.phases))))
        for d in pair.after.decisions
        for t in d.terms
    }
    before = {
        (d.kind, normal(t.text), t.graph_when, tuple(sorted(map(str, d.phases))))
        for d in pair.before.decisions
        for t in d.terms
    }
    _same(after, before)


def _flags(flags: Iterable[Flag], pair: Pair | None) -> set[tuple[object, ...]]:
    name = pair.name if pair else qualname_of
    back = pair.back if pair else normal
    return {
        (
            back(f.name),
            str(f.status),
            str(f.phase),
            f.value,
            f.decides,
            tuple(sorted(map(name, f.workers))),
        )
        for f in flags
    }


def test_flags(pair: Pair, request: pytest.FixtureRequest) -> None:
    """Every flag; one that a function loses stays lost when the call moves into a helper."""
    if pair.release == "0.5.23":
        _unmet(request, "a constant of the draft decides in the release and does not in the copy")
    _same(_flags(pair.after.flags, pair), _flags(pair.before.flags, None))


def test_host_syncs(pair: Pair) -> None:
    after = {
        (pair.back(s.operation), str(s.kind), s.phase_between, s.label, s.captured)
        for s in pair.after.syncs
    }
    before = {
        (normal(s.operation), str(s.kind), s.phase_between, s.label, s.captured)
        for s in pair.before.syncs
    }
    _same(after, before)


def test_no_call_is_lost(pair: Pair) -> None:
    """Every resolved call of the release is resolved in the copy, to the same functions."""

    def calls(code_map: CodeMap, turn: Pair | None) -> set[tuple[str, ...]]:
        name = turn.name if turn else qualname_of
        return {tuple(sorted(map(name, e.callees))) for e in code_map.edges if e.callees}

    lost = calls(pair.before, None) - calls(pair.after, pair)
    assert not lost, sorted(lost)[:20]


@pytest.mark.parametrize("release", sorted(BLOCKS))
def test_extraction_keeps_every_statement(release: str, tmp_path: Path) -> None:
    """Only a def, its return and the call of it are new; all other statements are there."""
    tree = tmp_path / "tree"
    root = checkout_of(release).root
    for block in BLOCKS[release]:
        (tree / block.file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / block.file, tree / block.file)
        before = _statements(tree / block.file)
        extract(tree, block)
        after = _statements(tree / block.file)
        assert not [text for text in before if before.count(text) > after.count(text)]
        added = {text for text in after if after.count(text) > before.count(text)}
        assert len(added) == 2, added
        assert all(block.helper in text or text.startswith("return") for text in added)


def _statements(path: Path) -> list[str]:
    module = ast.parse(path.read_text(encoding="utf-8"))
    simple = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return, ast.Assert, ast.Raise)
    return [ast.unparse(node) for node in ast.walk(module) if isinstance(node, simple)]
