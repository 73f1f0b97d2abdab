import logging
from dataclasses import dataclass
logger = logging.getLogger(__name__)
@dataclass
class ServerArgs:
    disable_cuda_graph: bool = False
    disable_overlap_schedule: bool = False
    enable_dp_attention: bool = False
    speculative_num_draft_tokens: int = 4
    speculative_num_steps: int = 3
    speculative_eagle_topk: int = 1
    speculative_algorithm: str = None
    device: str = "cuda"
