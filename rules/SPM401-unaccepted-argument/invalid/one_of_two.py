# function: sglang/srt/managers/scheduler.py::Scheduler.run_batch
def run_batch(self, batch: ScheduleBatch):
    return self.model_worker.forward_batch_generation(batch, pp_proxy_tensors=None)  # expect: SPM401
# function: sglang/srt/speculative/eagle_worker.py::EAGLEWorker.forward_batch_generation
def forward_batch_generation(self, batch: ScheduleBatch, pp_proxy_tensors=None) -> GenerationBatchResult:
    if batch.forward_mode.is_extend() or batch.is_extend_in_batch:
        result = self.target_worker.forward_batch_generation(batch)
        self.forward_draft_prefill(batch)
        return result
    result = self.verify(batch, self.draft(batch))
    self.draft_extend(batch)
    return result
