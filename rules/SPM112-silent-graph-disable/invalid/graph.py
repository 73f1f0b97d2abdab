# function: sglang/srt/server_args.py::ServerArgs.__post_init__
def __post_init__(self):
    if self.enable_dp_attention:
        self.disable_cuda_graph = True  # expect: SPM112
