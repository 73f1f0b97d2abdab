"""Faults of what is captured: forward modes and attention backends."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator

from specmap.codemap.hazards import CaptureEntry, EntryKind
from specmap.codemap.verdict import PhaseName
from tests.mutations.edits import Edit, normal
from tests.mutations.faults import Fault, Mutant, Release

# The runners that replay a phase in these releases capture one mode; here they capture another.
_OTHER_MODE = {
    "TARGET_VERIFY": ("DECODE", "DRAFT_EXTEND"),
    "DRAFT_EXTEND_V2": ("DRAFT_EXTEND", "DECODE"),
    "DECODE": ("TARGET_VERIFY", "DRAFT_EXTEND_V2"),
}


def captured_mode(release: Release, rng: random.Random) -> Iterator[Mutant]:
    """A runner captures another mode than the one that its worker runs."""
    runners = {
        holder.rpartition(".")[0]
        for worker in release.codemap.workers
        for phase in worker.phases
        for arm in phase.arms
        for holder, _ in arm.chain
    }
    modes = release.codemap.hazards.captured_modes
    known = _modes(release)
    for stored in modes:
        several = {m.mode for m in modes if m.runner == stored.runner} - {"DLLM_EXTEND"}
        # 0.5.23 has no DRAFT_EXTEND any more.
        others = [mode for mode in _OTHER_MODE.get(stored.mode, ()) if mode in known]
        # Where a runner stores two modes, the first is for a server without speculation.
        first = len(several) > 1 and stored.mode == "DECODE"
        if stored.runner not in runners or not others or first:
            continue
        mode = rng.choice(others)
        edit = Edit("value", stored.span.line, "capture_forward_mode", f"ForwardMode.{mode}")
        yield Mutant(
            "SPM107", stored.span.file, (edit,), "", f"{stored.mode} is captured as {mode}"
        )


def _modes(release: Release) -> set[str]:
    """The forward modes that a release has."""
    tree = release.tree("sglang/srt/model_executor/forward_batch_info.py")
    (enum,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "ForwardMode")
    stored = [s for s in enum.body if isinstance(s, ast.Assign)]
    return {t.id for s in stored for t in s.targets if isinstance(t, ast.Name)}


def plain_decode(release: Release, rng: random.Random) -> Iterator[Mutant]:
    """A worker lets the target decode without drafts when the batch is large."""
    for worker in release.codemap.workers:
        verify = [p for p in worker.phases if p.name is PhaseName.VERIFY and p.arms]
        holders = {h for p in verify for arm in p.arms for h, _ in arm.chain}
        for holder in sorted(holders):
            site, node = release.site(holder), release.function(holder)
            if site is None or node is None or worker.id not in holder:
                continue
            passes = {line for at, line in release.sites_of(PhaseName.VERIFY) if at == holder}
            lines = [
                s.lineno
                for s in node.body
                if "target_worker.forward" in ast.unparse(s)
                and passes & set(range(s.lineno, (s.end_lineno or s.lineno) + 1))
            ]
            if lines:
                code = (
                    "from sglang.srt.model_executor.forward_batch_info import ForwardMode\n\n"
                    f"if len({site.batch}.seq_lens) > 64:\n"
                    f"    {site.batch}.forward_mode = ForwardMode.DECODE\n"
                    f"    return self.target_worker.forward_batch_generation("
                    f"{_handed(release, node, site.batch)})\n"
                )
                edit = Edit("insert", lines[0], "", code)
                yield Mutant("SPM107", site.file, (edit,), "", "large batches are not drafted")


def _handed(release: Release, node: ast.FunctionDef, batch: str) -> str:
    """What the target takes: the batch, or the copy that old releases make of the scheduler's."""
    kinds = [ast.unparse(a.annotation) for a in node.args.args if a.arg == batch and a.annotation]
    text = (release.root / "sglang/srt/managers/schedule_batch.py").read_text("utf-8")
    copied = "class ModelWorkerBatch" in text and "ScheduleBatch" in kinds[0]
    return f"{batch}.get_model_worker_batch()" if copied else batch


