# file: sglang/srt/speculative/eagle_draft.py
import torch

from sglang.srt.managers.schedule_batch import ScheduleBatch
from sglang.srt.model_executor.forward_batch_info import ForwardBatch, ForwardMode


class EagleDraft:
    def forward_draft_prefill(self, batch: ScheduleBatch):
        forward_batch = ForwardBatch.init_new(batch, self.draft_worker.model_runner)
        self.draft_worker.model_runner.forward(forward_batch)

    def draft(self, batch: ScheduleBatch):
        batch.forward_mode = ForwardMode.DECODE
        forward_batch = ForwardBatch.init_new(batch, self.draft_worker.model_runner)
        can_cuda_graph: bool = False  # expect: SPM101
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
