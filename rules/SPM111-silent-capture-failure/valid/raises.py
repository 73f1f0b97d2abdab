# function: sglang/srt/speculative/eagle_graphs.py::EagleGraphs.init_cuda_graphs
def init_cuda_graphs(self):
    self.cuda_graph_runner = None
    self.cuda_graph_runner_for_draft_extend = EAGLEDraftExtendCudaGraphRunner(self)
    try:
        self.cuda_graph_runner = EAGLEDraftCudaGraphRunner(self)
    except RuntimeError as error:
        raise RuntimeError("Capture cuda graph failed") from error
