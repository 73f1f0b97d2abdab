"""Random launches: no crash, and a further fact never changes a definite answer.

``SPECMAP_RANDOM_LAUNCHES`` sets how many argument sets are tried for each release.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass

import pytest

from specmap.codemap.launch import Fact, LaunchFacts
from specmap.scan.launch.tables import Inputs
from tests.releases.launches import DRAFT, LLAMA, evaluate

pytestmark = pytest.mark.releases

COUNT = int(os.environ.get("SPECMAP_RANDOM_LAUNCHES", "16"))

VALUES: dict[str, list[object]] = {
    "speculative_algorithm": ["EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM", "DFLASH"],
    "speculative_num_steps": [1, 3, 5],
    "speculative_eagle_topk": [1, 4],
    "speculative_num_draft_tokens": [4, 8],
    "speculative_draft_model_path": ["someone/draft"],
    "speculative_attention_mode": ["decode"],
    "attention_backend": ["fa3", "triton", "flashinfer", "trtllm_mha", "torch_native", "flashmla"],
    "page_size": [1, 16, 64],
    "disable_overlap_schedule": [True],
    "disable_cuda_graph": [True],
    "max_running_requests": [2, 48, 300],
    "cuda_graph_max_bs": [2, 100],
    "cuda_graph_max_bs_decode": [2, 100],
    "cuda_graph_bs": [[1, 2, 4]],
    "tp_size": [1, 2, 8],
    "dp_size": [1, 2],
    "pp_size": [1, 2],
    "ep_size": [2],
    "enable_dp_attention": [True],
    "chunked_prefill_size": [-1, 2048],
    "disaggregation_mode": ["prefill", "decode"],
    "kv_cache_dtype": ["fp8_e4m3", "auto"],
    "quantization": ["fp8"],
    "moe_a2a_backend": ["deepep"],
    "enable_torch_compile": [True],
    "enable_two_batch_overlap": [True],
    "enable_deterministic_inference": [True],
    "enable_mixed_chunk": [True],
    "enable_lora": [True],
    "disable_radix_cache": [True],
    "device": ["cpu", "cuda"],
}
MODELS = [
    LLAMA,
    {**LLAMA, "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3"},
    {**LLAMA, "architectures": ["Qwen3NextForCausalLM"], "model_type": "qwen3_next"},
    {**LLAMA, "architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss"},
    {**LLAMA, "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3",
     "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
     "n_routed_experts": 256},
]  # fmt: skip
DRAFTS = [DRAFT, {**DRAFT, "architectures": ["Gemma4AssistantForCausalLM"]}]


@dataclass(frozen=True)
class Known:
    """What is known about one launch, the least first."""

    facts: LaunchFacts
    captured: Fact


def launch_fields(release: str) -> frozenset[str]:
    """Return the settings that a release has."""
    return frozenset(evaluate(release, Inputs()).facts().facts)


def more_and_more(rng: random.Random, fields: frozenset[str]) -> list[Inputs]:
    """Return one launch several times, each time with one more fact about it."""
    names = rng.sample(sorted(fields & VALUES.keys()), rng.randint(1, 7))
    if rng.random() < 0.8:
        names.append("speculative_algorithm")
    values: dict[str, object] = {name: rng.choice(VALUES[name]) for name in names}
    values["model_path"] = "someone/model"
    environment = {"SGLANG_ENABLE_SPEC_V2": rng.choice(["0", "1"])}
    further: list[dict[str, object]] = [
        {"gpu_memory_mib": rng.choice([16_000, 24_000, 81_559, 143_771, 190_000])},
        {"sm": rng.choice([80, 90, 100, 120])},
        {"model_config": rng.choice(MODELS)},
        {"draft_config": rng.choice(DRAFTS)},
        {"rest_unset": True},
    ]
    rng.shuffle(further)
    known: dict[str, object] = {"rest_unset": False}
    found = []
    for more in ({}, *further):
        known.update(more)
        found.append(Inputs(values=values, environment=environment, **known))  # type: ignore[arg-type]
    return found


def _contradictions(before: Known, after: Known) -> list[str]:
    """Return the definite answers that a further fact changed."""
    foreseen = {refusal.span for refusal in before.facts.refusals}
    refused = after.facts.refused
    if before.facts.refused is not None:
        return [] if refused is not None and refused.span in foreseen else ["no longer refused"]
    if refused is not None:
        return [] if refused.span in foreseen else [f"refused without warning: {refused}"]
    pairs = [(fact, after.facts.facts[name]) for name, fact in before.facts.facts.items()]
    pairs.append((before.captured, after.captured))
    return [
        f"{old.name}: {old.value} became {new}"
        for old, new in pairs
        if old.known and not (new.known and new.value == old.value)
    ]


@pytest.mark.parametrize("release", ["0.5.9", "0.5.12", "0.5.23"])
def test_a_further_fact_only_makes_more_definite(release: str) -> None:
    rng = random.Random(release)
    fields = launch_fields(release)
    definite = 0
    for _ in range(COUNT):
        before: Known | None = None
        for inputs in more_and_more(rng, fields):
            evaluator = evaluate(release, inputs)
            known = Known(evaluator.facts(), evaluator.capture_sizes())
            if before is not None:
                assert _contradictions(before, known) == [], inputs
            before = known
        assert before is not None
        definite += before.facts.refused is not None or before.captured.known
    assert definite > COUNT // 2
