# function: sglang/srt/speculative/eagle_verify.py::EagleVerify.verify
def verify(self, batch: ScheduleBatch, draft_tokens) -> GenerationBatchResult:
    batch.forward_mode = ForwardMode.TARGET_VERIFY
    batch.input_ids = draft_tokens
    forward_batch = ForwardBatch.init_new(batch, self.target_worker.model_runner)
    logits_output = self.target_worker.model_runner.model.forward(
        forward_batch.input_ids, forward_batch.positions, forward_batch
    )
    can_run_cuda_graph = False
    return GenerationBatchResult(logits_output, can_run_cuda_graph=can_run_cuda_graph)
