# function: sglang/srt/server_args.py::ServerArgs.__post_init__
def __post_init__(self):
    if self.speculative_num_steps == 0:
        self.speculative_algorithm = None  # expect: SPM112
