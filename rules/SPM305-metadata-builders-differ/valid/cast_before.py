# function: sglang/srt/layers/attention/triton_backend.py::TritonAttnBackend.init_forward_metadata
def init_forward_metadata(self, forward_batch: ForwardBatch):
    seq_lens = forward_batch.seq_lens.to(torch.int32)
    metadata = ForwardMetadata()
    metadata.seq_lens_k = seq_lens
    self.forward_metadata = metadata
