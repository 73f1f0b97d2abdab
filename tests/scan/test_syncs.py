"""Host synchronisations: idioms of SGLang's workers against PyTorch's documented semantics."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from specmap.codemap.graph import HostSync, SyncKind
from specmap.codemap.verdict import PhaseName
from specmap.scan.index import Tree
from specmap.scan.resolver import Resolver
from specmap.scan.syncs import SyncFinder, merge
from specmap.scan.values import EnumMember, Instance
from specmap.scan.vocabulary import load_vocabulary
from specmap.scan.walk import Walk
from specmap.scan.walked import Activation, Hit, Notes
from tests.scan.trees import plant

MODE = """
from enum import IntEnum, auto
class ForwardMode(IntEnum):
    DECODE = auto()
    TARGET_VERIFY = auto()
"""
HEAD = """
from __future__ import annotations
from typing import List, Optional
import logging
import math
import torch

logger = logging.getLogger(__name__)

class Batch:
    seq_lens: torch.Tensor
    seq_lens_cpu: torch.Tensor
    out_cache_loc: torch.Tensor
    device: str
    has_grammar: bool
    verify_done: Optional[torch.cuda.Event]

class LogitsProcessorOutput:
    next_token_logits: torch.Tensor
    hidden_states: Optional[torch.Tensor]

class Worker:
    draft_graph: torch.cuda.CUDAGraph
    verify_graph: torch.cuda.CUDAGraph
    extend_graph: torch.cuda.CUDAGraph
"""
FILE = "sglang/srt/speculative/worker.py"


def scan(
    folder: Path,
    methods: str,
    *,
    kind: str = "decode",
    captured: bool = False,
    platform: str = "cuda",
) -> tuple[HostSync, ...]:
    """Walk ``Worker.run`` of a small tree; the phase of a hit is told by its graph's name."""
    body = "\n".join("    " + line for line in dedent(methods).strip().splitlines())
    plant(
        folder,
        {
            "sglang/__init__.py": "",
            "sglang/srt/model_executor/forward_batch_info.py": MODE,
            FILE: f"{HEAD}\n{body}\n",
        },
    )
    tree = Tree(folder, "sglang")
    resolver = Resolver(tree, load_vocabulary(), platform)
    module = tree.module("sglang.srt.speculative.worker")
    modes = tree.module("sglang.srt.model_executor.forward_batch_info")
    assert module is not None and modes is not None
    worker = Instance(module.classes["Worker"], "test")
    mode = EnumMember(modes.classes["ForwardMode"], "DECODE")
    walk = Walk(resolver, worker, kind, mode, Notes())
    walk.run(module.classes["Worker"].methods["run"])

    def phase_of(hit: Hit) -> PhaseName | None:
        text = module.text(hit.chain[-1].node)
        names = {".draft_": PhaseName.DRAFT, ".verify_": PhaseName.VERIFY}
        return next((names[word] for word in names if word in text), PhaseName.DRAFT_EXTEND)

    def is_captured(activation: Activation) -> bool:
        return captured

    return merge({worker.cls.id: SyncFinder(resolver).find(walk, phase_of, is_captured)})


def one(folder: Path, methods: str, operation: str) -> HostSync:
    """Return the record of one operation."""
    found = [sync for sync in scan(folder, methods) if sync.operation == operation]
    assert len(found) == 1, found
    return found[0]


CYCLE = """
def run(self, batch: Batch):
    self.prepare(batch)
    self.draft_graph.replay()
    self.between(batch)
    self.verify_graph.replay()
    self.finish(batch)
    self.extend_graph.replay()

def prepare(self, batch: Batch):
    batch.seq_lens_sum = torch.sum(batch.seq_lens).item()

def between(self, batch: Batch):
    if batch.has_grammar:
        tokens = batch.out_cache_loc.cpu()
        self.fill(tokens)

def finish(self, batch: Batch):
    accept_index = torch.full((4, 5), -1, dtype=torch.int32, device=batch.device)
    accept_index_cpu = accept_index.tolist()
    for row in accept_index_cpu:
        self.add(row)
"""


