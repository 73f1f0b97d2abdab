# function: sglang/srt/speculative/eagle_graphs.py::EagleGraphs.init_cuda_graphs
def init_cuda_graphs(self):
    self.cuda_graph_runner = None
    self.cuda_graph_runner_for_draft_extend = EAGLEDraftExtendCudaGraphRunner(self)
    try:
        self.cuda_graph_runner = EAGLEDraftCudaGraphRunner(self)
    except Exception:  # expect: SPM111
        self.cuda_graph_runner = None
