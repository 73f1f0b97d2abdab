# function: sglang/srt/model_executor/cuda_graph_runner.py::CudaGraphRunner.__init__
def __init__(self, model_runner, verifies: bool):
    self.model_runner = model_runner
    self.graphs = {}
    self.output_buffers = {}
    self.capture_bs = [1, 2, 4, 8]
    self.max_bs = max(self.capture_bs)
    self.capture_forward_mode = ForwardMode.DECODE
    self.num_tokens_per_bs = 1
    if verifies:
        self.capture_forward_mode = ForwardMode.TARGET_VERIFY
        self.num_tokens_per_bs = model_runner.server_args.speculative_num_draft_tokens
    tokens = self.max_bs * self.num_tokens_per_bs
    with torch.device("cuda"):
        self.input_ids = torch.zeros((tokens,), dtype=torch.int64)
        self.positions = torch.zeros((tokens,), dtype=torch.int64)
        self.out_cache_loc = torch.zeros((tokens,), dtype=torch.int64)
        self.seq_lens = torch.ones((self.max_bs,), dtype=torch.int32)
    for bs in self.capture_bs:
        self.graphs[bs], self.output_buffers[bs] = self.capture_one_batch_size(bs)

# function: sglang/srt/model_executor/model_runner.py::ModelRunner.__init__
def __init__(self, server_args, is_draft_worker: bool):
    self.server_args = server_args
    self.is_draft_worker = is_draft_worker
    self.model = load_model(server_args)
    self.attn_backend = TritonAttnBackend(self)
    self.graph_runner = None
    self.plain_graph_runner = None
    if not server_args.disable_cuda_graph and not is_draft_worker:
        self.graph_runner = CudaGraphRunner(self, verifies=True)
        self.plain_graph_runner = CudaGraphRunner(self, verifies=False)

# function: sglang/srt/model_executor/model_runner.py::ModelRunner.forward
def forward(self, forward_batch: ForwardBatch) -> ModelRunnerOutput:
    plain = forward_batch.forward_mode.is_decode()
    runner = self.plain_graph_runner if plain else self.graph_runner
    can_run_graph = bool(
        forward_batch.forward_mode.is_cuda_graph()
        and runner
        and runner.can_run(forward_batch)
    )
    if can_run_graph:
        return ModelRunnerOutput(runner.replay(forward_batch), can_run_graph)
    self.attn_backend.init_forward_metadata(forward_batch)
    logits_output = self.model.forward(
        forward_batch.input_ids, forward_batch.positions, forward_batch
    )
    return ModelRunnerOutput(logits_output, can_run_graph)

# function: sglang/srt/speculative/eagle_verify.py::EagleVerify.verify
def verify(self, batch: ScheduleBatch, draft_tokens) -> GenerationBatchResult:
    batch.forward_mode = ForwardMode.TARGET_VERIFY
    batch.input_ids = draft_tokens
    if len(batch.reqs) > 32:
        batch.forward_mode = ForwardMode.DECODE
        return self.target_worker.forward_batch_generation(batch)
    result = self.target_worker.forward_batch_generation(batch, is_verify=True)

    batch.spec_info = result.logits_output
    return GenerationBatchResult(
        logits_output=result.logits_output,
        can_run_cuda_graph=result.can_run_cuda_graph,
    )