def test_place_between_the_passes_of_the_cycle(tmp_path: Path) -> None:
    found = {sync.operation: sync for sync in scan(tmp_path, CYCLE)}
    assert found["torch.sum(batch.seq_lens).item()"].phase_between == "draft_extend->draft"
    assert found["batch.out_cache_loc.cpu()"].phase_between == "draft->verify"
    assert found["accept_index.tolist()"].phase_between == "verify->draft_extend"
    assert len(found) == 3


def test_labels_of_the_cycle(tmp_path: Path) -> None:
    found = {sync.operation: sync for sync in scan(tmp_path, CYCLE)}
    # seq_lens has a twin on the host; the list is what the request loop runs over.
    assert found["torch.sum(batch.seq_lens).item()"].label == "removable"
    assert found["accept_index.tolist()"].label == "unavoidable"
    assert found["batch.out_cache_loc.cpu()"].label == "grammar"
    assert [g.text for g in found["batch.out_cache_loc.cpu()"].guards] == ["batch.has_grammar"]


def test_scheduler_walk_stands_before_the_draft(tmp_path: Path) -> None:
    (found,) = scan(
        tmp_path,
        """
        def run(self, batch: Batch):
            batch.seq_lens_cpu = batch.seq_lens.cpu()
        """,
        kind="scheduler",
    )
    assert (found.phase_between, found.where) == ("draft_extend->draft", "scheduler")
    assert (found.kind, found.label) == (SyncKind.EXPLICIT, "removable")


def test_worker_without_a_draft_pass_drafts_on_the_host(tmp_path: Path) -> None:
    (found,) = scan(
        tmp_path,
        """
        def run(self, batch: Batch):
            kv = torch.empty(batch.seq_lens[-1], dtype=torch.int32, device=batch.device)
            self.verify_graph.replay()
        """,
    )
    assert (found.kind, found.operation, found.consumer) == (
        SyncKind.IMPLICIT,
        "batch.seq_lens[-1]",
        "torch.empty",
    )
    assert found.phase_between == "draft->verify"


def test_two_arms_of_one_pass_count_once(tmp_path: Path) -> None:
    found = one(
        tmp_path,
        """
        def run(self, batch: Batch):
            self.draft_graph.replay()
            if self.can_run(batch):
                self.verify_graph.replay()
            else:
                n = batch.out_cache_loc.sum().item()
                self.use(n)
                self.verify_graph.replay()
            self.extend_graph.replay()
        """,
        "batch.out_cache_loc.sum().item()",
    )
    assert found.phase_between == "draft->verify"


