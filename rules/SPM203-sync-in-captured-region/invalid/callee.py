# function: sglang/srt/speculative/eagle_draft_cuda_graph_runner.py::EAGLEDraftCudaGraphRunner.capture_one_batch_size
def capture_one_batch_size(self, bs: int):
    graph = torch.cuda.CUDAGraph()
    forward_batch = ForwardBatch(
        forward_mode=ForwardMode.DECODE,
        batch_size=bs,
        input_ids=self.input_ids[:bs],
        seq_lens=self.seq_lens[:bs],
        out_cache_loc=self.out_cache_loc[:bs],
        positions=self.positions[:bs],
    )

    def run_once():
        self.plan(forward_batch)

        return self.model_runner.model.forward(
            forward_batch.input_ids, forward_batch.positions, forward_batch
        )

    run_once()
    run_once()
    with torch.cuda.graph(graph):
        out = run_once()
    return graph, out

# function: sglang/srt/speculative/eagle_draft_cuda_graph_runner.py::EAGLEDraftCudaGraphRunner.plan
def plan(self, forward_batch: ForwardBatch):
    self.lengths = forward_batch.seq_lens.tolist()  # expect: SPM203
