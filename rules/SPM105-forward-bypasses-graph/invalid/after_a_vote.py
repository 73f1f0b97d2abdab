# function: sglang/srt/speculative/eagle_verify.py::EagleVerify.verify
def verify(self, batch: ScheduleBatch, draft_tokens) -> GenerationBatchResult:
    batch.forward_mode = ForwardMode.TARGET_VERIFY
    batch.input_ids = draft_tokens
    forward_batch = ForwardBatch.init_new(batch, self.target_worker.model_runner)
    if self.server_args.enable_dp_attention:
        forward_batch.can_run_dp_cuda_graph = False
    logits_output = self.target_worker.model_runner.model.forward(  # expect: SPM105
        forward_batch.input_ids, forward_batch.positions, forward_batch
    )
    return GenerationBatchResult(logits_output, can_run_cuda_graph=False)
