from dataclasses import dataclass
from typing import List, Optional

import torch

from sglang.srt.model_executor.forward_batch_info import ForwardMode


@dataclass
class ScheduleBatch:
    reqs: List[object]
    forward_mode: ForwardMode
    input_ids: torch.Tensor
    seq_lens: torch.Tensor
    seq_lens_cpu: torch.Tensor
    out_cache_loc: torch.Tensor
    positions: torch.Tensor
    device: str
    seq_lens_sum: int
    is_extend_in_batch: bool = False
    has_grammar: bool = False
    return_logprob: bool = False
    spec_info: Optional[object] = None

    def prepare_for_decode(self):
        self.forward_mode = ForwardMode.DECODE
