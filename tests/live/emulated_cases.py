"""Functions over one state, and what a real capture makes of each.

``REFERENCE`` are the 41 cases of the project's reference on remediation, ``DOCUMENTED`` more from
documentation (CUDA graphs and sync debug notes of PyTorch, the CUDA programming guide on stream
capture). Fates are those of an H200 in global capture mode with torch 2.13, kinds those that the
documentation names for the operation. ``rebound buffer`` replays what lies at the old address:
stale, or equal by chance where the new buffer was put there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from specmap.fix.emulator import crossings, on_device

State = Any
torch: Any = None
"""Bound by the test before it runs a case: the table is also read where there is no torch."""

TENSORS = ("x", "m", "i", "n", "v", "acc", "flag", "buf")
HOST = ("cn", "ci", "h")


def made(seed: int) -> State:
    """Return the state of a seed: device tensors, host tensors, numbers, a list, a log."""
    rows, other = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(seed + 99)
    x = torch.rand(8, generator=rows) + 0.1
    mask = [(place + seed) % 2 == 0 for place in range(8)]
    device = on_device(
        SimpleNamespace(
            x=x, m=torch.tensor(mask), i=torch.randint(1, 4, (8,), generator=rows),
            n=torch.tensor(2 + seed), v=torch.rand(8, generator=other), acc=torch.zeros(8),
            flag=torch.tensor(seed % 2 == 0), buf=x.clone(),
        )
    )  # fmt: skip
    device.k, device.lst, device.log = 2 + seed, [seed, seed + 1, seed + 2], []
    device.h, device.cn = torch.tensor([1.0, 2.0, 3.0]) + seed, torch.tensor(2 + seed)
    device.ci = torch.tensor([seed, seed + 1])
    crossings(lambda: setattr(device, "pin", torch.empty(8, pin_memory=True)))
    crossings(lambda: setattr(device, "ones", torch.ones(8, pin_memory=True)))
    return device


def updated(state: State, seed: int) -> None:
    """Do what a runner does: copy into tensors, assign numbers, and bind ``buf`` anew."""
    fresh = made(seed)
    for name in ("x", "m", "i", "n", "v", "flag"):
        getattr(state, name).inner.copy_(getattr(fresh, name).inner)
    for name in HOST:
        getattr(state, name).copy_(getattr(fresh, name))
    state.k, state.lst, state.buf = fresh.k, fresh.lst, fresh.buf


@dataclass(frozen=True)
class Case:
    """A function, the kinds of its crossings, and its fate under capture and replay."""

    run: Callable[[State], Any]
    kinds: str
    fate: str


def _stored(state: State, index: Any, value: Any) -> Any:
    result = state.x.clone()
    result[index] = value
    return result


def _asserted(state: State) -> Any:
    assert (state.x > 0).all()
    return state.x + 1


def _printed(state: State) -> Any:
    repr(state.x)
    return state.x + 1


def _looped(state: State) -> Any:
    result = state.x
    for _ in range(state.k):
        result = result + 1
    return result


def _logged(state: State) -> Any:
    state.log.append(1)
    return state.x + 1


SYNC, SHAPE, PAGEABLE = "sync", "dynamic-shape sync", "pageable-copy"
REFERENCE: dict[str, Case] = {
    "item": Case(lambda s: s.x * s.n.item(), SYNC, "refused"),
    "int()": Case(lambda s: s.x * int(s.n), SYNC, "refused"),
    "cpu()": Case(lambda s: s.x.cpu() + 1, SYNC, "refused"),
    "tolist": Case(lambda s: s.x * sum(s.i.tolist()), SYNC, "refused"),
    "numpy": Case(lambda s: s.x * float(s.x.cpu().numpy().sum()), SYNC, "refused"),
    "if tensor": Case(lambda s: s.x + 1 if s.flag else s.x - 1, SYNC, "refused"),
    "assert tensor": Case(_asserted, SYNC, "refused"),
    "nonzero": Case(lambda s: s.x[s.m.nonzero().squeeze(1)], SHAPE, "refused"),
    "x[mask]": Case(lambda s: s.x[s.m] * 2, SHAPE, "refused"),
    "x[mask]=scalar": Case(lambda s: _stored(s, s.m, 0.0), "", "equal"),
    "x[mask]=tensor": Case(lambda s: _stored(s, s.m, s.v[:4]), SHAPE, "refused"),
    "x[idx]=scalar": Case(lambda s: _stored(s, s.i, 0.0), PAGEABLE, "refused"),
    "masked_select": Case(lambda s: s.x.masked_select(s.m), SHAPE, "refused"),
    "unique": Case(lambda s: torch.unique(s.i).sum(), SHAPE, "refused"),
    "bincount": Case(lambda s: torch.bincount(s.i).sum(), SHAPE, "refused"),
    "repeat_interleave(T)": Case(
        lambda s: torch.repeat_interleave(s.x, s.i)[:8], SHAPE, "refused"
    ),
    "repeat_interleave(T,output_size)": Case(
        lambda s: torch.repeat_interleave(
            s.x[:4], torch.full((4,), 2, device="cuda"), output_size=8
        ), "", "equal",
    ),
    "x[:tensor]": Case(lambda s: s.x[: s.n].sum(), SYNC, "refused"),
    "empty(tensor)": Case(
        lambda s: torch.zeros(s.n, device="cuda").sum() + s.x, SYNC, "refused"
    ),
    "tensor(list,device)": Case(
        lambda s: s.x[:3] + torch.tensor(s.lst, device="cuda"), PAGEABLE, "refused"
    ),
    "pageable.to(dev)": Case(lambda s: s.x[:3] + s.h.to("cuda"), PAGEABLE, "refused"),
    "pageable.to(dev,nb)": Case(
        lambda s: s.x[:3] + s.h.to("cuda", non_blocking=True), PAGEABLE, "refused"
    ),
    "pin+to in region": Case(
        lambda s: s.x[:3] + s.h.pin_memory().to("cuda", non_blocking=True),
        "async-copy pinned-alloc", "stale",
    ),
    "x[list]": Case(lambda s: s.x[s.lst] * 2, PAGEABLE, "refused"),
    "x[cpu idx]": Case(lambda s: s.x[s.ci] * 2, PAGEABLE, "refused"),
    "print": Case(_printed, SYNC, "refused"),
    "equal": Case(lambda s: s.x + (1 if torch.equal(s.x, s.v) else 2), SYNC, "refused"),
    "cpu scalar k": Case(lambda s: s.x * s.k, "", "stale"),
    "cpu tensor item": Case(lambda s: s.x * s.cn.item(), "", "stale"),
    "0-d cpu tensor operand": Case(lambda s: s.x * s.cn, "host-scalar", "stale"),
    "host branch on k": Case(lambda s: s.x + 1 if s.k > 2 else s.x - 1, "", "stale"),
    "host loop range(k)": Case(_looped, "", "stale"),
    "rebound buffer": Case(lambda s: s.buf * 2, "", "stale"),
    "python side effect": Case(_logged, "", "side-effect"),
    "accumulate in place": Case(lambda s: s.acc.add_(1), "", "stale"),
    "alloc in region": Case(lambda s: torch.zeros(8, device="cuda").add_(s.x), "", "equal"),
    "rand": Case(lambda s: torch.rand(8, device="cuda"), "", "equal"),
    "nonzero_static": Case(
        lambda s: s.x[torch.nonzero_static(s.m, size=4, fill_value=0).squeeze(1)], "", "equal"
    ),
    "where3": Case(lambda s: torch.where(s.flag, s.x + 1, s.x - 1), "", "equal"),
    "sort-compact": Case(
        lambda s: s.x[torch.argsort((~s.m).to(torch.int8), stable=True)], "", "equal"
    ),
    "gather": Case(lambda s: s.x.gather(0, s.i), "", "equal"),
}  # fmt: skip


def _waited(state: State) -> Any:
    event = torch.cuda.Event()
    event.record()
    event.synchronize()
    return state.x + 1


def _asked(state: State) -> Any:
    event = torch.cuda.Event()
    event.record()
    event.query()
    return state.x + 1


def _synchronized(state: State) -> Any:
    torch.cuda.synchronize()
    return state.x + 1


def _to_pinned(state: State) -> Any:
    state.pin.copy_(state.x, non_blocking=True)
    return state.x + 1


def _to_pinned_waiting(state: State) -> Any:
    state.pin.copy_(state.x)
    return state.x + 1


def _to_pageable(state: State) -> Any:
    torch.empty(8).copy_(state.x, non_blocking=True)
    return state.x + 1


def _scattered(state: State) -> Any:
    return torch.zeros(8, device="cuda").masked_scatter_(state.m, state.x)


DOCUMENTED: dict[str, Case] = {
    "synchronize()": Case(_synchronized, SYNC, "refused"),
    "event.synchronize": Case(_waited, SYNC, "refused"),
    "event.query": Case(_asked, SYNC, "refused"),
    "copy to pinned, no wait": Case(_to_pinned, "async-copy", "equal"),
    "copy to pinned, waiting": Case(_to_pinned_waiting, SYNC, "refused"),
    "copy to pageable, no wait": Case(_to_pageable, PAGEABLE, "refused"),
    "copy from pinned": Case(
        lambda s: s.x + s.ones.to("cuda", non_blocking=True), "async-copy", "equal"
    ),
    "to(cpu) without a wait": Case(
        lambda s: (s.x.to("cpu", non_blocking=True), s.x + 1)[1], "async-copy", "equal"
    ),
    "float()": Case(lambda s: s.x * float(s.n), SYNC, "refused"),
    "while tensor": Case(lambda s: s.x + 1 if not s.flag else s.x, SYNC, "refused"),
    "tensor and tensor": Case(lambda s: s.x + (1 if s.flag and s.m[0] else 2), SYNC, "refused"),
    "x[scalar tensor]": Case(lambda s: s.x[s.i[0]] + 1, SYNC, "refused"),
    "any in list": Case(lambda s: s.x + int(bool((s.i == 2).any())), SYNC, "refused"),
    "allclose": Case(lambda s: s.x + int(torch.allclose(s.x, s.v)), SYNC, "refused"),
    "argwhere": Case(lambda s: torch.argwhere(s.m).sum(), SHAPE, "refused"),
    "unique_consecutive": Case(lambda s: torch.unique_consecutive(s.i).sum(), SHAPE, "refused"),
    "arange(tensor)": Case(
        lambda s: torch.arange(int(s.n), device="cuda").sum() + s.x, SYNC, "refused"
    ),
    "list of device scalars": Case(
        lambda s: s.x[:2] + torch.tensor([s.n, s.n], device="cuda"), f"{PAGEABLE} sync", "refused"
    ),
    "copy_ from pageable": Case(
        lambda s: torch.zeros(3, device="cuda").copy_(s.h), PAGEABLE, "refused"
    ),
    "masked_fill": Case(lambda s: s.x.masked_fill(s.m, 0.0), "", "equal"),
    "masked_scatter": Case(_scattered, "", "equal"),
    "index_select": Case(lambda s: s.x.index_select(0, s.i), "", "equal"),
    "index_copy": Case(lambda s: s.x.index_fill(0, s.i, 2.0), "", "equal"),
    "scatter": Case(lambda s: s.x.scatter(0, s.i[:1], s.v[:1]), "", "equal"),
    "cumsum": Case(lambda s: s.x.cumsum(0), "", "equal"),
    "topk": Case(lambda s: s.x.topk(3).values, "", "equal"),
    "argmax": Case(lambda s: s.x.view(2, 4).argmax(-1), "", "equal"),
    "split and cat": Case(lambda s: torch.cat(list(s.x.split(4))[::-1]), "", "equal"),
    "slice store": Case(lambda s: _stored(s, slice(0, 3), 1.0), "", "equal"),
    "view written in place": Case(lambda s: s.x.clone().view(2, 4)[0].mul_(3), "", "equal"),
    "a number of a list": Case(lambda s: s.x + s.lst[0], "", "stale"),
    "host tensor in where": Case(
        lambda s: torch.where(s.m, s.x, torch.tensor(float(s.k))), PAGEABLE, "refused"
    ),
}

GPU_ONLY = {
    "sync()": "synchronize()",
    "event.synchronize": "event.synchronize",
    "event.query": "event.query",
    "fork no join": "streams",
    "side stream no fork": "streams",
    "fork+join": "streams",
    "d2h async pinned (out buf)": "copy to pinned, no wait",
    "h2d async pinned static": "copy from pinned",
    "d2h async unpinned": "to(cpu) without a wait",
    "empty_cache": "empty_cache",
}
"""The reference's ten cases that only a GPU can show: the case of the same, or the word by which
the emulator's page says that it is not modelled."""
