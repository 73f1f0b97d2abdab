# function: sglang/srt/managers/scheduler.py::Scheduler.run_batch
def run_batch(self, batch: ScheduleBatch):
    return self.model_worker.forward_batch_generation(batch)
