# function: sglang/srt/layers/attention/triton_backend.py::TritonAttnBackend.init_forward_metadata
def init_forward_metadata(self, forward_batch: ForwardBatch):
    metadata = ForwardMetadata()
    metadata.seq_lens_k = forward_batch.seq_lens
    self.forward_metadata = metadata

# function: sglang/srt/layers/attention/triton_backend.py::TritonAttnBackend.init_forward_metadata_capture_cuda_graph
def init_forward_metadata_capture_cuda_graph(self, bs: int, seq_lens: torch.Tensor):
    metadata = ForwardMetadata()
    metadata.seq_lens_k = seq_lens[:bs]
    self.cuda_graph_metadata[bs] = metadata
    self.forward_metadata = metadata

# function: sglang/srt/layers/attention/triton_backend.py::TritonAttnBackend.init_forward_metadata_replay_cuda_graph
def init_forward_metadata_replay_cuda_graph(self, bs: int, seq_lens: torch.Tensor):
    metadata = self.cuda_graph_metadata[bs]
    metadata.seq_lens_k.copy_(seq_lens[:bs])
    self.forward_metadata = metadata
