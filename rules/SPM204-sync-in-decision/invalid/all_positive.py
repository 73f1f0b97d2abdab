# function: sglang/srt/speculative/eagle_draft_cuda_graph_runner.py::EAGLEDraftCudaGraphRunner.can_run
def can_run(self, forward_batch: ForwardBatch):
    return bool(torch.all(forward_batch.seq_lens > 0))  # expect: SPM204
