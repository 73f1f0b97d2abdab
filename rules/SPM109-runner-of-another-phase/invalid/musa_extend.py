# function: sglang/srt/speculative/eagle_graphs.py::EagleGraphs.init_cuda_graphs
def init_cuda_graphs(self):
    self.cuda_graph_runner = None
    self.cuda_graph_runner_for_draft_extend = None
    if self.server_args.disable_cuda_graph:
        return
    Device2DraftCudaGraphRunner = {
        "cuda": EAGLEDraftCudaGraphRunner,
        "xpu": EAGLEDraftCudaGraphRunner,
        "musa": EAGLEDraftCudaGraphRunner,
    }
    self.cuda_graph_runner = Device2DraftCudaGraphRunner[self.device](self)
    Device2ExtendCudaGraphRunner = {
        "cuda": EAGLEDraftExtendCudaGraphRunner,
        "xpu": EAGLEDraftExtendCudaGraphRunner,
        "musa": EAGLEDraftCudaGraphRunner,  # expect: SPM109
    }
    self.cuda_graph_runner_for_draft_extend = Device2ExtendCudaGraphRunner[self.device](self)
