# file: sglang/srt/speculative/ngram_worker.py
from sglang.srt.managers.schedule_batch import ScheduleBatch
from sglang.srt.managers.tp_worker import TpModelWorker
from sglang.srt.managers.utils import GenerationBatchResult
from sglang.srt.model_executor.forward_batch_info import ForwardMode


class NGRAMWorker:
    def __init__(self, server_args, target_worker: TpModelWorker):
        self.target_worker = target_worker

    def forward_batch_generation(self, batch: ScheduleBatch) -> GenerationBatchResult:
        if batch.forward_mode.is_extend():
            return self.target_worker.forward_batch_generation(batch)
        batch.forward_mode = ForwardMode.TARGET_VERIFY
        result = self.target_worker.forward_batch_generation(batch, is_verify=True)
        return GenerationBatchResult(
            logits_output=result.logits_output,
            can_run_cuda_graph=False,  # expect: SPM102
        )
