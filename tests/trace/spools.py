"""Builds what a rank leaves: a small plan by hand, and spools written call by call."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from specmap.codemap.verdict import SinkKind
from specmap.trace.eventlog import tail_of
from specmap.trace.plan import (
    Accept,
    BatchNames,
    GraphNames,
    PlanPhase,
    PlanWorker,
    RankNames,
    Role,
    SyncSite,
    Target,
    WrapPlan,
    to_json,
)
from specmap.trace.spool import RECORD, Kind, Record

DECODE, EXTEND, VERIFY, DRAFT_EXTEND, IDLE = 1, 2, 3, 4, 5
MODES = {
    DECODE: "DECODE", EXTEND: "EXTEND", VERIFY: "TARGET_VERIFY", DRAFT_EXTEND: "DRAFT_EXTEND",
    IDLE: "IDLE",
}  # fmt: skip

# The functions of the plan; the two entries are shared as StandaloneWorker shares EAGLEWorker's.
STEP, DRAFT, CHECK, EXTENDED = 1, 2, 3, 4
RUNNER, DECODED, PREFILLED, PIECES = 5, 6, 7, 8
CAN_RUN, ROUTE, DRAFT_RUNNER, DRAFT_REPLAY = 9, 10, 11, 12
NGRAM_STEP = 13

_W = "sglang/srt/speculative/worker.py"
_M = "sglang/srt/model_executor/runner.py"


def _target(
    number: int, file: str, name: str, *roles: Role, sink: SinkKind | None = None
) -> Target:
    module = file.removesuffix(".py").replace("/", ".")
    return Target(number, module, name, file, number * 10, number * 10 + 5, roles, sink)


PLAN = WrapPlan(
    schema=1,
    release="0.5.9",
    package="sglang",
    batch=BatchNames("forward_mode", ("batch_size",), "sglang.modes:Mode", ("batch",)),
    graph=GraphNames(("torch.cuda.graphs:CUDAGraph",), ("replay",), ("capture_begin",), ("bs",)),
    accept=(Accept(14, "sglang.metrics", "Metrics.count", "bs", ("tokens + bs",)),),
    rank=RankNames(("sglang.scheduler:run",), {"tp_rank": ("tp_rank",)}),
    targets=(
        _target(STEP, _W, "Worker.step", Role.ENTRY),
        _target(DRAFT, _W, "Worker.draft", Role.PHASE),
        _target(CHECK, _W, "Worker.verify", Role.PHASE),
        _target(EXTENDED, _W, "Worker.extend", Role.PHASE),
        _target(RUNNER, _M, "Runner.replay", Role.PASS, Role.SINK, sink=SinkKind.GRAPH),
        _target(DECODED, _M, "Model.forward_decode", Role.SINK, sink=SinkKind.EAGER),
        _target(PREFILLED, _M, "Model.forward_extend", Role.SINK, sink=SinkKind.EAGER),
        _target(PIECES, _M, "Pieces.replay", Role.PASS, Role.SINK, sink=SinkKind.PIECEWISE),
        _target(CAN_RUN, _M, "Runner.can_run", Role.DECISION),
        _target(ROUTE, _M, "Model.forward", Role.DECISION),
        _target(DRAFT_RUNNER, _M, "DraftRunner.replay", Role.PASS),
        _target(DRAFT_REPLAY, _M, "DraftRunner._replay", Role.SINK, sink=SinkKind.GRAPH),
        _target(NGRAM_STEP, _W, "NgramWorker.step", Role.ENTRY, Role.PHASE),
    ),
    workers=(
        PlanWorker(
            "Worker",
            STEP,
            (
                PlanPhase("target_prefill", "target", STEP, STEP, ("EXTEND",),
                          ((STEP, PREFILLED), (STEP, PREFILLED, PIECES))),
                PlanPhase("draft", "draft", DRAFT, DRAFT, ("DECODE",),
                          ((STEP, DRAFT, DECODED), (STEP, DRAFT, DRAFT_RUNNER, DRAFT_REPLAY))),
                PlanPhase("verify", "target", CHECK, CHECK, ("TARGET_VERIFY",),
                          ((STEP, CHECK, RUNNER), (STEP, CHECK, PREFILLED))),
                PlanPhase("draft_extend", "draft", EXTENDED, EXTENDED, ("DRAFT_EXTEND",),
                          ((STEP, EXTENDED, RUNNER), (STEP, EXTENDED, PREFILLED))),
            ),
        ),
        PlanWorker(
            "NgramWorker",
            NGRAM_STEP,
            (
                PlanPhase("target_prefill", "target", NGRAM_STEP, NGRAM_STEP, ("EXTEND",),
                          ((NGRAM_STEP, PREFILLED),)),
                PlanPhase("verify", "target", NGRAM_STEP, NGRAM_STEP, ("TARGET_VERIFY",),
                          ((NGRAM_STEP, RUNNER), (NGRAM_STEP, PREFILLED))),
            ),
        ),
        PlanWorker("OtherWorker", STEP, (
            PlanPhase("verify", "target", STEP, STEP, (), ((STEP, RUNNER),)),
        )),
    ),
    syncs=(SyncSite(_W, 40, 42, ".item() (removable)"),),
)  # fmt: skip

FILE_HEAD = b"SPECMAP1" + (32).to_bytes(4, "little") + (1).to_bytes(4, "little") + b"\0" * 48
HEADER = {
    "schema": 1, "pid": 99999999, "host": "box", "boot_id": "boot", "tp_rank": 0, "pp_rank": 0,
    "dp_rank": None, "gpu_id": 0, "ring": "c", "modes": {str(k): v for k, v in MODES.items()},
    "classes": {}, "arguments": {"tp_size": 1, "pp_size": 1}, "finished": True, "targets": [],
}  # fmt: skip


class Rank:
    """Writes one rank; every call takes 1000 ns of its clock unless it says otherwise."""

    def __init__(self, tp: int = 0, pid: int = 7, start_ns: int = 1_000_000) -> None:
        self.name = f"rank-{tp}-0-0-{pid}"
        self.records: list[bytes] = []
        self.names: list[dict[str, Any]] = []
        self.header: dict[str, Any] = {**HEADER, "tp_rank": tp, "pid": HEADER["pid"]}
        self.now = start_ns
        self._reasons: dict[str, int] = {}

    def put(
        self, kind: Kind, target: int = 0, mode: int = -1, size: int = -1, value: int = -1,
        object: int = 0,
    ) -> None:  # fmt: skip
        self.now += 1000
        self.records.append(RECORD.pack(self.now, target, kind, mode, size, value, object))

    @contextmanager
    def call(
        self, target: int, mode: int = -1, size: int = -1, value: int = -1, object: int = 0,
        raises: bool = False,
    ) -> Iterator[None]:  # fmt: skip
        self.put(Kind.ENTER, target, mode, size, object=object)
        yield
        self.put(Kind.RAISE if raises else Kind.EXIT, target, mode, value=value, object=object)

    def reason(self, target: int, conjunct: str, call: bool = False, **operands: Any) -> None:
        """Write a decision's no; operands are named as the test names them, ``.`` as ``__``."""
        named = {key.replace("__", "."): value for key, value in operands.items()}
        item = {"kind": "reason", "target": target, "conjunct": conjunct, "operands": named,
                "line": target * 10 + 1} | ({"call": True} if call else {})  # fmt: skip
        key = json.dumps(item)
        if key not in self._reasons:
            self._reasons[key] = len(self.names) + 1
            self.names.append({"id": self._reasons[key], **item})
        self.put(Kind.REASON, target, value=self._reasons[key])

    def replay(self, times: int = 1) -> None:
        for _ in range(times):
            self.put(Kind.REPLAY, object=77)

    def graph(self, target: int, mode: int, size: int, captured: int) -> None:
        """Write a call of a graph runner that replays one graph of ``captured`` requests."""
        with self.call(target, mode, size, captured):
            self.replay()

    def cycle(self, size: int = 4, captured: int = 4, eager: tuple[str, ...] = ()) -> None:
        """Write a decode cycle of the first worker; ``eager`` names phases that do not replay."""
        with self.call(STEP, DECODE, size):
            with self.call(DRAFT, DECODE, size):
                if "draft" in eager:
                    self.too_large(size)
                    self.forward(DECODED, DECODE, size)
                    self.forward(DECODED, DECODE, size)
                else:
                    with self.call(DRAFT_RUNNER, DECODE, size, captured):
                        self.graph(DRAFT_REPLAY, -1, captured, captured)
            for name, holder, mode in (
                ("verify", CHECK, VERIFY), ("draft_extend", EXTENDED, DRAFT_EXTEND),
            ):  # fmt: skip
                with self.call(holder, DECODE, size):
                    if name in eager:
                        self.too_large(size)
                        self.forward(PREFILLED, mode, size)
                    else:
                        self.graph(RUNNER, mode, size, captured)

    def forward(self, target: int, mode: int, size: int) -> None:
        with self.call(target, mode, size):
            pass

    def too_large(self, size: int, largest: int = 2) -> None:
        self.reason(CAN_RUN, "cuda_graph_bs <= self.max_bs",
                    cuda_graph_bs=size, self__max_bs=largest)  # fmt: skip

    def prefill(self, size: int = 1) -> None:
        with self.call(STEP, EXTEND, size):
            self.forward(PREFILLED, EXTEND, size)

    def accept(self, requests: int, tokens: int) -> None:
        self.put(Kind.ACCEPT, 14, size=requests, value=tokens)

    @property
    def spool(self) -> bytes:
        return FILE_HEAD + b"".join(self.records)

    def write(self, folder: Path) -> str:
        """Write the files of the rank and the plan beside them; return the rank's name.

        A rank that finished closes its log with a mark, as the agent does.
        """
        (folder / "plan.json").write_text(to_json(PLAN), "utf-8")
        (folder / f"{self.name}.json").write_text(json.dumps(self.header), "utf-8")
        lines = "".join(json.dumps(item) + "\n" for item in self.names)
        (folder / f"{self.name}.names").write_text(lines, "utf-8")
        spool = self.spool
        if self.header["finished"]:
            last_ns = RECORD.unpack(self.records[-1])[0] if self.records else self.now
            spool += RECORD.pack(last_ns, 0, Kind.DISARM, -1, -1, -1, 0)
        (folder / f"{self.name}.spool").write_bytes(spool)
        return self.name


def records_of(folder: Path, name: str) -> Iterator[Record]:
    """Yield the raw records of a rank."""
    tail = tail_of(folder, name)
    while records := tail.poll():
        yield from records
