"""A runner in a wrapper, a decision in a decorator or a patch: asked through it, or doubted."""

from __future__ import annotations

from pathlib import Path

import pytest

from specmap.codemap.condition import AtomKind, Condition, atoms_of, render
from tests.review_tree import RUNNER, VERIFY, edit, plant, scan

RUNNERS = "sglang/srt/model_executor/model_runner.py"
MADE = "            self.graph_runner = CudaGraphRunner(self)\n"
LIMIT = "(forward_batch.batch_size <= 2)"
USUAL = "(forward_batch.batch_size <= self.max_bs)"
WRAPPERS = """

class Timed:
    def __init__(self, inner):
        self.inner = inner

    def can_run(self, forward_batch):
        return forward_batch.batch_size <= 2 and self.inner.can_run(forward_batch)

    def replay(self, forward_batch):
        return self.inner.replay(forward_batch)

    @classmethod
    def around(cls, inner):
        return cls(inner)


class timed_handing_on:
    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def can_run(self, forward_batch):
        return forward_batch.batch_size <= 2 and self.inner.can_run(forward_batch)


class Limited(CudaGraphRunner):
    def can_run(self, forward_batch):
        return forward_batch.batch_size <= 2 and super().can_run(forward_batch)


def timed(runner, check=True):
    return Timed(runner) if check else runner


def made(cls, runner):
    return cls(runner)


class ModelRunner:
    def timed(self, runner):
        return Timed(runner)
"""


WRAP = """
    def wrap(self):
        self.graph_runner = Timed(self.graph_runner)

    def timed("""


def verify(folder: Path) -> Condition:
    """When verify of the EAGLE worker replays a graph."""
    worker = next(w for w in scan(folder).workers if w.name == "EAGLEWorker")
    return next(p.graph_when for p in worker.phases if p.name.value == "verify")


def wrapped(folder: Path, then: str) -> Condition:
    """When verify replays if the constructor goes on like this after it has made the runner."""
    plant(folder)
    lines = "".join(f"            {line}\n" for line in then.splitlines())
    edit(folder, RUNNERS, (MADE, MADE + lines), ("\n\nclass ModelRunner:", WRAPPERS))
    if "self.wrap()" in then:
        edit(folder, RUNNERS, ("\n    def timed(", WRAP))
    return verify(folder)


TWICE = "self.graph_runner = Timed(self.graph_runner)\nself.graph_runner = Timed(self.graph_runner)"


@pytest.mark.parametrize(
    "then",
    [
        TWICE,
        "self.graph_runner = Timed(self.graph_runner)",
        "self.graph_runner = Timed(inner=self.graph_runner)",
        "self.graph_runner = Timed(Timed(self.graph_runner))",
        "self.graph_runner = timed_handing_on(self.graph_runner)",
        "self.graph_runner = timed(self.graph_runner)",
        "self.graph_runner = made(Timed, self.graph_runner)",
        "self.graph_runner = self.timed(self.graph_runner)",
        "self.graph_runner = Timed.around(self.graph_runner)",
        "self.graph_runner = functools.partial(Timed, self.graph_runner)()",
        "make = functools.partial(Timed, inner=self.graph_runner)\nself.graph_runner = make()",
        "runner = self.graph_runner\nself.graph_runner = Timed(runner)",
        "wrapper = Timed(self.graph_runner)\nself.graph_runner = wrapper",
        "self.wrap()",
        "self.graph_runner = Limited(self)",
    ],
)
def test_a_runner_in_a_wrapper_is_asked_through_it(tmp_path: Path, then: str) -> None:
    then = f"import functools\n{then}"
    found = render(wrapped(tmp_path / "t", then))
    assert found == f"not server_args.disable_cuda_graph and {LIMIT} and {USUAL}"


@pytest.mark.parametrize(
    "then",
    [
        "if server_args.check:\n    self.graph_runner = Timed(self.graph_runner)",
        "if server_args.check:\n    self.wrap()",
        "self.graph_runner = timed(self.graph_runner, server_args.check)",
        "self.graph_runner = Timed(self.graph_runner) if server_args.check else self.graph_runner",
    ],
)
def test_a_wrapper_that_a_test_puts_on(tmp_path: Path, then: str) -> None:
    found = render(wrapped(tmp_path / "t", then))
    assert LIMIT in found and "server_args.check" in found
    plain = found.replace(f"({LIMIT} or not server_args.check)", "LIMITED")
    plain = plain.replace(f"(not server_args.check or {LIMIT})", "LIMITED")
    assert sorted(plain.split(" and ")) == sorted(
        ["not server_args.disable_cuda_graph", USUAL, "LIMITED"]
    )


def doubted(condition: Condition) -> set[str]:
    """The terms of a condition that nobody can tell."""
    return {a.text for a in atoms_of(condition) if a.kind is AtomKind.UNKNOWN}


