# file: sglang/srt/server_args.py
import logging
from dataclasses import dataclass

logger = logging.getLogger(__name__)


@dataclass
class ServerArgs:
    disable_cuda_graph: bool = False
    disable_overlap_schedule: bool = False
    enable_dp_attention: bool = False
    speculative_algorithm: str = None
    speculative_num_draft_tokens: int = 4
    speculative_num_steps: int = 3
    speculative_eagle_topk: int = 1

    def __post_init__(self):
        if self.speculative_num_steps == 0:
            self.speculative_algorithm = None  # expect: SPM112
