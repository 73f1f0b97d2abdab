import bisect

import torch

from sglang.srt.model_executor.forward_batch_info import ForwardBatch, ForwardMode, get_batch_sizes_to_capture


class EAGLEDraftCudaGraphRunner:
    def __init__(self, eagle_worker):
        self.eagle_worker = eagle_worker
        self.model_runner = eagle_worker.draft_worker.model_runner
        self.graphs = {}
        self.output_buffers = {}
        self.capture_bs = get_batch_sizes_to_capture(self.model_runner)
        self.max_bs = max(self.capture_bs)
        with torch.device("cuda"):
            self.input_ids = torch.zeros((self.max_bs,), dtype=torch.int64)
            self.positions = torch.zeros((self.max_bs,), dtype=torch.int64)
            self.out_cache_loc = torch.zeros((self.max_bs,), dtype=torch.int64)
            self.seq_lens = torch.ones((self.max_bs,), dtype=torch.int32)
        for bs in self.capture_bs:
            self.graphs[bs], self.output_buffers[bs] = self.capture_one_batch_size(bs)

    def can_run(self, forward_batch: ForwardBatch):
        return forward_batch.batch_size <= self.max_bs

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
            return self.model_runner.model.forward(
                forward_batch.input_ids, forward_batch.positions, forward_batch
            )

        run_once()
        run_once()
        with torch.cuda.graph(graph):
            out = run_once()
        return graph, out

    def replay(self, forward_batch: ForwardBatch):
        raw_bs = forward_batch.batch_size
        bs = self.capture_bs[bisect.bisect_left(self.capture_bs, raw_bs)]
        self.input_ids[:raw_bs].copy_(forward_batch.input_ids)
        self.positions[:raw_bs].copy_(forward_batch.positions)
        self.out_cache_loc[:raw_bs].copy_(forward_batch.out_cache_loc)
        self.seq_lens[:raw_bs].copy_(forward_batch.seq_lens)
        self.graphs[bs].replay()
        return self.output_buffers[bs]
