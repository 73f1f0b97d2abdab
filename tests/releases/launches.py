"""Launches of real releases: a Llama target, its draft, and what the launch makes of them."""

from __future__ import annotations

from functools import cache

from specmap.scan.launch.evaluator import Evaluator
from specmap.scan.launch.library import Library
from specmap.scan.launch.tables import Inputs
from specmap.scan.vocabulary import Vocabulary, load_vocabulary
from tests.releases.trees import checkout_of

# Llama 3.1 8B, as its config.json on the model hub says.
LLAMA: dict[str, object] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
    "eos_token_id": 128001,
}
DRAFT: dict[str, object] = {
    **LLAMA,
    "architectures": ["LlamaForCausalLMEagle3"],
    "num_hidden_layers": 1,
}
# DeepSeek V3, as its config.json on the model hub says.
DEEPSEEK: dict[str, object] = {
    "architectures": ["DeepseekV3ForCausalLM"],
    "model_type": "deepseek_v3",
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "num_hidden_layers": 61,
    "num_nextn_predict_layers": 1,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "first_k_dense_replace": 3,
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "vocab_size": 129280,
    "max_position_embeddings": 163840,
    "torch_dtype": "bfloat16",
}
# What nvidia-smi reports for 80 GB and 141 GB cards.
MIB = {80: 81559, 141: 143771}


@cache
def library_of(release: str) -> Library:
    """Return the syntax trees of a release, shared by all evaluations."""
    return Library(checkout_of(release).root, vocabulary().package)


@cache
def vocabulary() -> Vocabulary:
    """Return the names as they ship."""
    return load_vocabulary()


def evaluate(release: str, inputs: Inputs) -> Evaluator:
    """Evaluate a launch of a release."""
    library = library_of(release)
    return Evaluator(library.root, vocabulary(), inputs, library)


def launch(
    release: str, given: dict[str, object], *, gigabytes: int = 80, sm: int = 90
) -> Evaluator:
    """Evaluate a launch of Llama with the given settings."""
    values = dict(given)
    values.setdefault("model_path", "meta-llama/Llama-3.1-8B-Instruct")
    if values.get("speculative_algorithm") in ("EAGLE", "EAGLE3", "STANDALONE"):
        values.setdefault("speculative_draft_model_path", "someone/draft")
    inputs = Inputs(
        values=values,
        gpu_memory_mib=MIB[gigabytes],
        sm=sm,
        model_config=LLAMA,
        draft_config=DRAFT,
    )
    return evaluate(release, inputs)
