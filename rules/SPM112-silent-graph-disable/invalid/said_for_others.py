# function: sglang/srt/server_args.py::ServerArgs.__post_init__
def __post_init__(self):
    if self.speculative_eagle_topk > 1:
        self.disable_overlap_schedule = True  # expect: SPM112
    if self.speculative_algorithm == "NGRAM":
        if self.disable_overlap_schedule:
            logger.warning("overlap is off with NGRAM")
