"""Tiny checkpoints: a two-layer Llama with random weights, and drafts that half agree with it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM

SHAPE = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "num_hidden_layers": 2,
    "vocab_size": 128,
    "max_position_embeddings": 512,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "tie_word_embeddings": False,
}
SPREAD = 0.25  # wide weights, so that the next token depends on the text
NOISE = 0.012  # measured: some drafts are accepted, some are not


def make(folder: Path, *, noise: float = 0.0) -> None:
    """Write a checkpoint; with noise it is the same model with disturbed weights."""
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(initializer_range=SPREAD, **SHAPE)).float()
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * noise)
    model.save_pretrained(folder)


def make_eagle3(folder: Path) -> None:
    """Write the configuration of an EAGLE3 draft; SGLang fills it with random weights."""
    config = {
        **SHAPE,
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "num_hidden_layers": 1,
        "draft_vocab_size": SHAPE["vocab_size"],
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "torch_dtype": "float32",
        "eagle_config": {
            "use_aux_hidden_state": True,
            "eagle_aux_hidden_state_layer_ids": [0, 1, 2],
        },
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config), "utf-8")


def make_all(folder: Path) -> None:
    """Write ``target``, ``draft`` (STANDALONE) and ``eagle3`` below a folder."""
    make(folder / "target")
    make(folder / "draft", noise=NOISE)
    make_eagle3(folder / "eagle3")


if __name__ == "__main__":
    make_all(Path(sys.argv[1]))