# Every line: the statement, the operation, and what PyTorch documents for it.
IMPLICIT = [
    ("x = batch.out_cache_loc[mask]", "batch.out_cache_loc[mask]"),
    ("x = batch.seq_lens[batch.seq_lens != -1]", "batch.seq_lens[batch.seq_lens != -1]"),
    ("batch.seq_lens[mask] = batch.out_cache_loc", "batch.seq_lens[mask]"),
    ("x = torch.unique(batch.seq_lens // 16)", "torch.unique(batch.seq_lens // 16)"),
    ("x = torch.nonzero(batch.seq_lens)", "torch.nonzero(batch.seq_lens)"),
    ("x = torch.where(mask)", "torch.where(mask)"),
    (
        "x = batch.seq_lens.repeat_interleave(batch.out_cache_loc)",
        "batch.seq_lens.repeat_interleave(batch.out_cache_loc)",
    ),
    ("x = logits.hidden_states[: batch.seq_lens[0]]", "batch.seq_lens[0]"),
    ("if logits.hidden_states:\n    pass", "logits.hidden_states"),
    ("if not torch.all(batch.seq_lens == 1):\n    pass", "torch.all(batch.seq_lens == 1)"),
    (
        "x = torch.equal(batch.seq_lens, batch.out_cache_loc)",
        "torch.equal(batch.seq_lens, batch.out_cache_loc)",
    ),
]
# Text that is made of a tensor needs its values; a logger makes it when it is enabled.
TEXT = [
    ("print(batch.seq_lens)", "print(batch.seq_lens)", "removable"),
    ("print('lens', batch.seq_lens.max())", "print('lens', batch.seq_lens.max())", "removable"),
    ("x = str(batch.seq_lens)", "str(batch.seq_lens)", "removable"),
    ("x = repr(batch.seq_lens)", "repr(batch.seq_lens)", "removable"),
    ("x = 'lens %s' % batch.seq_lens", "'lens %s' % batch.seq_lens", "removable"),
    ("x = '%d %s' % (1, batch.seq_lens)", "'%d %s' % (1, batch.seq_lens)", "removable"),
    ("x = '{}'.format(batch.seq_lens)", "'{}'.format(batch.seq_lens)", "removable"),
    ("logger.info(f'lens {batch.seq_lens}')", "f'lens {batch.seq_lens}'", "removable"),
    # The text is made before the logger is asked.
    ("logger.debug(f'lens {batch.seq_lens}')", "f'lens {batch.seq_lens}'", "removable"),
    (
        "logger.info('lens %s', batch.seq_lens)",
        "logger.info('lens %s', batch.seq_lens)",
        "removable",
    ),
    (
        "logger.debug('lens %s', batch.seq_lens)",
        "logger.debug('lens %s', batch.seq_lens)",
        "debug",
    ),
]
EXPLICIT = [
    ("x = math.ceil(batch.seq_lens.max())", "math.ceil(batch.seq_lens.max())"),
    ("x = math.sqrt(batch.seq_lens[0])", "math.sqrt(batch.seq_lens[0])"),
    ("x = batch.seq_lens.tolist()", "batch.seq_lens.tolist()"),
    ("x = int(batch.seq_lens.max())", "int(batch.seq_lens.max())"),
    ('x = batch.seq_lens.to("cpu")', 'batch.seq_lens.to("cpu")'),
    (
        'x = batch.seq_lens.to(device="cpu", dtype=torch.int32)',
        'batch.seq_lens.to(device="cpu", dtype=torch.int32)',
    ),
    ("torch.cuda.synchronize()", "torch.cuda.synchronize()"),
    ("batch.verify_done.synchronize()", "batch.verify_done.synchronize()"),
    ("x = torch.tensor([1, 2], device=batch.device)", "torch.tensor([1, 2], device=batch.device)"),
    ("x = batch.seq_lens_cpu.to(batch.device)", "batch.seq_lens_cpu.to(batch.device)"),
    ("x = torch.ones((2, 3)).cuda()", "torch.ones((2, 3)).cuda()"),
]
NOTHING = [
    "x = batch.out_cache_loc[index]",  # integer indices: the size is the index's
    "batch.seq_lens[mask] = 0",  # masked_fill
    "x = torch.where(mask, batch.seq_lens, 0)",
    "x = batch.seq_lens.repeat_interleave(4, dim=0)",
    "x = batch.seq_lens.repeat_interleave(batch.out_cache_loc, output_size=8)",
    'x = batch.seq_lens.to("cpu", non_blocking=True)',
    "x = batch.seq_lens_cpu.to(batch.device, non_blocking=True)",
    "x = torch.zeros((4,), dtype=torch.int32, device=batch.device)",
    "x = torch.empty(batch.seq_lens.shape, device=batch.device)",
    "if logits.hidden_states is not None:\n    pass",
    "x = [t for t in batch.seq_lens]",  # unbind: views, nothing is read
    "x = batch.seq_lens.to(torch.int64)",
    "x = int(len(batch.seq_lens))",
    "x = {1: 2}.item()",
    "print(batch.seq_lens.shape, len(batch.seq_lens), batch.seq_lens.dtype)",
    "logger.info(f'lens {batch.seq_lens.shape} {batch.device}')",
    "print(batch.seq_lens_cpu)",
    "if batch.has_grammar:\n    raise ValueError(f'wrong {batch.seq_lens}')",
    "x = math.ceil(len(batch.seq_lens) / 2)",
    "try:\n    pass\nexcept ValueError:\n    print(batch.seq_lens)",
]


