# file: sglang/srt/layers/attention/triton_backend.py
from dataclasses import dataclass

import torch
from sglang.srt.model_executor.forward_batch_info import ForwardBatch


@dataclass
class ForwardMetadata:
    seq_lens_k: torch.Tensor | None = None
    all_seq_lens_k: torch.Tensor | None = None


class TritonAttnBackend:
    def __init__(self, model_runner):
        self.cuda_graph_metadata = {}

    def init_forward_metadata(self, forward_batch: ForwardBatch):
        self.forward_metadata = ForwardMetadata()
        if forward_batch.forward_mode.is_target_verify():
            self.forward_metadata.seq_lens_k = forward_batch.seq_lens.to(torch.int32)
            self.forward_metadata.all_seq_lens_k = self.forward_metadata.seq_lens_k
        else:
            self.forward_metadata.seq_lens_k = forward_batch.seq_lens  # expect: SPM305

    def init_buffers(self, bs: int):
        metadata = ForwardMetadata()
        metadata.seq_lens_k = torch.zeros((bs,), dtype=torch.int32, device="cuda")
        metadata.all_seq_lens_k = torch.zeros((bs,), dtype=torch.int32, device="cuda")
        self.cuda_graph_metadata[bs] = metadata

    def init_forward_metadata_capture_cuda_graph(self, bs: int, seq_lens: torch.Tensor):
        self.init_buffers(bs)
        self.init_forward_metadata_replay_cuda_graph(bs, seq_lens)

    def init_forward_metadata_replay_cuda_graph(self, bs: int, seq_lens: torch.Tensor):
        metadata = self.cuda_graph_metadata[bs]
        metadata.seq_lens_k.copy_(seq_lens[:bs])
        metadata.all_seq_lens_k.copy_(seq_lens[:bs])
        self.forward_metadata = metadata
