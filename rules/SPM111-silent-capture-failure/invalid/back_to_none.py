# file: sglang/srt/speculative/eagle_graphs.py
import logging

from sglang.srt.speculative.eagle_draft_cuda_graph_runner import EAGLEDraftCudaGraphRunner
from sglang.srt.speculative.eagle_draft_extend_cuda_graph_runner import (
    EAGLEDraftExtendCudaGraphRunner,
)

logger = logging.getLogger(__name__)


class EagleGraphs:
    def init_cuda_graphs(self):
        self.cuda_graph_runner = None
        self.cuda_graph_runner_for_draft_extend = EAGLEDraftExtendCudaGraphRunner(self)
        try:
            self.cuda_graph_runner = EAGLEDraftCudaGraphRunner(self)
        except Exception:  # expect: SPM111
            self.cuda_graph_runner = None
