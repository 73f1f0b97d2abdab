# function: sglang/srt/server_args.py::ServerArgs.__post_init__
def __post_init__(self):
    if self.device == "cuda":
        self.disable_overlap_schedule = True  # expect: SPM112
    if self.disable_cuda_graph:
        logger.warning("no graphs")
