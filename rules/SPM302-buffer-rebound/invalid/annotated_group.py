# file: sglang/srt/speculative/eagle_draft_cuda_graph_runner.py
import bisect

import torch

from sglang.srt.model_executor.forward_batch_info import ForwardBatch, ForwardMode


class DraftBuffers:
    @classmethod
    def create(cls, max_bs: int):
        with torch.device("cuda"):
            buffers = cls()
            buffers.input_ids = torch.zeros((max_bs,), dtype=torch.int64)
            buffers.positions = torch.zeros((max_bs,), dtype=torch.int64)
            buffers.out_cache_loc = torch.zeros((max_bs,), dtype=torch.int64)
            buffers.seq_lens = torch.ones((max_bs,), dtype=torch.int32)
        return buffers


class EAGLEDraftCudaGraphRunner:
    def __init__(self, eagle_worker):
        self.eagle_worker = eagle_worker
        self.model_runner = eagle_worker.draft_worker.model_runner
        self.graphs = {}
        self.output_buffers = {}
        self.capture_bs = [1, 2, 4, 8]
        self.max_bs = max(self.capture_bs)
        self.buffers = DraftBuffers.create(self.max_bs)
        for bs in self.capture_bs:
            self.graphs[bs], self.output_buffers[bs] = self.capture_one_batch_size(bs)

    def can_run(self, forward_batch: ForwardBatch):
        return forward_batch.batch_size <= self.max_bs

    def capture_one_batch_size(self, bs: int):
        graph = torch.cuda.CUDAGraph()
        buffers: DraftBuffers = self.buffers
        forward_batch = ForwardBatch(
            forward_mode=ForwardMode.DECODE,
            batch_size=bs,
            input_ids=buffers.input_ids[:bs],
            seq_lens=buffers.seq_lens[:bs],
            out_cache_loc=buffers.out_cache_loc[:bs],
            positions=buffers.positions[:bs],
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
        buffers = self.buffers
        raw_bs = forward_batch.batch_size
        bs = self.capture_bs[bisect.bisect_left(self.capture_bs, raw_bs)]
        buffers.input_ids[:raw_bs].copy_(forward_batch.input_ids)
        buffers.positions = forward_batch.positions  # expect: SPM302
        buffers.out_cache_loc[:raw_bs].copy_(forward_batch.out_cache_loc)
        buffers.seq_lens[:raw_bs].copy_(forward_batch.seq_lens)
        self.graphs[bs].replay()
        return self.output_buffers[bs]
