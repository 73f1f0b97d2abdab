# file: sglang/srt/layers/attention/triton_backend.py
from dataclasses import dataclass
from typing import Optional

import torch

from sglang.srt.model_executor.forward_batch_info import ForwardBatch


@dataclass
class ForwardMetadata:
    seq_lens_k: Optional[torch.Tensor] = None


class TritonAttnBackend:
    def __init__(self, model_runner):
        self.forward_metadata = None
        self.cuda_graph_metadata = {}

    def init_forward_metadata(self, forward_batch: ForwardBatch):
        metadata = ForwardMetadata()
        metadata.seq_lens_k = forward_batch.seq_lens  # expect: SPM305
        self.forward_metadata = metadata

    def init_forward_metadata_capture_cuda_graph(self, bs: int, seq_lens: torch.Tensor):
        metadata = ForwardMetadata()
        metadata.seq_lens_k = seq_lens[:bs].to(torch.int32)
        self.cuda_graph_metadata[bs] = metadata
        self.forward_metadata = metadata

    def init_forward_metadata_replay_cuda_graph(self, bs: int, seq_lens: torch.Tensor):
        metadata = self.cuda_graph_metadata[bs]
        metadata.seq_lens_k.copy_(seq_lens[:bs].to(torch.int32))
        self.forward_metadata = metadata
