from sglang.srt.managers.schedule_batch import ScheduleBatch
from sglang.srt.managers.tp_worker import TpModelWorker
from sglang.srt.managers.utils import GenerationBatchResult
from sglang.srt.speculative.eagle_draft import EagleDraft
from sglang.srt.speculative.eagle_graphs import EagleGraphs
from sglang.srt.speculative.eagle_verify import EagleVerify


class EAGLEWorker(EagleVerify, EagleDraft, EagleGraphs):
    def __init__(self, server_args, target_worker: TpModelWorker):
        self.server_args = server_args
        self.device = "cuda"
        self.speculative_num_steps = server_args.speculative_num_steps
        self.target_worker = target_worker
        self.draft_worker = TpModelWorker(server_args, is_draft_worker=True)
        self.init_cuda_graphs()

    def forward_batch_generation(self, batch: ScheduleBatch) -> GenerationBatchResult:
        if batch.forward_mode.is_extend() or batch.is_extend_in_batch:
            result = self.target_worker.forward_batch_generation(batch)
            self.forward_draft_prefill(batch)
            return result
        draft_tokens = self.draft(batch)
        result = self.verify(batch, draft_tokens)
        self.draft_extend(batch)
        return result
