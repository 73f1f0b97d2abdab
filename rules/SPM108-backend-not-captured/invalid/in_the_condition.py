# file: sglang/srt/layers/attention/sparse_backend.py
from sglang.srt.layers.attention.triton_backend import TritonAttnBackend
from sglang.srt.utils.common import is_hip

_is_hip = is_hip()


class SparseAttnBackend(TritonAttnBackend):
    def init_forward_metadata(self, forward_batch):
        if _is_hip:
            self.wave_size = 64
# file: sglang/srt/layers/attention/flash_backend.py
from sglang.srt.layers.attention.triton_backend import TritonAttnBackend


class FlashAttnBackend(TritonAttnBackend):
    pass
# file: sglang/srt/speculative/eagle_graphs.py
from sglang.srt.layers.attention.flash_backend import FlashAttnBackend
from sglang.srt.layers.attention.sparse_backend import SparseAttnBackend
from sglang.srt.speculative.eagle_draft_cuda_graph_runner import EAGLEDraftCudaGraphRunner
from sglang.srt.speculative.eagle_draft_extend_cuda_graph_runner import (
    EAGLEDraftExtendCudaGraphRunner,
)
from sglang.srt.utils.common import is_cuda, is_hip

_is_cuda = is_cuda()
_is_hip = is_hip()


class EagleGraphs:
    def init_cuda_graphs(self):
        Device2Extend = {
            "cuda": EAGLEDraftExtendCudaGraphRunner,
            "musa": EAGLEDraftExtendCudaGraphRunner,
        }
        self.cuda_graph_runner = EAGLEDraftCudaGraphRunner(self)
        self.cuda_graph_runner_for_draft_extend = None
        if (_is_cuda and isinstance(self.backend, SparseAttnBackend)) or (  # expect: SPM108
            _is_hip and isinstance(self.backend, FlashAttnBackend)
        ):
          self.cuda_graph_runner_for_draft_extend = Device2Extend[self.device](self)