def _method(statement: str) -> str:
    lines = [
        "def run(self, batch: Batch, logits: LogitsProcessorOutput):",
        "    mask = torch.full_like(batch.seq_lens, True, dtype=torch.bool)",
        "    index = torch.arange(4, device=batch.device)",
        *("    " + line for line in statement.splitlines()),
    ]
    return "\n".join(lines)


@pytest.mark.parametrize(("statement", "operation"), IMPLICIT)
def test_implicit(tmp_path: Path, statement: str, operation: str) -> None:
    found = one(tmp_path, _method(statement), operation)
    assert (found.kind, found.device, found.label) == (SyncKind.IMPLICIT, "cuda", "removable")


@pytest.mark.parametrize(("statement", "operation", "label"), TEXT)
def test_text(tmp_path: Path, statement: str, operation: str, label: str) -> None:
    found = one(tmp_path, _method(statement), operation)
    assert (found.kind, found.device, found.label) == (SyncKind.IMPLICIT, "cuda", label)
    assert found.rule == "text"


@pytest.mark.parametrize(("statement", "operation"), EXPLICIT)
def test_explicit(tmp_path: Path, statement: str, operation: str) -> None:
    found = one(tmp_path, _method(statement), operation)
    assert (found.kind, found.device) == (SyncKind.EXPLICIT, "cuda")


@pytest.mark.parametrize("statement", NOTHING)
def test_no_synchronisation(tmp_path: Path, statement: str) -> None:
    assert scan(tmp_path, _method(statement)) == ()


LOOK_ALIKES = [
    ("x = batch.seq_lens_cpu.sum().item()", "batch.seq_lens_cpu.sum().item()"),
    ("lens = torch.tensor([1, 2])\nx = lens.tolist()", "lens.tolist()"),
    ("host = torch.zeros(3, device='cpu')\nx = int(host[0])", "int(host[0])"),
]


@pytest.mark.parametrize(("statement", "operation"), LOOK_ALIKES)
def test_cpu_tensor_is_kept_as_a_look_alike(tmp_path: Path, statement: str, operation: str) -> None:
    found = one(tmp_path, _method(statement), operation)
    assert (found.kind, found.device, found.label) == (SyncKind.NONE, "cpu", "cpu-tensor")


def test_only_the_first_copy_of_a_chain_waits(tmp_path: Path) -> None:
    found = scan(tmp_path, _method("x = batch.out_cache_loc.cpu()\ny = x.tolist()"))
    assert [(s.operation, s.kind) for s in found] == [
        ("batch.out_cache_loc.cpu()", SyncKind.EXPLICIT),
        ("x.tolist()", SyncKind.NONE),
    ]


def test_buffers_made_under_a_device_context_are_on_the_device(tmp_path: Path) -> None:
    statement = "with torch.device('cuda'):\n    buffer = torch.zeros((8,))\nx = buffer.tolist()"
    assert one(tmp_path, _method(statement), "buffer.tolist()").device == "cuda"


def test_argument_decides_the_device_of_a_parameter(tmp_path: Path) -> None:
    found = scan(
        tmp_path,
        """
        def run(self, batch: Batch):
            self.total(batch.seq_lens_cpu)

        def total(self, lens: torch.Tensor):
            return lens.sum().item()
        """,
    )
    assert [(s.operation, s.kind) for s in found] == [("lens.sum().item()", SyncKind.NONE)]


def test_twin_that_a_guard_says_is_missing_does_not_help(tmp_path: Path) -> None:
    found = one(
        tmp_path,
        _method(
            "if batch.seq_lens_cpu is not None:\n    x = 0\n"
            "else:\n    x = batch.seq_lens.sum().item()\nself.use(x)"
        ),
        "batch.seq_lens.sum().item()",
    )
    assert found.label == "unavoidable"


