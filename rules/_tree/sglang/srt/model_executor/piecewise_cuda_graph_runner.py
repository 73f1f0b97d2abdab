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
