"""Faults of capture and replay, of fallbacks and of stage tests."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator

from specmap.scan.vocabulary import load_vocabulary
from tests.mutations.edits import Edit, normal
from tests.mutations.faults import Fault, Mutant, Release, source_of

CAPTURES = ("capture_one_batch_size", "capture_one_shape", "capture")
REPLAYS = ("replay", "replay_prepare", "execute", "load_batch")


def _runner_files(release: Release) -> list[str]:
    folders = ("sglang/srt/speculative", "sglang/srt/model_executor")
    paths = [p for f in folders for p in sorted((release.root / f).rglob("*graph_runner.py"))]
    skipped = ("cpu_", "npu_", "piecewise", "prefill", "uno_", "breakable")
    found = [p for p in paths if not p.name.startswith(skipped)]
    return [p.relative_to(release.root).as_posix() for p in found]


def _classes(release: Release) -> Iterator[tuple[str, ast.ClassDef, dict[str, ast.FunctionDef]]]:
    for file in _runner_files(release):
        for node in release.tree(file).body:
            if isinstance(node, ast.ClassDef):
                methods = {m.name: m for m in node.body if isinstance(m, ast.FunctionDef)}
                yield file, node, methods


def _regions(
    release: Release,
) -> Iterator[tuple[str, str, ast.FunctionDef, dict[str, ast.FunctionDef]]]:
    """File, holder, captured body and the runner's methods."""
    for file, cls, methods in _classes(release):
        for name in CAPTURES[:2]:
            method = methods.get(name)
            for node in ast.walk(method) if method is not None else ():
                if isinstance(node, ast.FunctionDef) and node.name == "run_once":
                    yield file, f"{file}::{cls.name}.{name}", node, methods


def _plain(body: list[ast.stmt]) -> list[int]:
    """Lines of statements that another can stand before, blocks under ``with`` opened."""
    kinds = ast.Assign | ast.Expr | ast.Return
    found: list[int] = []
    for statement in body:
        if isinstance(statement, kinds):
            found.append(statement.lineno)
        elif isinstance(statement, ast.With):
            found += _plain(statement.body)
    return found


def _in_region(rule: str, codes: tuple[str, ...]) -> Fault:
    def fault(release: Release, rng: random.Random) -> Iterator[Mutant]:
        for file, holder, body, _ in _regions(release):
            code = rng.choice(codes)
            edit = Edit("insert", rng.choice(_plain(body.body)), "", code + "\n")
            yield Mutant(rule, file, (edit,), holder, code)

    return fault


def host_scalar(release: Release, rng: random.Random) -> Iterator[Mutant]:
    """The region reads what the replay stores."""
    for file, holder, body, methods in _regions(release):
        replay = next(
            (methods[n] for n in ("replay", "execute", "load_batch") if n in methods), None
        )
        if replay is None or not _plain(replay.body):
            continue
        read = rng.choice(("if self.probe_rows > 2:\n    pass", "probe = self.probe_rows + 1"))
        edits = (
            Edit(
                "insert",
                _plain(replay.body)[-1],
                "",
                "self.probe_rows = forward_batch.batch_size\n",
            ),
            Edit("insert", rng.choice(_plain(body.body)), "", read + "\n"),
        )
        yield Mutant("SPM301", file, edits, holder, read.partition("\n")[0])


def rebound(release: Release, rng: random.Random) -> Iterator[Mutant]:
    """A copy into a static buffer becomes an assignment."""
    for file, cls, methods in _classes(release):
        capture = next((methods[n] for n in CAPTURES if n in methods), None)
        read = ast.unparse(capture) if capture is not None else ""
        for name in REPLAYS:
            for node in ast.walk(methods[name]) if name in methods else ():
                if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
                    continue
                call = node.value
                if not isinstance(call.func, ast.Attribute) or call.func.attr != "copy_":
                    continue
                target = call.func.value
                target = target.value if isinstance(target, ast.Subscript) else target
                text = ast.unparse(target)
                if isinstance(target, ast.Attribute) and text.startswith(("self.", "buffers.")):
                    if f".{target.attr}[" in read:
                        code = f"{text} = {ast.unparse(call.args[0])}\n"
                        edit = Edit("swap", node.lineno, "", code)
                        holder = f"{file}::{cls.name}.{name}"
                        yield Mutant("SPM302", file, (edit,), holder, normal(code))