@pytest.mark.parametrize(
    ("then", "named"),
    [
        ("self.graph_runner = fancy(self.graph_runner)", "fancy(self.graph_runner)"),
        ("import fancy\nself.graph_runner = fancy.Of(self.graph_runner)", "fancy.Of"),
        ("self.graph_runner.can_run = fancy", "can_run"),
        ("CudaGraphRunner.can_run = fancy", "can_run"),
    ],
)
def test_what_is_made_of_a_runner_is_not_known(tmp_path: Path, then: str, named: str) -> None:
    found = wrapped(tmp_path / "t", then)
    assert any(named in text for text in doubted(found)) or named in render(found)
    assert render(found) != f"not server_args.disable_cuda_graph and {USUAL}"


def test_a_wrapper_from_outside_has_no_known_place_in_the_order(tmp_path: Path) -> None:
    folder = plant(tmp_path / "t")
    edit(folder, RUNNERS, ("\n\nclass ModelRunner:", WRAPPERS))
    runner = "target_worker.model_runner.graph_runner"
    store = f"        {runner} = Timed({runner})\n        self.init_cuda_graphs()\n"
    worker = "sglang/srt/speculative/eagle_worker.py"
    imported = "from sglang.srt.model_executor.model_runner import Timed\n\n\nclass EAGLEWorker("
    edit(folder, worker, ("        self.init_cuda_graphs()\n", store))
    edit(folder, worker, ("\n\nclass EAGLEWorker(", imported))
    found = verify(folder)
    assert LIMIT in render(found)
    assert any(text.endswith("has run") for text in doubted(found))


MODULE = "\n\nclass CudaGraphRunner:"
HELPERS = """
import fancy


def never(self, forward_batch):
    return False


def same(function):
    return function


def two(function):
    def inner(self, forward_batch):
        return forward_batch.batch_size <= 2 and function(self, forward_batch)

    return inner


def limited(limit):
    return two


class CudaGraphRunner:"""


@pytest.mark.parametrize(
    ("decorator", "expected"),
    [
        ("same", USUAL),
        ("torch.no_grad()", USUAL),
        ("two", f"{LIMIT} and {USUAL}"),
        ("limited(2)", f"{LIMIT} and {USUAL}"),
        (
            "fancy.limited(2)",
            "(self.graph_runner.can_run(forward_batch): what @fancy.limited(2) makes of "
            "CudaGraphRunner.can_run is not known)",
        ),
    ],
)
def test_a_decorator_on_the_decision(tmp_path: Path, decorator: str, expected: str) -> None:
    folder = plant(tmp_path / "t")
    edit(folder, RUNNER, (MODULE, HELPERS))
    edit(folder, RUNNER, ("    def can_run(", f"    @{decorator}\n    def can_run("))
    assert render(verify(folder)) == f"not server_args.disable_cuda_graph and {expected}"


PATCHED = "CudaGraphRunner.can_run = never\n"
FUNCTION = f"def apply():\n    {PATCHED}"
DOUBT = "not server_args.disable_cuda_graph and self.graph_runner.can_run(forward_batch)"


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        (PATCHED, "never"),
        ("CudaGraphRunner.can_run = lambda self, forward_batch: False\n", "never"),
        ("setattr(CudaGraphRunner, 'can_run', never)\n", "never"),
        (f"{FUNCTION}\n\napply()\n", "never"),
        (FUNCTION, DOUBT),
        (f"def apply():\n    if fancy:\n        {PATCHED}\n\napply()\n", DOUBT),
        (f"if fancy:\n    {PATCHED}", DOUBT),
        ("for cls in (CudaGraphRunner,):\n    cls.can_run = never\n", DOUBT),
        ("def apply(cls):\n    cls.can_run = never\n\n\napply(CudaGraphRunner)\n", DOUBT),
        ("CudaGraphRunner.can_run = fancy.wrapped(CudaGraphRunner)\n", DOUBT),
        ("CudaGraphRunner.other = never\n", f"not server_args.disable_cuda_graph and {USUAL}"),
    ],
)
def test_a_patch_of_the_decision(tmp_path: Path, patch: str, expected: str) -> None:
    folder = plant(tmp_path / "t")
    edit(folder, RUNNER, (MODULE, HELPERS))
    file = folder / RUNNER
    file.write_text(f"{file.read_text('utf-8')}\n\n{patch}", "utf-8")
    assert render(verify(folder)) == expected


ASKED = "getattr(forward_batch.spec_info, 'skip_graph', False)"


