# function: sglang/srt/speculative/eagle_draft.py::EagleDraft.draft_extend
def draft_extend(self, batch: ScheduleBatch):
    batch.forward_mode = ForwardMode.DRAFT_EXTEND
    forward_batch = ForwardBatch.init_new(batch, self.draft_worker.model_runner)
    can_cuda_graph = False  # expect: SPM101
    if can_cuda_graph:
        return self.cuda_graph_runner_for_draft_extend.replay(forward_batch)
    return self.draft_worker.model_runner.forward(forward_batch).logits_output
