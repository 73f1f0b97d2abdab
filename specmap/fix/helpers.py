"""Functions that rewritten code needs; they are written into the file that uses them."""

from __future__ import annotations

import libcst as cst

from specmap.codemap.remedy import Change
from specmap.fix.tail import VERIFY_TAIL
from specmap.fix.tree import Source

HELPERS = {
    "packed_tolist": '''
def packed_tolist(*tensors):
    """Return tensors of one dtype as nested lists, with one copy to the host."""
    flat = torch.cat([tensor.reshape(-1) for tensor in tensors]).tolist()
    lists, start = [], 0
    for tensor in tensors:
        part = flat[start : start + tensor.numel()]
        start += tensor.numel()
        for size in reversed(tensor.shape[1:]):
            part = [part[i : i + size] for i in range(0, len(part), size)]
        lists.append(part)
    return lists
''',
    "HostCopies": '''
class HostCopies:
    """Copies of device tensors on the host, made without waiting for the device."""

    def __init__(self, *tensors):
        self.event = None
        if not tensors[0].is_cuda:
            self.copies = tuple(tensor.cpu() for tensor in tensors)
            return
        self.copies = tuple(
            torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
            for tensor in tensors
        )
        for copy, tensor in zip(self.copies, tensors):
            copy.copy_(tensor, non_blocking=True)
        self.event = torch.cuda.Event()
        self.event.record()

    def wait(self):
        """Return the copies; the host waits here, and only for them."""
        if self.event is not None:
            self.event.synchronize()
        return self.copies
''',
    "rotate_segments_": '''
def rotate_segments_(values, lengths, last):
    """Shift each segment left by one, in place; its last place gets its element of last."""
    if not lengths:
        return
    assert min(lengths) >= 1, "a segment without a token has no last place"
    ends, total = [], 0
    for length in lengths:
        total += length
        ends.append(total - 1)
    places = torch.tensor(ends, dtype=torch.int64, pin_memory=values.is_cuda).to(
        values.device, non_blocking=True
    )
    values[: total - 1] = values[1:total].clone()
    values[places] = last[: len(ends)].reshape(len(ends)).to(values.dtype)
''',
    "select_static": '''
def select_static(values, mask, count):
    """Return values[mask] where the host knows how many there are: no wait for the device."""
    return values[torch.nonzero_static(mask, size=count).squeeze(1)]
''',
    "VerifyTail": VERIFY_TAIL,
}
"""Code by name. Each needs ``torch`` in its file."""


def insertion(source: Source, name: str) -> Change:
    """Return the change that puts a helper after the imports of a file."""
    last: cst.CSTNode | None = None
    for statement in source.module.body:
        if isinstance(statement, cst.SimpleStatementLine):
            if isinstance(statement.body[0], cst.Import | cst.ImportFrom):
                last = statement
    end = source.statement(last)[1] if last is not None else 0
    return Change(source.file, end, end, f"\n{HELPERS[name]}\n")
