# function: sglang/srt/speculative/eagle_draft.py::EagleDraft.draft_extend
def draft_extend(self, batch: ScheduleBatch):
    batch.forward_mode = ForwardMode.DRAFT_EXTEND
    forward_batch = ForwardBatch.init_new(batch, self.draft_worker.model_runner)
    can_cuda_graph = (
        self.cuda_graph_runner_for_draft_extend
        and self.cuda_graph_runner_for_draft_extend.can_run(forward_batch)
    )
    if can_cuda_graph:
        out = self.cuda_graph_runner_for_draft_extend.replay(forward_batch)
    else:
        out = self.draft_worker.model_runner.forward(forward_batch).logits_output
    runner = self.cuda_graph_runner_for_draft_extend
    self.pool.write(runner.input_ids)  # expect: SPM306
    self.pool.place(runner.positions)
    return out
