# function: sglang/srt/server_args.py::ServerArgs.__post_init__
def __post_init__(self):
    reason = None
    if self.speculative_eagle_topk > 1:
        self.disable_overlap_schedule = True
        reason = "top-k above 1"
    if self.disable_overlap_schedule:
        logger.warning("overlap is off: %s", reason or "as asked")