def test_value_computed_from_one_already_read_is_removable(tmp_path: Path) -> None:
    statement = """\
accepted = torch.full((2, 3), -1, device=batch.device)
rows = accepted.tolist()
length = (accepted != -1).sum(dim=1)
lengths = length.cpu()
self.use(rows, lengths)"""
    found = {s.operation: s.label for s in scan(tmp_path, _method(statement))}
    assert found == {"accepted.tolist()": "unavoidable", "length.cpu()": "removable"}


def test_size_read_back_for_an_allocation_is_removable(tmp_path: Path) -> None:
    statement = "x = torch.empty((index.sum().item(),), device=batch.device)"
    assert one(tmp_path, _method(statement), "index.sum().item()").label == "removable"


def test_waiting_for_ones_own_copy_into_a_mirror_is_removable(tmp_path: Path) -> None:
    statement = """\
pinned = torch.zeros(8, pin_memory=True)
pinned.copy_(batch.seq_lens, non_blocking=True)
batch.verify_done.synchronize()"""
    (found,) = scan(tmp_path, _method(statement))
    assert (found.rule, found.label) == ("synchronize", "removable")


def test_waiting_for_somebody_elses_event_is_unavoidable(tmp_path: Path) -> None:
    (found,) = scan(tmp_path, _method("batch.verify_done.synchronize()"))
    assert found.label == "unavoidable"


@pytest.mark.parametrize(
    ("guard", "label"),
    [
        ("batch.return_logprob", "logprob"),
        ("self.enable_nan_detection", "debug"),
        ("batch.has_grammar", "grammar"),
        ("not batch.has_grammar", "unavoidable"),
    ],
)
def test_label_of_a_guard(tmp_path: Path, guard: str, label: str) -> None:
    statement = f"if {guard}:\n    x = batch.out_cache_loc.tolist()\n    self.use(x)"
    assert one(tmp_path, _method(statement), "batch.out_cache_loc.tolist()").label == label


def test_captured_code_is_marked(tmp_path: Path) -> None:
    (found,) = scan(tmp_path, _method("x = index.tolist()"), captured=True)
    assert found.captured


def test_without_an_accelerator_nothing_waits(tmp_path: Path) -> None:
    found = scan(tmp_path, _method("x = batch.seq_lens.tolist()"), platform="cpu")
    assert [s.kind for s in found] == [SyncKind.NONE]


def test_cut_branches_are_not_reported(tmp_path: Path) -> None:
    statement = "if False:\n    x = batch.seq_lens.tolist()"
    assert scan(tmp_path, _method(statement)) == ()


def test_copy_to_the_host_of_something_untyped_is_kept_as_unknown(tmp_path: Path) -> None:
    found = one(tmp_path, _method("x = self.source().tokens.cpu()"), "self.source().tokens.cpu()")
    assert (found.kind, found.device) == (SyncKind.EXPLICIT, "unknown")


def test_synchronize_of_an_object_that_is_no_device_is_not_one(tmp_path: Path) -> None:
    assert scan(tmp_path, _method("self.corpus.synchronize()")) == ()


def test_function_of_the_tree_that_reads_back_gives_a_number(tmp_path: Path) -> None:
    found = scan(
        tmp_path,
        """
        def run(self, batch: Batch):
            pages = self.pages(batch.seq_lens_cpu)
            if pages > 4:
                self.grow()

        def pages(self, lens: torch.Tensor) -> torch.Tensor:
            return lens.sum().item()
        """,
    )
    assert [s.operation for s in found] == ["lens.sum().item()"]


def test_the_parts_of_a_tuple_are_told_apart(tmp_path: Path) -> None:
    found = scan(
        tmp_path,
        """
        staged: Optional[tuple] = None

        def run(self, batch: Batch):
            key = (self.sampler, len(batch.device), batch.seq_lens)
            staged = self.staged
            if staged is not None and staged[1] == 4:
                return
            if staged[2] == 4:
                self.staged = key
        """,
    )
    assert [s.operation for s in found] == ["staged[2] == 4"]


