# function: sglang/srt/model_executor/model_runner.py::ModelRunner.__init__
def __init__(self, server_args, is_draft_worker: bool):
    self.server_args = server_args
    self.is_draft_worker = is_draft_worker
    self.model = load_model(server_args)
    self.attn_backend = TritonAttnBackend(self)
    self.graph_runner = None
    if not server_args.disable_cuda_graph:
        self.graph_runner = CudaGraphRunner(self)

# function: sglang/srt/speculative/eagle_draft_cuda_graph_runner.py::EAGLEDraftCudaGraphRunner.__init__
def __init__(self, eagle_worker):
    self.eagle_worker = eagle_worker
    self.model_runner = eagle_worker.draft_worker.model_runner
    self.capture_forward_mode = ForwardMode.TARGET_VERIFY
    self.graphs = {}
    self.output_buffers = {}
    self.capture_bs = [1, 2, 4, 8]
    self.max_bs = max(self.capture_bs)
    with torch.device("cuda"):
        self.input_ids = torch.zeros((self.max_bs,), dtype=torch.int64)
        self.positions = torch.zeros((self.max_bs,), dtype=torch.int64)
        self.out_cache_loc = torch.zeros((self.max_bs,), dtype=torch.int64)
        self.seq_lens = torch.ones((self.max_bs,), dtype=torch.int32)
    for bs in self.capture_bs:
        self.graphs[bs], self.output_buffers[bs] = self.capture_one_batch_size(bs)

# function: sglang/srt/speculative/eagle_draft_cuda_graph_runner.py::EAGLEDraftCudaGraphRunner.capture_one_batch_size
def capture_one_batch_size(self, bs: int):
    graph = torch.cuda.CUDAGraph()
    forward_batch = ForwardBatch(
        forward_mode=self.capture_forward_mode,
        batch_size=bs,
        input_ids=self.input_ids[:bs],
        seq_lens=self.seq_lens[:bs],
        out_cache_loc=self.out_cache_loc[:bs],
        positions=self.positions[:bs],
    )

    def run_once():
        return self.model_runner.model.forward(
            forward_batch.input_ids, forward_batch.positions, forward_batch
        )

    run_once()
    run_once()
    with torch.cuda.graph(graph):
        out = run_once()
    return graph, out

# function: sglang/srt/speculative/eagle_draft.py::EagleDraft.draft
def draft(self, batch: ScheduleBatch):  # expect: SPM107
    batch.forward_mode = ForwardMode.DECODE
    forward_batch = ForwardBatch.init_new(batch, self.draft_worker.model_runner)
    can_cuda_graph = self.cuda_graph_runner and self.cuda_graph_runner.can_run(forward_batch)
    if can_cuda_graph:
        return self.cuda_graph_runner.replay(forward_batch)
    return self.draft_forward(forward_batch)
