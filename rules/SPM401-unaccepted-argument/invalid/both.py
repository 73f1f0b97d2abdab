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
