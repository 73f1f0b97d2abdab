# function: sglang/srt/model_executor/model_runner.py::ModelRunner.forward
def forward(self, forward_batch: ForwardBatch) -> ModelRunnerOutput:
    can_run_graph = False  # expect: SPM101
    if can_run_graph:
        return ModelRunnerOutput(self.graph_runner.replay(forward_batch), can_run_graph)
    self.attn_backend.init_forward_metadata(forward_batch)
    logits_output = self.model.forward(
        forward_batch.input_ids, forward_batch.positions, forward_batch
    )
    return ModelRunnerOutput(logits_output, can_run_graph)
