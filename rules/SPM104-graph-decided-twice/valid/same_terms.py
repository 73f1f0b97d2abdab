# function: sglang/srt/speculative/eagle_verify.py::EagleVerify.verify
def verify(self, batch: ScheduleBatch, draft_tokens) -> GenerationBatchResult:
    batch.forward_mode = ForwardMode.TARGET_VERIFY
    batch.input_ids = draft_tokens
    forward_batch = ForwardBatch.init_new(batch, self.target_worker.model_runner)
    runner = self.target_worker.model_runner.graph_runner
    can_run_cuda_graph = bool(forward_batch.forward_mode.is_cuda_graph() and runner and runner.can_run(forward_batch))
    if can_run_cuda_graph:
        forward_batch.spec_info = draft_tokens
    result = self.target_worker.forward_batch_generation(batch, forward_batch, is_verify=True)

    batch.spec_info = result.logits_output
    return GenerationBatchResult(
        logits_output=result.logits_output,
        can_run_cuda_graph=result.can_run_cuda_graph,
    )
