# function: sglang/srt/speculative/eagle_draft_cuda_graph_runner.py::EAGLEDraftCudaGraphRunner.can_run
def can_run(self, forward_batch: ForwardBatch):
    return forward_batch.seq_lens_cpu.max().item() <= 4096
