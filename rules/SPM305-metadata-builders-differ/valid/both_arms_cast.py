# file: sglang/srt/layers/attention/triton_backend.py
from dataclasses import dataclass
from typing import Optional

import torch

from sglang.srt.model_executor.forward_batch_info import ForwardBatch


@dataclass
class ForwardMetadata:
    cache_seqlens_int32: Optional[torch.Tensor] = None
    max_seq_len_q: int = 1


class TritonAttnBackend:
    def __init__(self, model_runner):
        self.forward_metadata = None
        self.cuda_graph_metadata = {}
        self.seq_lens = torch.zeros((8,), dtype=torch.int32, device="cuda")

    def init_forward_metadata(self, forward_batch: ForwardBatch):
        metadata = ForwardMetadata()
        if forward_batch.forward_mode.is_target_verify():
            metadata.cache_seqlens_int32 = (forward_batch.seq_lens + 4).to(torch.int32)
        else:
            metadata.cache_seqlens_int32 = forward_batch.seq_lens.to(torch.int32)
        self.forward_metadata = metadata

    def init_forward_metadata_capture_cuda_graph(self, bs: int, seq_lens: torch.Tensor):
        self.cuda_graph_metadata[bs] = self.metadata_on_static_buffers(bs)
        self.forward_metadata = self.cuda_graph_metadata[bs]

    def metadata_on_static_buffers(self, bs: int):
        metadata = ForwardMetadata()
        metadata.cache_seqlens_int32 = self.seq_lens[:bs]
        return metadata

    def init_forward_metadata_replay_cuda_graph(self, bs: int, seq_lens: torch.Tensor):
        metadata = self.cuda_graph_metadata[bs]
        fill_seqlens_kernel[(bs,)](seq_lens, metadata.cache_seqlens_int32)
        self.forward_metadata = metadata
