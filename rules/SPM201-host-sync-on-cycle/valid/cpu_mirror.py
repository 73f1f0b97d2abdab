# function: sglang/srt/speculative/eagle_verify.py::EagleVerify.verify
def verify(self, batch: ScheduleBatch, draft_tokens) -> GenerationBatchResult:
    batch.forward_mode = ForwardMode.TARGET_VERIFY
    batch.input_ids = draft_tokens
    result = self.target_worker.forward_batch_generation(batch, is_verify=True)
    batch.seq_lens_sum = batch.seq_lens_cpu.sum().item()

    batch.spec_info = result.logits_output
    return GenerationBatchResult(
        logits_output=result.logits_output,
        can_run_cuda_graph=result.can_run_cuda_graph,
    )
