from dataclasses import dataclass
from enum import IntEnum, auto
from typing import List, Optional

import torch


class ForwardMode(IntEnum):
    EXTEND = auto()
    DECODE = auto()
    MIXED = auto()
    IDLE = auto()
    TARGET_VERIFY = auto()
    DRAFT_EXTEND = auto()

    def is_prefill(self):
        return self.is_extend()

    def is_extend(self):
        return (
            self == ForwardMode.EXTEND
            or self == ForwardMode.MIXED
            or self == ForwardMode.TARGET_VERIFY
            or self == ForwardMode.DRAFT_EXTEND
        )

    def is_decode(self):
        return self == ForwardMode.DECODE

    def is_idle(self):
        return self == ForwardMode.IDLE

    def is_target_verify(self):
        return self == ForwardMode.TARGET_VERIFY

    def is_cuda_graph(self):
        return (
            self == ForwardMode.DECODE
            or self == ForwardMode.TARGET_VERIFY
            or self == ForwardMode.IDLE
        )


@dataclass
class ForwardBatch:
    forward_mode: ForwardMode
    batch_size: int
    input_ids: torch.Tensor
    seq_lens: torch.Tensor
    out_cache_loc: torch.Tensor
    positions: torch.Tensor
    seq_lens_cpu: Optional[torch.Tensor] = None
    extend_seq_lens_cpu: Optional[List[int]] = None
    spec_info: object = None
    can_run_dp_cuda_graph: bool = False

    @classmethod
    def init_new(cls, batch, model_runner):
        return cls(
            forward_mode=batch.forward_mode,
            batch_size=len(batch.reqs),
            input_ids=batch.input_ids,
            seq_lens=batch.seq_lens,
            out_cache_loc=batch.out_cache_loc,
            positions=batch.positions,
            seq_lens_cpu=batch.seq_lens_cpu,
            spec_info=batch.spec_info,
        )


def get_batch_sizes_to_capture(model_runner):
    return [1, 2, 4, 8]
