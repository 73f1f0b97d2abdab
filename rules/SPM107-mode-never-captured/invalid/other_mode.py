# function: sglang/srt/model_executor/cuda_graph_runner.py::CudaGraphRunner.__init__
def __init__(self, model_runner):
    self.model_runner = model_runner
    self.graphs = {}
    self.output_buffers = {}
    self.capture_bs = [1, 2, 4, 8]
    self.max_bs = max(self.capture_bs)
    self.capture_forward_mode = ForwardMode.DECODE  # expect: SPM107
    self.num_tokens_per_bs = 1
    if not model_runner.is_draft_worker:
        self.num_tokens_per_bs = model_runner.server_args.speculative_num_draft_tokens
    tokens = self.max_bs * self.num_tokens_per_bs
    with torch.device("cuda"):
        self.input_ids = torch.zeros((tokens,), dtype=torch.int64)
        self.positions = torch.zeros((tokens,), dtype=torch.int64)
        self.out_cache_loc = torch.zeros((tokens,), dtype=torch.int64)
        self.seq_lens = torch.ones((self.max_bs,), dtype=torch.int32)
    for bs in self.capture_bs:
        self.graphs[bs], self.output_buffers[bs] = self.capture_one_batch_size(bs)
# function: sglang/srt/speculative/eagle_verify.py::EagleVerify.verify
def verify(self, batch: ScheduleBatch, draft_tokens) -> GenerationBatchResult:
    batch.forward_mode = ForwardMode.TARGET_VERIFY
    batch.input_ids = draft_tokens
    result = self.target_worker.forward_batch_generation(batch, is_verify=True)
    batch.spec_info = result.logits_output
    return GenerationBatchResult(
        logits_output=result.logits_output,
        can_run_cuda_graph=result.can_run_cuda_graph,
    )
# function: sglang/srt/speculative/ngram_worker.py::NGRAMWorker.forward_batch_generation
def forward_batch_generation(self, batch: ScheduleBatch) -> GenerationBatchResult:
    if not batch.forward_mode.is_extend():
        batch.forward_mode = ForwardMode.TARGET_VERIFY
    result = self.target_worker.forward_batch_generation(
        batch, is_verify=batch.forward_mode.is_target_verify()
    )
    return GenerationBatchResult(
        logits_output=result.logits_output,
        can_run_cuda_graph=result.can_run_cuda_graph,
    )
