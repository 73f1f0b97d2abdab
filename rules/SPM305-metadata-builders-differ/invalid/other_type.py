# function: sglang/srt/layers/attention/triton_backend.py::TritonAttnBackend.init_forward_metadata
def init_forward_metadata(self, forward_batch: ForwardBatch):
    metadata = ForwardMetadata()
    metadata.seq_lens_k = forward_batch.seq_lens.to(torch.int64)  # expect: SPM305
    self.forward_metadata = metadata
