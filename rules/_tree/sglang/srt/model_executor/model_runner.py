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
        self.graph_runner = None
        if not server_args.disable_cuda_graph and not is_draft_worker:
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
