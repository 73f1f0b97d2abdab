# function: sglang/srt/speculative/eagle_verify.py::EagleVerify.verify
def verify(self, batch: ScheduleBatch, draft_tokens) -> GenerationBatchResult:
    batch.forward_mode = ForwardMode.TARGET_VERIFY
    batch.input_ids = draft_tokens
    forward_batch = ForwardBatch.init_new(batch, self.target_worker.model_runner)
    forward_batch.can_run_dp_cuda_graph = False  # expect: SPM101
    result = self.target_worker.forward_batch_generation(batch, forward_batch, is_verify=True)

    batch.spec_info = result.logits_output
    return GenerationBatchResult(
        logits_output=result.logits_output,
        can_run_cuda_graph=result.can_run_cuda_graph,
    )
