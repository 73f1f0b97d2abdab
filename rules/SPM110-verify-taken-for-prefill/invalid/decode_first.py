# file: sglang/srt/managers/profiler.py
from sglang.srt.managers.schedule_batch import ScheduleBatch
from sglang.srt.model_executor.forward_batch_info import ForwardMode


class Profiler:
    def step(self, batch: ScheduleBatch):
        if batch.forward_mode.is_decode():
            self.decode += 1
        elif batch.forward_mode.is_prefill():  # expect: SPM110
            self.prefill += 1
