# function: sglang/srt/server_args.py::ServerArgs.__post_init__
def __post_init__(self):
    if self.device == "npu":
        self.disable_overlap_schedule = True
