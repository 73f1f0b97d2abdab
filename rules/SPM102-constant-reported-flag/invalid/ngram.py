# function: sglang/srt/speculative/ngram_worker.py::NGRAMWorker.forward_batch_generation
def forward_batch_generation(self, batch: ScheduleBatch) -> GenerationBatchResult:
    if batch.forward_mode.is_extend():
        return self.target_worker.forward_batch_generation(batch)
    batch.forward_mode = ForwardMode.TARGET_VERIFY
    result = self.target_worker.forward_batch_generation(batch, is_verify=True)
    return GenerationBatchResult(
        logits_output=result.logits_output,
        can_run_cuda_graph=False,  # expect: SPM102
    )
