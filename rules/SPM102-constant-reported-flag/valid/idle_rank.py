# function: sglang/srt/speculative/ngram_worker.py::NGRAMWorker.forward_batch_generation
def forward_batch_generation(self, batch: ScheduleBatch) -> GenerationBatchResult:
    if batch.forward_mode.is_idle():
        return GenerationBatchResult(can_run_cuda_graph=False)
    if not batch.forward_mode.is_extend():
        batch.forward_mode = ForwardMode.TARGET_VERIFY
    return self.target_worker.forward_batch_generation(batch)
