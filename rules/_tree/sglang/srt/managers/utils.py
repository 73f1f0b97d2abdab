from dataclasses import dataclass
from typing import Optional


@dataclass
class GenerationBatchResult:
    logits_output: object = None
    next_token_ids: object = None
    can_run_cuda_graph: bool = False
    next_draft_input: Optional[object] = None