def silent_capture(release: Release, rng: random.Random) -> Iterator[Mutant]:
    """A runner's handler no longer raises."""
    for file, cls, methods in _classes(release):
        for name, method in methods.items():
            for node in ast.walk(method):
                if isinstance(node, ast.ExceptHandler) and isinstance(node.body[0], ast.Raise):
                    if "apture" in ast.unparse(node):
                        edit = Edit("swap", node.body[0].lineno, "", "self.max_bs = 0\n")
                        holder = f"{file}::{cls.name}.{name}"
                        yield Mutant("SPM111", file, (edit,), holder, "the handler swallows it")


def tried_capture(release: Release, rng: random.Random) -> Iterator[Mutant]:
    """A worker goes on when the capture of its graphs failed."""
    for holder in sorted(f.id for f in release.codemap.functions if "/speculative/" in f.id):
        node, file = release.function(holder), holder.partition("::")[0]
        for statement in ast.walk(node) if node is not None else ():
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                call = ast.unparse(statement)
                if call.endswith(".init_cuda_graphs()"):
                    code = f"try:\n    {call}\nexcept RuntimeError:\n    pass\n"
                    edit = Edit("swap", statement.lineno, "", code)
                    yield Mutant("SPM111", file, (edit,), holder, f"{call} is tried")


def silent_switch(release: Release, rng: random.Random) -> Iterator[Mutant]:
    """A setting is turned off and the log line is gone, or one is turned off that was not."""
    file = "sglang/srt/server_args.py"
    for cls in release.tree(file).body:
        if not isinstance(cls, ast.ClassDef) or cls.name != "ServerArgs":
            continue
        for method in cls.body:
            if isinstance(method, ast.FunctionDef) and method.name.startswith("_handle_"):
                lines = _plain(method.body)
                if lines:
                    setting = rng.choice(("disable_cuda_graph", "disable_overlap_schedule"))
                    code = f"if self.page_size == 7:\n    self.{setting} = True\n"
                    edit = Edit("insert", rng.choice(lines), "", code)
                    holder = f"{file}::ServerArgs.{method.name}"
                    yield Mutant("SPM112", file, (edit,), holder, normal(code))


def foreign_runner(release: Release, rng: random.Random) -> Iterator[Mutant]:
    """Two tables by device: one device gets the runner of the other table."""
    for path in sorted((release.root / "sglang/srt/speculative").glob("*worker*.py")):
        file = path.relative_to(release.root).as_posix()
        for function in ast.walk(release.tree(file)):
            if not isinstance(function, ast.FunctionDef):
                continue
            tables = [
                s.value
                for s in ast.walk(function)
                if isinstance(s, ast.Assign)
                and isinstance(s.value, ast.Dict)
                and _is_table(s.value)
            ]
            for table in tables:
                for other in tables:
                    for key, value in zip(table.keys, table.values, strict=True):
                        theirs = ast.unparse(other.values[-1])
                        own = [ast.unparse(v) for v in table.values]
                        if table is other or key is None or theirs in own:
                            continue
                        edit = Edit("expression", value.lineno, ast.unparse(value), theirs)
                        yield Mutant("SPM109", file, (edit,), "", f"{ast.unparse(key)}: {theirs}")


def _is_table(node: ast.Dict) -> bool:
    names = [ast.unparse(value) for value in node.values]
    return len(names) > 1 and all(name.endswith("GraphRunner") for name in names)


def stage(release: Release, rng: random.Random) -> Iterator[Mutant]:
    """A chain that has a decode arm asks for prefill by the name that includes verify."""
    for folder in ("sglang/srt/managers", "sglang/srt/observability"):
        for path in sorted((release.root / folder).rglob("*.py")):
            file = path.relative_to(release.root).as_posix()
            if "forward_mode.is_decode()" not in path.read_text("utf-8"):
                continue
            for node in ast.walk(release.tree(file)):
                if isinstance(node, ast.If):
                    yield from _stage_of(release, node, file)


