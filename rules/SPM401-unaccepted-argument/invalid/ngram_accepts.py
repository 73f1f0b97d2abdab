# function: sglang/srt/managers/scheduler.py::Scheduler.run_batch
def run_batch(self, batch: ScheduleBatch):
    return self.model_worker.forward_batch_generation(batch, pp_proxy_tensors=None)  # expect: SPM401
# function: sglang/srt/speculative/ngram_worker.py::NGRAMWorker.forward_batch_generation
def forward_batch_generation(self, batch: ScheduleBatch, pp_proxy_tensors=None) -> GenerationBatchResult:
    if not batch.forward_mode.is_extend():
        batch.forward_mode = ForwardMode.TARGET_VERIFY
    return self.target_worker.forward_batch_generation(batch)
