import logging
from sglang.srt.speculative.eagle_draft_cuda_graph_runner import EAGLEDraftCudaGraphRunner
from sglang.srt.speculative.eagle_draft_extend_cuda_graph_runner import EAGLEDraftExtendCudaGraphRunner

logger = logging.getLogger(__name__)

class EagleGraphs:
    def init_cuda_graphs(self):
        self.cuda_graph_runner = None
        self.cuda_graph_runner_for_draft_extend = None
        if self.server_args.disable_cuda_graph:
            return
        Device2DraftCudaGraphRunner = {
            "cuda": EAGLEDraftCudaGraphRunner,
            "musa": EAGLEDraftCudaGraphRunner,
        }
        self.cuda_graph_runner = Device2DraftCudaGraphRunner[self.device](self)
        Device2ExtendCudaGraphRunner = {
            "cuda": EAGLEDraftExtendCudaGraphRunner,
            "musa": EAGLEDraftExtendCudaGraphRunner,
        }
        self.cuda_graph_runner_for_draft_extend = Device2ExtendCudaGraphRunner[self.device](self)
