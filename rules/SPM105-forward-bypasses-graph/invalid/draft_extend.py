# function: sglang/srt/speculative/eagle_draft.py::EagleDraft.draft_extend
def draft_extend(self, batch: ScheduleBatch):
    batch.forward_mode = ForwardMode.DRAFT_EXTEND
    forward_batch = ForwardBatch.init_new(batch, self.draft_worker.model_runner)
    return self.draft_worker.model_runner.model.forward(  # expect: SPM105
        forward_batch.input_ids, forward_batch.positions, forward_batch
    )
