# function: sglang/srt/speculative/eagle_draft_cuda_graph_runner.py::EAGLEDraftCudaGraphRunner.__init__
def __init__(self, eagle_worker):
    self.eagle_worker = eagle_worker
    self.model_runner = eagle_worker.draft_worker.model_runner
    self.graphs = {}
    self.output_buffers = {}
    self.capture_bs = [1, 2, 4, 8]
    self.max_bs = max(self.capture_bs)
    with torch.device("cuda"):
        self.input_ids = torch.zeros((self.max_bs,), dtype=torch.int64)
        self.positions = torch.zeros((self.max_bs,), dtype=torch.int64)
        self.out_cache_loc = torch.zeros((self.max_bs,), dtype=torch.int64)
        self.seq_lens = torch.ones((self.max_bs,), dtype=torch.int32)
    try:
        self.all_of_them()
    except RuntimeError:  # expect: SPM111
        self.max_bs = 0

# function: sglang/srt/speculative/eagle_draft_cuda_graph_runner.py::EAGLEDraftCudaGraphRunner.all_of_them
def all_of_them(self):
    for bs in self.capture_bs:
        self.graphs[bs], self.output_buffers[bs] = self.capture_one_batch_size(bs)
