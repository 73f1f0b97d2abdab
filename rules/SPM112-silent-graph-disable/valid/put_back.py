# function: sglang/srt/speculative/eagle_graphs.py::EagleGraphs.init_cuda_graphs
def init_cuda_graphs(self):
    self.cuda_graph_runner = None
    self.cuda_graph_runner_for_draft_extend = EAGLEDraftExtendCudaGraphRunner(self)
    backup = self.server_args.disable_cuda_graph
    self.server_args.disable_cuda_graph = True
    self.cuda_graph_runner = EAGLEDraftCudaGraphRunner(self)
    self.server_args.disable_cuda_graph = backup
