from sglang.srt.managers.utils import GenerationBatchResult
from sglang.srt.model_executor.forward_batch_info import ForwardBatch
from sglang.srt.model_executor.model_runner import ModelRunner


class TpModelWorker:
    def __init__(self, server_args, is_draft_worker: bool = False):
        self.server_args = server_args
        self._model_runner = ModelRunner(server_args, is_draft_worker)

    @property
    def model_runner(self) -> ModelRunner:
        return self._model_runner

    def forward_batch_generation(self, batch, forward_batch=None, is_verify=False):
        if forward_batch is None:
            forward_batch = ForwardBatch.init_new(batch, self.model_runner)
        out = self.model_runner.forward(forward_batch)
        return GenerationBatchResult(
            logits_output=out.logits_output, can_run_cuda_graph=out.can_run_graph
        )