def _stage_of(release: Release, node: ast.If, file: str) -> Iterator[Mutant]:
    test = ast.unparse(node.test)
    if not test.endswith("forward_mode.is_decode()") or not isinstance(node.test, ast.Call):
        return
    if source_of(release, file).splitlines()[node.lineno - 1].lstrip().startswith("elif"):
        return
    mode = test.removesuffix(".is_decode()")
    if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        inner = node.orelse[0].test
        text = normal(ast.get_source_segment(source_of(release, file), inner) or "")
        if text.endswith("is_prefill()"):
            return
        edit = Edit("expression", inner.lineno, text, f"{mode}.is_prefill()")
    else:
        code = f"if {mode}.is_prefill():\n    pass\nelif {mode}.is_decode():\n    pass\n"
        edit = Edit("insert", node.lineno, "", code)
    yield Mutant("SPM110", file, (edit,), "", f"{mode}.is_prefill() beside is_decode()")


def uncast(release: Release, rng: random.Random) -> Iterator[Mutant]:
    """The eager builder of a backend loses a cast that the graph's builder has."""
    modules = load_vocabulary().platform_modules
    foreign = {name.replace(".", "/") for platform, name in modules if platform != "cuda"}
    for path in sorted((release.root / "sglang/srt/layers/attention").glob("*_backend.py")):
        file = path.relative_to(release.root).as_posix()
        if file.removesuffix(".py") in foreign:
            continue
        for cls in release.tree(file).body:
            methods = {
                m.name: m for m in getattr(cls, "body", ()) if isinstance(m, ast.FunctionDef)
            }
            eager = methods.get("init_forward_metadata")
            graphs = [m for n, m in methods.items() if "cuda_graph" in n or n.endswith("out_graph")]
            if eager is None or not isinstance(cls, ast.ClassDef):
                continue
            names = {
                n.attr
                for m in graphs
                for n in ast.walk(m)
                if isinstance(n, ast.Attribute) and "metadata" in ast.unparse(n.value)
            }
            for node in ast.walk(eager):
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
                    text = ast.unparse(node.value)
                    target = node.targets[0].attr
                    if text.endswith(".to(torch.int32)") and target in names:
                        edit = Edit(
                            "value", node.lineno, target, text.removesuffix(".to(torch.int32)")
                        )
                        holder = f"{file}::{cls.name}.init_forward_metadata"
                        yield Mutant("SPM305", file, (edit,), holder, f"{target} without a cast")


def stale(release: Release, rng: random.Random) -> Iterator[Mutant]:
    """A worker reads the runner's buffer after the decision, whatever it said."""
    for decision in release.codemap.decisions:
        node = release.function(decision.holder) if decision.kind == "route" else None
        if node is None or "/speculative/" not in decision.holder or "self." not in decision.text:
            continue
        runner = _asked(decision.text)
        later = [
            s.lineno
            for s in node.body
            if isinstance(s, ast.Assign | ast.If | ast.Expr | ast.Return)
            and s.lineno > decision.span.end_line
        ]
        if runner and later:
            old = not (release.root / "sglang/srt/model_executor/runner").is_dir()
            part = "seq_lens" if old else "buffers"
            edit = Edit("insert", rng.choice(later), "", f"self._probe = {runner}.{part}\n")
            yield Mutant("SPM306", decision.span.file, (edit,), decision.holder, f"{runner}.{part}")


def _asked(text: str) -> str:
    """The attribute that a decision asks whether it can replay."""
    for node in ast.walk(ast.parse(text, mode="eval")):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr.startswith("can_run") and isinstance(node.func.value, ast.Attribute):
                return ast.unparse(node.func.value)
    return ""


def unequal(release: Release, rng: random.Random) -> Iterator[Mutant]:
    """The replay fills requests where the capture filled tokens."""
    for file, cls, methods in _classes(release):
        for name in REPLAYS:
            for node in ast.walk(methods[name]) if name in methods else ():
                if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                    continue
                product = node.args[0] if node.func.attr == "fill_" and node.args else None
                if isinstance(product, ast.BinOp) and ast.unparse(product).startswith("bs * "):
                    text = normal(ast.get_source_segment(source_of(release, file), product) or "")
                    edit = Edit("expression", product.lineno, text, "bs")
                    yield Mutant(
                        "SPM307", file, (edit,), f"{file}::{cls.name}.{name}", "filled with bs"
                    )


REPLAY_FAULTS: tuple[Fault, ...] = (
    foreign_runner,
    stage,
    silent_capture,
    tried_capture,
    silent_switch,
    host_scalar,
    rebound,
    _in_region("SPM303", ("self.probe_seen.append(1)", "self.probe_count += 1")),
    _in_region("SPM304", ("self.probe_lens.add_(1)", "self.probe_lens.mul_(2)")),
    uncast,
    stale,
    unequal,
)