@pytest.mark.parametrize(
    ("stored", "settled"),
    [
        ("", True),
        ("batch.spec_info.skip_graph = False", True),
        ("batch.spec_info.skip_graph = True", False),
        ("batch.spec_info.skip_graph = batch", False),
    ],
)
def test_an_attribute_that_nothing_gives_another_value_has_its_default(
    tmp_path: Path, stored: str, settled: bool
) -> None:
    """Else the call itself is the term, in its own place, whatever object it asks."""
    folder = plant(tmp_path / "t")
    test = f"        if {ASKED}:\n            return False\n        return forward_batch.batch_size"
    edit(folder, RUNNER, ("        return forward_batch.batch_size", test))
    batches = "sglang/srt/model_executor/forward_batch_info.py"
    edit(folder, batches, ("=batch.spec_info", "=made_elsewhere(batch)"))
    last = "        batch.spec_info = result.logits_output\n"
    edit(folder, VERIFY, (last, f"{last}        {stored}\n"))
    found = verify(folder)
    asked = [atom for atom in atoms_of(found) if "skip_graph" in atom.text]
    if settled:
        assert not asked
        return
    assert [atom.text for atom in asked] == [ASKED]
    line = (folder / RUNNER).read_text("utf-8").splitlines().index(f"        if {ASKED}:") + 1
    assert [(atom.span.file, atom.span.line) for atom in asked if atom.span] == [(RUNNER, line)]


AS_IT_IS = f"not server_args.disable_cuda_graph and {USUAL}"


@pytest.mark.parametrize(
    ("lines", "doubted"),
    [
        ('mock.patch.object(CudaGraphRunner, "can_run", never).start()', True),
        ('def apply():\n    mock.patch.object(CudaGraphRunner, "can_run", never).start()', True),
        ('def t():\n    with mock.patch.object(CudaGraphRunner, "can_run", never): pass', True),
        ('mock.patch("fork.runner.CudaGraphRunner.can_run", never).start()', True),
        ('for n in ("can_run", "replay"):\n    setattr(CudaGraphRunner, n, never)', True),
        ("def on(cls):\n    for n in dir(cls):\n        setattr(cls, n, never)\n\n\n"
         "def apply():\n    on(CudaGraphRunner)", True),
        ("def show(cls):\n    return cls.__name__\n\n\nshow(CudaGraphRunner)", False),
        ('mock.patch.object(Other, "can_run", never).start()', False),
        ('mock.patch.object(CudaGraphRunner, "other", never).start()', False),
        ('mock.patch("fork.runner.Other.can_run", never).start()', False),
        ('for n in ("can_run", "replay"):\n    setattr(Other, n, never)', False),
        ('def t(runner):\n    return getattr(runner, "can_run")', False),
        ('log({"can_run": 1})', False),
    ],
)  # fmt: skip
def test_a_decision_replaced_by_its_name(tmp_path: Path, lines: str, doubted: bool) -> None:
    """What puts something else in its place is named, in the tree's own words."""
    folder = plant(tmp_path / "t")
    edit(
        folder,
        RUNNER,
        (MODULE, f"\n\nfrom unittest import mock\n\n\nclass Other:\n    pass\n{HELPERS}"),
    )
    file = folder / RUNNER
    source = f"{file.read_text('utf-8')}\n\n{lines}\n"
    file.write_text(source, "utf-8")
    found = render(verify(folder))
    if not doubted:
        assert found == AS_IT_IS
        return
    text = "self.graph_runner.can_run(forward_batch): "
    assert found.startswith(f"not server_args.disable_cuda_graph and {text}{RUNNER}:")
    assert found.endswith(" may replace CudaGraphRunner.can_run")


@pytest.mark.parametrize(("body", "expected"), [("setattr(cls, n, never)", ""), ("n", AS_IT_IS)])
def test_a_decorator_on_the_class_that_sets_by_name(
    tmp_path: Path, body: str, expected: str
) -> None:
    folder = plant(tmp_path / "t")
    on = f"\n\ndef on(cls):\n    for n in dir(cls):\n        {body}\n    return cls\n\n\n@on"
    edit(folder, RUNNER, (MODULE, f"{on}\nclass CudaGraphRunner:"))
    found = render(verify(folder))
    assert found == expected or found.endswith(" may replace CudaGraphRunner.can_run")


WORKER = "sglang/srt/speculative/eagle_worker.py"
INIT = "        self.init_cuda_graphs()\n"
GONE = "self.target_worker.model_runner.graph_runner = None\n"
OFF = f"        if server_args.off:\n            {GONE}"
HELD = "self.target_worker.model_runner.graph_runner"
LATER = f"        {{}}\n\n    def off(self):\n        {GONE}"


PATCHES = "sglang/srt/fork_patches.py"
PATCH = """\
from sglang.srt.model_executor import cuda_graph_runner
from sglang.srt.model_executor.cuda_graph_runner import CudaGraphRunner

def never(self, forward_batch):
    return False

"""
INSTALL = """\
def install():
    original = cuda_graph_runner.CudaGraphRunner.can_run

    def can_run(self, forward_batch):
        return forward_batch.batch_size <= 2 and original(self, forward_batch)

    cuda_graph_runner.CudaGraphRunner.can_run = can_run

install()
"""


