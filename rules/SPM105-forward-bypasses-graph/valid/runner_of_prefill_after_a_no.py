# file: sglang/srt/model_executor/piecewise_cuda_graph_runner.py
from sglang.srt.model_executor.forward_batch_info import ForwardBatch


class PiecewiseCudaGraphRunner:
    def __init__(self, model_runner):
        self.model_runner = model_runner

    def can_run(self, forward_batch: ForwardBatch):
        return forward_batch.batch_size <= 1

    def replay(self, forward_batch: ForwardBatch):
        return self.model_runner.model.forward(
            forward_batch.input_ids, forward_batch.positions, forward_batch
        )

# file: sglang/srt/model_executor/model_runner.py
from dataclasses import dataclass

from sglang.srt.layers.attention.triton_backend import TritonAttnBackend
from sglang.srt.model_executor.cuda_graph_runner import CudaGraphRunner
from sglang.srt.model_executor.forward_batch_info import ForwardBatch
from sglang.srt.model_executor.piecewise_cuda_graph_runner import PiecewiseCudaGraphRunner


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
        self.piecewise_cuda_graph_runner = PiecewiseCudaGraphRunner(self)
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
        out, can_run_graph = self.forward_extend(forward_batch)
        return ModelRunnerOutput(out, can_run_graph)

    def forward_extend(self, forward_batch: ForwardBatch):
        can_run_graph = (
            self.piecewise_cuda_graph_runner is not None
            and self.piecewise_cuda_graph_runner.can_run(forward_batch)
        )
        if can_run_graph:
            return self.piecewise_cuda_graph_runner.replay(forward_batch), can_run_graph
        self.attn_backend.init_forward_metadata(forward_batch)
        out = self.model.forward(forward_batch.input_ids, forward_batch.positions, forward_batch)
        return out, can_run_graph

# file: sglang/srt/speculative/eagle_verify.py
from sglang.srt.managers.schedule_batch import ScheduleBatch
from sglang.srt.managers.utils import GenerationBatchResult
from sglang.srt.model_executor.forward_batch_info import ForwardBatch, ForwardMode


class EagleVerify:
    def verify(self, batch: ScheduleBatch, draft_tokens) -> GenerationBatchResult:
        batch.forward_mode = ForwardMode.TARGET_VERIFY
        batch.input_ids = draft_tokens
        forward_batch = ForwardBatch.init_new(batch, self.target_worker.model_runner)
        out = self.target_worker.model_runner.forward(forward_batch)
        batch.spec_info = out.logits_output
        return GenerationBatchResult(out.logits_output, can_run_cuda_graph=out.can_run_graph)
