# file: sglang/srt/managers/scheduler.py
from sglang.srt.managers.schedule_batch import ScheduleBatch
from sglang.srt.managers.tp_worker import TpModelWorker
from sglang.srt.server_args import ServerArgs
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm


class Scheduler:
    def __init__(self, server_args: ServerArgs):
        self.server_args = server_args
        self.spec_algorithm = SpeculativeAlgorithm.from_string(server_args.speculative_algorithm)
        self.tp_worker = TpModelWorker(server_args)
        if self.spec_algorithm.is_none():
            self.draft_worker = None
            self.model_worker = self.tp_worker
        else:
            worker_class = self.spec_algorithm.create_worker(server_args)
            self.draft_worker = worker_class(server_args, target_worker=self.tp_worker)
            self.model_worker = self.draft_worker

    def run_batch(self, batch: ScheduleBatch):
        return self.model_worker.forward_batch_generation(batch, pp_proxy_tensors=None)  # expect: SPM401
# file: sglang/srt/speculative/eagle_worker.py
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

    def forward_batch_generation(self, batch: ScheduleBatch, pp_proxy_tensors=None) -> GenerationBatchResult:
        if batch.forward_mode.is_extend() or batch.is_extend_in_batch:
            result = self.target_worker.forward_batch_generation(batch)
            self.forward_draft_prefill(batch)
            return result
        result = self.verify(batch, self.draft(batch))
        self.draft_extend(batch)
        return result