@pytest.mark.parametrize(
    "lines",
    [
        "CudaGraphRunner.can_run = never",
        'setattr(CudaGraphRunner, "can_run", never)',
        'mock.patch.object(CudaGraphRunner, "can_run", never).start()',
        INSTALL,
    ],
)
@pytest.mark.parametrize("imported", [True, False])
def test_a_decision_replaced_from_any_folder(tmp_path: Path, lines: str, imported: bool) -> None:
    """In a module that nothing imports it may be replaced, or not."""
    folder = plant(tmp_path / "t")
    (folder / PATCHES).write_text(PATCH + lines + "\n", "utf-8")
    if imported:
        edit(folder, WORKER, ("\n\nclass", "\nimport sglang.srt.fork_patches\n\n\nclass"))
    found = render(verify(folder))
    if imported and "never" in lines and "mock" not in lines:
        assert found == "never"
    elif imported and lines == INSTALL:
        assert LIMIT in found
    else:
        assert found not in ("never", AS_IT_IS)
        assert LIMIT not in found


VERIFIER = "sglang/srt/speculative/eagle_verify.py"
PASS = "self.target_worker.forward_batch_generation(batch, is_verify=True)"
HANDED = "self.target_worker.forward_batch_generation, batch, is_verify=True"


@pytest.mark.parametrize(
    ("instead", "verdict"),
    [
        (f"self.pool.submit({HANDED}).result()", "UNKNOWN"),
        (f"run_in_thread(function={HANDED.partition(',')[0]})", "UNKNOWN"),
        ("self.pool.submit(self.other, batch).result()", "NOT_RUN"),
        ("None", "NOT_RUN"),
    ],
)
def test_a_pass_that_other_code_is_asked_to_run(tmp_path: Path, instead: str, verdict: str) -> None:
    folder = plant(tmp_path / "t")
    edit(folder, VERIFIER, (PASS, instead))
    worker = next(w for w in scan(folder).workers if w.name == "EAGLEWorker")
    phase = next(p for p in worker.phases if p.name.value == "verify")
    assert phase.verdict is not None
    assert phase.verdict.value == verdict
    said = "TpModelWorker.forward_batch_generation is handed to " in phase.note
    assert said is (verdict == "UNKNOWN")


@pytest.mark.parametrize(
    ("lines", "also"),
    [
        (f"        {GONE}", "never"),
        (OFF, "not server_args.off"),
        (OFF.replace("self.target", "target"), "not server_args.off"),
        (f"        {GONE}".replace("target", "draft"), ""),
        (f"        del {HELD}\n", "never"),
        ("        delattr(target_worker.model_runner, 'graph_runner')\n", "never"),
        ("        vars(target_worker.model_runner).pop('graph_runner')\n", "never"),
        ("        vars(target_worker.model_runner)['graph_runner'] = None\n", "never"),
        (LATER.format("self.off()"), "never"),
        (LATER.format("if server_args.off:\n            self.off()"), "not server_args.off"),
    ],
)
def test_a_runner_that_another_object_takes_away(tmp_path: Path, lines: str, also: str) -> None:
    """The worker is handed the target when that has made its runner."""
    folder = plant(tmp_path / "t")
    edit(folder, WORKER, (INIT, INIT + lines))
    found = render(verify(folder))
    usual = f"not server_args.disable_cuda_graph and {USUAL}"
    assert found == (also if also == "never" else f"{also} and {usual}" if also else usual)


@pytest.mark.parametrize(
    "line", [f"self.held = {HELD}\n        {GONE}        self.on()\n", f"{GONE}        self.on()\n"]
)
def test_a_runner_that_another_method_may_give_back(tmp_path: Path, line: str) -> None:
    folder = plant(tmp_path / "t")
    back = f"\n    def on(self):\n        {HELD} = self.held\n"
    edit(folder, WORKER, (INIT, f"{INIT}        {line}{back}"))
    assert f"not ({GONE.strip()} has run)" in render(verify(folder))


@pytest.mark.parametrize(
    "take",
    [
        "del self.graph_runner",
        "delattr(self, 'graph_runner')",
        "object.__delattr__(self, 'graph_runner')",
        "vars(self).pop('graph_runner', None)",
        "del self.__dict__['graph_runner']",
    ],
)
@pytest.mark.parametrize("last", [True, False])
def test_a_runner_that_is_taken_away_in_other_words(tmp_path: Path, take: str, last: bool) -> None:
    folder = plant(tmp_path / "t")
    before = render(verify(folder))
    taken = f"            {take}\n"
    edit(folder, RUNNERS, (MADE, MADE + taken if last else taken + MADE))
    assert render(verify(folder)) == ("never" if last else before)
