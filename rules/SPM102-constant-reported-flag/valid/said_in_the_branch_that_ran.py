# function: sglang/srt/model_executor/model_runner.py::ModelRunner.forward
def forward(self, forward_batch: ForwardBatch) -> ModelRunnerOutput:
    if self.graph_runner and self.graph_runner.can_run(forward_batch):
        logits_output = self.graph_runner.replay(forward_batch)
        can_run_graph = True
    else:
        logits_output = self.model.forward(
            forward_batch.input_ids, forward_batch.positions, forward_batch
        )
        can_run_graph = False
    return ModelRunnerOutput(logits_output, can_run_graph)
