# function: sglang/srt/speculative/eagle_verify.py::EagleVerify.verify
def verify(self, batch: ScheduleBatch, draft_tokens) -> GenerationBatchResult:
    batch.forward_mode = ForwardMode.TARGET_VERIFY
    batch.input_ids = draft_tokens
    forward_batch = ForwardBatch.init_new(batch, self.target_worker.model_runner)
    can_run_cuda_graph = self.prepare(forward_batch)
    result: GenerationBatchResult = self.target_worker.forward_batch_generation(
        batch, forward_batch, is_verify=True
    )
    batch.spec_info = result.logits_output  # expect: SPM103
    return GenerationBatchResult(
        logits_output=result.logits_output,
        can_run_cuda_graph=can_run_cuda_graph,
    )

# function: sglang/srt/speculative/eagle_verify.py::EagleVerify.prepare
def prepare(self, forward_batch: ForwardBatch):
    runner = self.target_worker.model_runner.graph_runner
    return bool(runner and runner.can_run(forward_batch))
