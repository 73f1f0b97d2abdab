# function: sglang/srt/speculative/eagle_draft.py::EagleDraft.draft
def draft(self, batch: ScheduleBatch):
    batch.forward_mode = ForwardMode.DECODE
    forward_batch = ForwardBatch.init_new(batch, self.draft_worker.model_runner)
    return self.draft_forward(forward_batch)

# function: sglang/srt/speculative/eagle_graphs.py::EagleGraphs.init_cuda_graphs
def init_cuda_graphs(self):
    self.cuda_graph_runner = None
    self.cuda_graph_runner_for_draft_extend = EAGLEDraftExtendCudaGraphRunner(self)
