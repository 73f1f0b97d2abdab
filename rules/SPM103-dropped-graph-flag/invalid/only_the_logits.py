# function: sglang/srt/speculative/eagle_verify.py::EagleVerify.verify
def verify(self, batch: ScheduleBatch, draft_tokens) -> GenerationBatchResult:
    batch.forward_mode = ForwardMode.TARGET_VERIFY
    batch.input_ids = draft_tokens
    result = self.target_worker.forward_batch_generation(batch, is_verify=True)
    logits_output = result.logits_output  # expect: SPM103
    batch.spec_info = logits_output
    return GenerationBatchResult(logits_output=logits_output)
