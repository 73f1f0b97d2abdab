"""The class that a rewritten verify uses for what follows a greedy accept."""

VERIFY_TAIL = '''
class VerifyTail:
    """What follows a greedy accept: one copy to the host, one wait for the device.

    ``accept_index``: (bs, width), each row its accepted rows of ``predict``, then -1.
    ``slots``: one for each draft token. All work of the device is launched before the
    wait; the host, which then knows how many were accepted, only takes slices.
    """

    def __init__(self, accept_index, predict, slots):
        self.width = accept_index.shape[1]
        self.event = None
        flat = accept_index.reshape(-1)
        self.size = flat.numel()
        packed = torch.cat([flat, predict])
        if packed.is_cuda:
            self.host = torch.empty(packed.shape, dtype=packed.dtype, pin_memory=True)
            self.host.copy_(packed, non_blocking=True)
            self.event = torch.cuda.Event()
            self.event.record()
        else:
            self.host = packed.cpu()
        # Beyond the last one the index is 0: the first row, which is always accepted.
        places = torch.nonzero_static(flat != -1, size=self.size, fill_value=0)
        self.accepted = flat[places.squeeze(1)]
        self.tokens = predict[self.accepted]
        left = torch.full_like(slots, True, dtype=torch.bool)
        left.index_fill_(0, self.accepted.to(torch.int64), False)
        places = torch.nonzero_static(left, size=slots.numel(), fill_value=0)
        self.left = slots[places.squeeze(1)]

    def wait(self):
        """Return ``accept_index`` and ``predict`` as lists; the host waits here only."""
        if self.event is not None:
            self.event.synchronize()
        numbers = self.host.tolist()
        starts = range(0, self.size, self.width)
        self.rows = [numbers[start : start + self.width] for start in starts]
        return self.rows, numbers[self.size :]

    def kept(self):
        """Return accepted rows, their tokens, slots that are left, drafts of each request.

        The last is a tensor on the host; the bonus tokens are not counted.
        """
        drafts = [self.width - row.count(-1) - 1 for row in self.rows]
        count = sum(drafts) + len(drafts)
        left = self.left[: self.left.numel() - count]
        drafts = torch.tensor(drafts, dtype=torch.int32)
        return self.accepted[:count], self.tokens[:count], left, drafts
'''
"""Needs ``torch`` in its file."""
