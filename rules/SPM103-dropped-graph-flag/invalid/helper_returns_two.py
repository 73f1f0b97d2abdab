# function: sglang/srt/speculative/eagle_verify.py::EagleVerify.verify
def verify(self, batch: ScheduleBatch, draft_tokens) -> GenerationBatchResult:
    batch.forward_mode = ForwardMode.TARGET_VERIFY
    batch.input_ids = draft_tokens
    forward_batch = ForwardBatch.init_new(batch, self.target_worker.model_runner)
    can_run_cuda_graph = self.prepare(forward_batch)
    result, logits = self.run_pass(batch, forward_batch)
    batch.spec_info = result.logits_output  # expect: SPM103
    return GenerationBatchResult(
        logits_output=logits,
        can_run_cuda_graph=can_run_cuda_graph,
    )

# function: sglang/srt/speculative/eagle_verify.py::EagleVerify.run_pass
def run_pass(self, batch: ScheduleBatch, forward_batch: ForwardBatch):
    result = self.target_worker.forward_batch_generation(batch, forward_batch, is_verify=True)
    return result, result.logits_output

# function: sglang/srt/speculative/eagle_verify.py::EagleVerify.prepare
def prepare(self, forward_batch: ForwardBatch):
    runner = self.target_worker.model_runner.graph_runner
    return bool(runner and runner.can_run(forward_batch))
