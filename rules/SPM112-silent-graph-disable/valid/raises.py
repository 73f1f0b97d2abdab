# function: sglang/srt/server_args.py::ServerArgs.__post_init__
def __post_init__(self):
    if self.speculative_eagle_topk > 1:
        raise ValueError("top-k above 1 needs the overlap schedule off")
