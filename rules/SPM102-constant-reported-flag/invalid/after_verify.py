# function: sglang/srt/speculative/eagle_verify.py::EagleVerify.verify
def verify(self, batch: ScheduleBatch, draft_tokens) -> GenerationBatchResult:
    batch.forward_mode = ForwardMode.TARGET_VERIFY
    batch.input_ids = draft_tokens
    result = self.target_worker.forward_batch_generation(batch, is_verify=True)
    can_run_cuda_graph = False  # expect: SPM102
    return GenerationBatchResult(result.logits_output, can_run_cuda_graph=can_run_cuda_graph)
