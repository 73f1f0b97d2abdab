# function: sglang/srt/speculative/eagle_draft.py::EagleDraft.draft_extend
def draft_extend(self, batch: ScheduleBatch):
    batch.forward_mode = ForwardMode.DRAFT_EXTEND
    forward_batch = ForwardBatch.init_new(batch, self.draft_worker.model_runner)
    self.replays += self.cuda_graph_runner_for_draft_extend.can_run(forward_batch)
    return self.draft_worker.model_runner.forward(forward_batch).logits_output

# function: sglang/srt/speculative/eagle_graphs.py::EagleGraphs.init_cuda_graphs
def init_cuda_graphs(self):
    self.cuda_graph_runner = EAGLEDraftCudaGraphRunner(self)
    self.cuda_graph_runner_for_draft_extend = EAGLEDraftExtendCudaGraphRunner(self)  # expect: SPM106
