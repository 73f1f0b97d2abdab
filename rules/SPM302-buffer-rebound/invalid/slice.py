# function: sglang/srt/speculative/eagle_draft_cuda_graph_runner.py::EAGLEDraftCudaGraphRunner.replay
def replay(self, forward_batch: ForwardBatch):
    raw_bs = forward_batch.batch_size
    bs = self.capture_bs[bisect.bisect_left(self.capture_bs, raw_bs)]
    self.positions = forward_batch.positions[:raw_bs]  # expect: SPM302
    self.input_ids[:raw_bs].copy_(forward_batch.input_ids)
    self.positions[:raw_bs].copy_(forward_batch.positions)
    self.out_cache_loc[:raw_bs].copy_(forward_batch.out_cache_loc)
    self.seq_lens[:raw_bs].copy_(forward_batch.seq_lens)
    self.graphs[bs].replay()
    return self.output_buffers[bs]
