# file: sglang/srt/model_executor/model_runner.py
from dataclasses import dataclass

from sglang.srt.layers.attention.triton_backend import TritonAttnBackend
from sglang.srt.model_executor.cuda_graph_runner import CudaGraphRunner
from sglang.srt.model_executor.forward_batch_info import ForwardBatch


@dataclass
class ModelRunnerOutput:
    logits_output: object
    can_run_graph: bool


class ModelRunner:
    def __init__(self, server_args, is_draft_worker: bool):
        self.server_args = server_args
        self.is_draft_worker = is_draft_worker
        self.model = load_model(server_args)
        self.attn_backend = TritonAttnBackend(self)
        self.graph_runner = None
        if not server_args.disable_cuda_graph:
            self.graph_runner = CudaGraphRunner(self)

    def forward(self, forward_batch: ForwardBatch) -> ModelRunnerOutput:
        can_run_graph = bool(
            forward_batch.forward_mode.is_cuda_graph()
            and self.graph_runner
            and self.graph_runner.can_run(forward_batch)
        )
        if can_run_graph:
            return ModelRunnerOutput(self.graph_runner.replay(forward_batch), can_run_graph)
        self.attn_backend.init_forward_metadata(forward_batch)
        logits_output = self.model.forward(
            forward_batch.input_ids, forward_batch.positions, forward_batch
        )
        return ModelRunnerOutput(logits_output, can_run_graph)

# file: sglang/srt/speculative/eagle_draft_cuda_graph_runner.py
import bisect

import torch

from sglang.srt.model_executor.forward_batch_info import ForwardBatch, ForwardMode


class EAGLEDraftCudaGraphRunner:
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

    def can_run(self, forward_batch: ForwardBatch):
        return forward_batch.batch_size <= self.max_bs

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

    def replay(self, forward_batch: ForwardBatch):
        raw_bs = forward_batch.batch_size
        bs = self.capture_bs[bisect.bisect_left(self.capture_bs, raw_bs)]
        self.input_ids[:raw_bs].copy_(forward_batch.input_ids)
        self.positions[:raw_bs].copy_(forward_batch.positions)
        self.out_cache_loc[:raw_bs].copy_(forward_batch.out_cache_loc)
        self.seq_lens[:raw_bs].copy_(forward_batch.seq_lens)
        self.graphs[bs].replay()
        return self.output_buffers[bs]

# file: sglang/srt/speculative/eagle_draft.py
from sglang.srt.managers.schedule_batch import ScheduleBatch
from sglang.srt.model_executor.forward_batch_info import ForwardBatch, ForwardMode


class EagleDraft:
    def forward_draft_prefill(self, batch: ScheduleBatch):
        forward_batch = ForwardBatch.init_new(batch, self.draft_worker.model_runner)
        self.draft_worker.model_runner.forward(forward_batch)

    def draft(self, batch: ScheduleBatch):  # expect: SPM107
        batch.forward_mode = ForwardMode.DECODE
        forward_batch = ForwardBatch.init_new(batch, self.draft_worker.model_runner)
        can_cuda_graph = self.cuda_graph_runner and self.cuda_graph_runner.can_run(forward_batch)
        if can_cuda_graph:
            return self.cuda_graph_runner.replay(forward_batch)
        return self.draft_forward(forward_batch)

    def draft_forward(self, forward_batch: ForwardBatch):
        tokens = []
        for step in range(self.speculative_num_steps):
            out = self.draft_worker.model_runner.forward(forward_batch)
            tokens.append(out.logits_output)
        return tokens

    def draft_extend(self, batch: ScheduleBatch):
        batch.forward_mode = ForwardMode.DRAFT_EXTEND
        forward_batch = ForwardBatch.init_new(batch, self.draft_worker.model_runner)
        can_cuda_graph = (
            self.cuda_graph_runner_for_draft_extend
            and self.cuda_graph_runner_for_draft_extend.can_run(forward_batch)
        )
        if can_cuda_graph:
            return self.cuda_graph_runner_for_draft_extend.replay(forward_batch)
        return self.draft_worker.model_runner.forward(forward_batch).logits_output