def test_an_attribute_past_the_boundary_is_what_its_class_declares(tmp_path: Path) -> None:
    module = "sglang/srt/layers/logits_processor.py"
    declared = "class Output:\n    logprobs: torch.Tensor\n    names: list\n"
    plant(tmp_path, {module: f"import torch\n{declared}"})
    found = scan(
        tmp_path,
        """
        def run(self, batch: Batch):
            from sglang.srt.layers.logits_processor import Output
            made = Output()
            return made.logprobs.tolist(), made.names.tolist()
        """,
    )
    assert [(s.operation, s.device) for s in found] == [("made.logprobs.tolist()", "cuda")]


def test_what_one_place_knows_of_a_device_does_not_move_the_other(tmp_path: Path) -> None:
    found = one(
        tmp_path,
        CYCLE
        + """
def prepare(self, batch: Batch):
    pass

def between(self, batch: Batch):
    self.check(self.source(), 1)

def finish(self, batch: Batch):
    self.check(batch.seq_lens, 2)

def check(self, values, step):
    if torch.any(torch.isnan(values)):
        raise ValueError(step)
""",
        "torch.any(torch.isnan(values))",
    )
    assert (found.phase_between, found.device) == ("draft->verify", "cuda")


BACKENDS = """
import torch

class Planner:
    def plan(self, batch, captures):
        if captures:
            return None
        return batch.seq_lens.sum().item()

class Mirror:
    def __init__(self, host, event):
        self.host = host
        self.event = event

    def read(self):
        if self.event is not None:
            self.event.synchronize()
        return self.host
"""


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_shared_code_runs_with_each_constant_that_it_is_given(
    tmp_path: Path, order: tuple[int, int]
) -> None:
    """Neither the first call of a function nor the first object of a class tells it all."""
    plant(tmp_path, {"sglang/srt/layers/planner.py": BACKENDS})
    calls = ["planner.plan(batch, True)", "planner.plan(batch, False)"]
    mirrors = ["Mirror(batch.seq_lens, None)", "Mirror(batch.seq_lens, torch.cuda.Event())"]
    found = scan(
        tmp_path,
        f"""
        def run(self, batch: Batch):
            from sglang.srt.layers.planner import Mirror, Planner
            planner = Planner()
            {calls[order[0]]}
            {calls[order[1]]}
            {mirrors[order[0]]}.read()
            {mirrors[order[1]]}.read()
            self.verify_graph.replay()
        """,
    )
    assert {sync.operation for sync in found} == {
        "batch.seq_lens.sum().item()",
        "self.event.synchronize()",
    }


def test_an_annotation_that_says_one_tensor_where_a_tuple_is_given(tmp_path: Path) -> None:
    found = scan(
        tmp_path,
        """
        def run(self, batch: Batch):
            logits_output, ids = self.verified(batch, LogitsProcessorOutput())
            self.note(logits_output, ids)

        def verified(self, batch: Batch, logits_output: LogitsProcessorOutput) -> torch.Tensor:
            return logits_output, batch.seq_lens

        def note(self, logits_output: LogitsProcessorOutput, ids):
            logits_output.next_token_logits.tolist()
            ids.tolist()
        """,
    )
    assert {sync.operation for sync in found} == {
        "logits_output.next_token_logits.tolist()",
        "ids.tolist()",
    }


GROUPS = """
import torch

class Group:
    def __init__(self, ranks, device):
        self.device = device
        self.rank = 0
        if ranks:
            self.active = torch.ones(ranks, dtype=torch.int32, device=self.device)
            self.active_cpu = torch.ones(ranks, dtype=torch.int32)

def get_group() -> Group:
    return Group(1, "cuda")
"""


def test_a_tensor_of_an_object_beyond_the_boundary(tmp_path: Path) -> None:
    plant(tmp_path, {"sglang/srt/distributed/parallel_state.py": GROUPS})
    found = scan(
        tmp_path,
        """
        def run(self, batch: Batch):
            from sglang.srt.distributed.parallel_state import get_group
            group = get_group()
            if group.active.all() and group.active_cpu.all() and group.rank:
                pass
        """,
    )
    assert [(sync.operation, sync.device) for sync in found] == [("group.active.all()", "cuda")]
