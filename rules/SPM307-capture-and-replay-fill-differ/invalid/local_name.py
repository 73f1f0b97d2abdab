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
    self.num_tokens_gpu.copy_(torch.tensor([bs] * 2, dtype=torch.int32))

    def run_once():
        return self.model_runner.model.forward(
            forward_batch.input_ids, forward_batch.positions, forward_batch
        )

    run_once()
    with torch.cuda.graph(graph):
        out = run_once()
    return graph, out
# function: sglang/srt/speculative/eagle_draft_cuda_graph_runner.py::EAGLEDraftCudaGraphRunner.replay
def replay(self, forward_batch: ForwardBatch):
    raw_bs = forward_batch.batch_size
    bs = self.capture_bs[bisect.bisect_left(self.capture_bs, raw_bs)]
    num_tokens = bs * self.width
    self.num_tokens_gpu.fill_(num_tokens)  # expect: SPM307
    self.seq_lens[:raw_bs].copy_(forward_batch.seq_lens)
    self.graphs[bs].replay()
    return self.output_buffers[bs]
