import bisect

import torch

from sglang.srt.model_executor.forward_batch_info import ForwardBatch, ForwardMode, get_batch_sizes_to_capture


class CudaGraphRunner:
    def __init__(self, model_runner):
        self.model_runner = model_runner
        self.graphs = {}
        self.output_buffers = {}
        self.capture_bs = get_batch_sizes_to_capture(model_runner)
        self.max_bs = max(self.capture_bs)
        self.capture_forward_mode = ForwardMode.DECODE
        self.num_tokens_per_bs = 1
        if not model_runner.is_draft_worker:
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

    def can_run(self, forward_batch: ForwardBatch):
        return forward_batch.batch_size <= self.max_bs

    def capture_one_batch_size(self, bs: int):
        graph = torch.cuda.CUDAGraph()
        forward_batch = ForwardBatch(
            forward_mode=self.capture_forward_mode,
            batch_size=bs,
            input_ids=self.input_ids[: bs * self.num_tokens_per_bs],
            seq_lens=self.seq_lens[:bs],
            out_cache_loc=self.out_cache_loc[: bs * self.num_tokens_per_bs],
            positions=self.positions[: bs * self.num_tokens_per_bs],
        )
        self.model_runner.attn_backend.init_forward_metadata_capture_cuda_graph(bs, forward_batch.seq_lens)

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
        raw_num_token = raw_bs * self.num_tokens_per_bs
        self.input_ids[:raw_num_token].copy_(forward_batch.input_ids)
        self.positions[:raw_num_token].copy_(forward_batch.positions)
        self.out_cache_loc[:raw_num_token].copy_(forward_batch.out_cache_loc)
        self.seq_lens[:raw_bs].copy_(forward_batch.seq_lens)
        self.model_runner.attn_backend.init_forward_metadata_replay_cuda_graph(bs, self.seq_lens)
        self.graphs[bs].replay()
        return self.output_buffers[bs]
