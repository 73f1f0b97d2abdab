# function: sglang/srt/speculative/eagle_draft.py::EagleDraft.draft
def draft(self, batch: ScheduleBatch):
    batch.forward_mode = ForwardMode.DECODE
    forward_batch = ForwardBatch.init_new(batch, self.draft_worker.model_runner)
    can_cuda_graph = self.cuda_graph_runner and self.cuda_graph_runner.can_run(forward_batch) and forward_batch.seq_lens.max().item() < 9  # expect: SPM204
    if can_cuda_graph:
        return self.cuda_graph_runner.replay(forward_batch)
    return self.draft_forward(forward_batch)
