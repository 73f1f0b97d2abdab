# function: sglang/srt/speculative/eagle_verify.py::EagleVerify.verify
def verify(self, batch: ScheduleBatch, draft_tokens) -> GenerationBatchResult:
    batch.forward_mode = ForwardMode.TARGET_VERIFY
    batch.input_ids = draft_tokens
    forward_batch = ForwardBatch.init_new(batch, self.target_worker.model_runner)
    if batch.return_logprob:
        logits_output = self.target_worker.model_runner.model.forward(  # expect: SPM105
            forward_batch.input_ids, forward_batch.positions, forward_batch
        )
        return GenerationBatchResult(logits_output=logits_output)
    result = self.target_worker.forward_batch_generation(batch, forward_batch, is_verify=True)

    batch.spec_info = result.logits_output
    return GenerationBatchResult(
        logits_output=result.logits_output,
        can_run_cuda_graph=result.can_run_cuda_graph,
    )
