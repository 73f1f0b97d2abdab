# function: sglang/srt/model_executor/model_runner.py::ModelRunner.__init__
def __init__(self, server_args, is_draft_worker: bool):
    self.server_args = server_args
    self.is_draft_worker = is_draft_worker
    self.model = load_model(server_args)
    self.attn_backend = TritonAttnBackend(self)
    self.piecewise_cuda_graph_runner = PiecewiseCudaGraphRunner(self)
    self.graph_runner = None
    if not server_args.disable_cuda_graph:
        self.graph_runner = CudaGraphRunner(self)

# function: sglang/srt/model_executor/model_runner.py::ModelRunner.forward
def forward(self, forward_batch: ForwardBatch) -> ModelRunnerOutput:
    can_run_graph = bool(
        forward_batch.forward_mode.is_cuda_graph()
        and self.graph_runner
        and self.graph_runner.can_run(forward_batch)
    )
    if can_run_graph:
        return ModelRunnerOutput(self.graph_runner.replay(forward_batch), can_run_graph)
    out, can_run_graph = self.forward_extend(forward_batch)
    return ModelRunnerOutput(out, can_run_graph)

# function: sglang/srt/model_executor/model_runner.py::ModelRunner.forward_extend
def forward_extend(self, forward_batch: ForwardBatch):
    can_run_graph = (
        self.piecewise_cuda_graph_runner is not None
        and self.piecewise_cuda_graph_runner.can_run(forward_batch)
    )
    if can_run_graph:
        return self.piecewise_cuda_graph_runner.replay(forward_batch), can_run_graph
    self.attn_backend.init_forward_metadata(forward_batch)
    out = self.model.forward(forward_batch.input_ids, forward_batch.positions, forward_batch)
    return out, can_run_graph

# function: sglang/srt/speculative/eagle_verify.py::EagleVerify.verify
def verify(self, batch: ScheduleBatch, draft_tokens) -> GenerationBatchResult:
    batch.forward_mode = ForwardMode.TARGET_VERIFY
    batch.input_ids = draft_tokens
    forward_batch = ForwardBatch.init_new(batch, self.target_worker.model_runner)
    logits_output, can_run_graph = self.target_worker.model_runner.forward_extend(  # expect: SPM105
        forward_batch
    )
    batch.spec_info = logits_output
    return GenerationBatchResult(logits_output, can_run_cuda_graph=can_run_graph)
