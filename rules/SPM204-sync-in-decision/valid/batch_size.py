# function: sglang/srt/speculative/eagle_draft_cuda_graph_runner.py::EAGLEDraftCudaGraphRunner.can_run
def can_run(self, forward_batch: ForwardBatch):
    return forward_batch.batch_size <= self.max_bs
