# function: sglang/srt/speculative/eagle_draft.py::EagleDraft.draft
def draft(self, batch: ScheduleBatch):
    batch.forward_mode = ForwardMode.DECODE
    forward_batch = ForwardBatch.init_new(batch, self.draft_worker.model_runner)
    self.asked = self.cuda_graph_runner and self.cuda_graph_runner.can_run(forward_batch)
    return self.draft_forward(forward_batch)

# function: sglang/srt/speculative/eagle_graphs.py::EagleGraphs.init_cuda_graphs
def init_cuda_graphs(self):
    self.cuda_graph_runner = EAGLEDraftCudaGraphRunner(self)  # expect: SPM106
    self.cuda_graph_runner_for_draft_extend = EAGLEDraftExtendCudaGraphRunner(self)