def backend_left_out(release: Release, rng: random.Random) -> Iterator[Mutant]:
    """One platform's list loses a backend that another platform's list keeps."""
    entries = [e for e in release.codemap.hazards.capture_entries if e.kind is EntryKind.BACKEND]
    for entry in entries:
        others = [
            e
            for e in entries
            if e.target == entry.target and e.subject == entry.subject and e != entry
        ]
        kept = {platform for e in others for platform in e.platforms}
        name = entry.target.rpartition("::")[2]
        code = f"{name} is left out on {', '.join(entry.platforms)}"
        edit = _left_out(release, entry, name)
        if edit is not None and kept and (set(entry.platforms) - kept) & set(entry.runs_on):
            yield Mutant("SPM108", entry.span.file, (edit,), "", code)


def mode_left_out(release: Release, rng: random.Random) -> Iterator[Mutant]:
    """A runner no longer stores the mode that its worker runs beside the one of plain decoding."""
    modes = release.codemap.hazards.captured_modes
    for stored in modes:
        several = {m.mode for m in modes if m.runner == stored.runner}
        if stored.mode == "TARGET_VERIFY" and len(several) > 1:
            edit = Edit("swap", stored.span.line, "", "pass\n")
            yield Mutant("SPM107", stored.span.file, (edit,), "", f"{stored.mode} is not captured")


def platform_left_out(release: Release, rng: random.Random) -> Iterator[Mutant]:
    """A list of backends excludes a platform that the backend has code for."""
    entries = [e for e in release.codemap.hazards.capture_entries if e.kind is EntryKind.BACKEND]
    for entry in entries:
        others = [e for e in entries if e.holder == entry.holder and e.subject == entry.subject]
        kept = {platform for e in others if e != entry for platform in e.platforms}
        flags = _bound(release, entry.span.file)
        own = [e for e in others if e.target == entry.target]
        for platform in sorted(set(entry.platforms) & set(entry.runs_on) & kept):
            if len(own) > 1 or len(entry.platforms) < 2 or f"_is_{platform}" not in flags:
                continue
            text = _asking(release, entry)
            if text:
                code = f"not _is_{platform} and {text}"
                edit = Edit("expression", entry.span.line, text, code)
                yield Mutant("SPM108", entry.span.file, (edit,), "", code[:60])


def _bound(release: Release, file: str) -> set[str]:
    """The names that a file's top level assigns."""
    stored = [s for s in release.tree(file).body if isinstance(s, ast.Assign)]
    return {t.id for s in stored for t in s.targets if isinstance(t, ast.Name)}


def _asking(release: Release, entry: CaptureEntry) -> str:
    """The ``isinstance`` of one backend, as the source writes it."""
    name = entry.target.rpartition("::")[2]
    source = (release.root / entry.span.file).read_text("utf-8")
    for node in ast.walk(release.tree(entry.span.file)):
        if isinstance(node, ast.Call) and node.lineno == entry.span.line:
            text = ast.get_source_segment(source, node) or ""
            if text.startswith("isinstance(") and name in text:
                return normal(text)
    return ""


def _left_out(release: Release, entry: CaptureEntry, name: str) -> Edit | None:
    line = entry.span.line
    for node in ast.walk(release.tree(entry.span.file)):
        if getattr(node, "lineno", None) is None:
            continue
        text = ast.unparse(node)
        if isinstance(node, ast.Call) and node.lineno == line and name in text:
            if text.startswith("isinstance("):
                return Edit("expression", line, text, "False")
            if ".append(" in text:
                return Edit("swap", line, "", "pass\n")
        if isinstance(node, ast.List) and any(e.lineno == line for e in node.elts):
            rest = [ast.unparse(e) for e in node.elts if ast.unparse(e) != name]
            return Edit("expression", line, name, rest[0]) if rest else None
    return None


CAPTURE_FAULTS: tuple[Fault, ...] = (
    captured_mode,
    plain_decode,
    mode_left_out,
    backend_left_out,
    platform_left_out,
)
