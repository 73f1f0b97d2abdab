"""Run one real SGLang engine with small random models, offline, and print what it did.

    python engine.py CASE.json RESULT.json

CASE.json: ``{"name", "algorithm", "v1", "waves": [{"requests", "tokens"}], "extra": {...}}``.
``waves`` are calls of ``generate``; ``tokens`` may be a list, one entry per request, so that a
batch shrinks while it runs. A wave may first tell the sleeping tracer something (``tell``:
requests of the agent's socket), make a file (``flag``) or run under SGLang's own profiler
(``profile``). With ``limit_s`` the engine is killed if the wave is not over by then. Of several
engines with the same file in ``TURNS`` only one sends its waves at a time. ``extra`` holds any
other server argument, ``optional`` such that not every release knows. The target has random
weights; with STANDALONE, weights that make a long text of clear steps, and a draft that is right
about some tokens and wrong about others. The result, written after every wave, holds tokens,
seconds and SGLang's own counts (``spec_verify_ct``, ``spec_accept_length``).
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LAYERS = int(os.environ.get("LAYERS", "32"))
HIDDEN = int(os.environ.get("HIDDEN", "1024"))
MODELS = Path(os.environ.get("MODELS", "/tmp/specmap-models"))
VOCABULARY = 2048
STEPS = 3
ANSWER_S = 10.0
KEPT: list[socket.socket] = []


def llama_config(**changes: Any) -> dict[str, Any]:
    """Return a Llama config of hidden size HIDDEN with heads of 64."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": HIDDEN,
        "intermediate_size": 2 * HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HIDDEN // 64,
        "num_key_value_heads": max(2, HIDDEN // 256),
        "head_dim": 64,
        "vocab_size": VOCABULARY,
        "hidden_act": "silu",
        "max_position_embeddings": 4096,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "torch_dtype": "bfloat16",
        "bos_token_id": 1,
        "eos_token_id": 2,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mlp_bias": False,
    } | changes


def write_config(name: str, **changes: Any) -> Path:
    """Write a model folder that holds a config only; the weights are dummies."""
    folder = MODELS / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(llama_config(**changes)))
    return folder


def write_checkpoints() -> tuple[Path, Path]:
    """Write a target and a draft that is wrong about a third of the tokens.

    After each token comes the next one of a random cycle through the vocabulary: the output row
    of a token is the embedding of the one before it. Random weights alone run into loops, in
    which a draft is always right or always wrong, and their best two tokens are often equal in
    bfloat16, so that rounding decides.
    """
    target, draft = MODELS / "target-weights", MODELS / "draft-weights"
    if (draft / "model.safetensors").exists():
        return target, draft
    import torch
    from safetensors.torch import save_file
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(1)
    model = LlamaForCausalLM(LlamaConfig(**llama_config()))
    embeddings, cycle = torch.randn(VOCABULARY, HIDDEN), torch.randperm(VOCABULARY)
    head, wrong = torch.empty_like(embeddings), torch.randperm(VOCABULARY)[: VOCABULARY // 3]
    head[cycle.roll(-1)] = embeddings[cycle]
    drafted = head.clone()
    drafted[wrong] = head[wrong.roll(1)]
    weights = model.state_dict() | {"model.embed_tokens.weight": embeddings}
    for folder, rows in ((target, head), (draft, drafted)):
        write_config(folder.name)
        whole = weights | {"lm_head.weight": rows}
        kept = {name: tensor.to(torch.bfloat16).contiguous() for name, tensor in whole.items()}
        save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    return target, draft


def server_arguments(case: dict[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of ``sglang.Engine`` for one case."""
    algorithm = case["algorithm"]
    arguments: dict[str, Any] = {
        "model_path": str(write_config("target")),
        "load_format": "dummy",
        "skip_tokenizer_init": True,
        "attention_backend": "triton",
        "sampling_backend": "pytorch",
        "grammar_backend": "none",
        # Several engines share the GPU: a small pool each, whatever the memory profile says.
        "mem_fraction_static": 0.7,
        "max_total_tokens": 32768,
        "cuda_graph_max_bs": 8,
        "max_running_requests": 8,
        "log_level": "info",
        "random_seed": 1,
        "nccl_port": case.get("port"),
    }
    if algorithm:
        arguments |= {
            "speculative_algorithm": algorithm,
            "speculative_num_draft_tokens": STEPS + 1,
        }
    if algorithm in ("EAGLE3", "STANDALONE"):
        arguments |= {"speculative_num_steps": STEPS, "speculative_eagle_topk": 1}
    if algorithm == "EAGLE3":
        head = write_config(
            "eagle3",
            architectures=["LlamaForCausalLMEagle3"],
            num_hidden_layers=1,
            draft_vocab_size=VOCABULARY,
        )
        arguments["speculative_draft_model_path"] = str(head)
    if algorithm == "STANDALONE":
        target, draft = write_checkpoints()
        arguments |= {
            "model_path": str(target),
            "speculative_draft_model_path": str(draft),
            "load_format": "auto",
        }
    if case.get("v1"):
        arguments["disable_overlap_schedule"] = True
    return known_names(arguments | case.get("extra", {}), case.get("optional", {}))


def known_names(arguments: dict[str, Any], optional: dict[str, Any]) -> dict[str, Any]:
    """Rename what this release renamed, and add what it knows of the optional ones."""
    from sglang.srt.server_args import ServerArgs

    known = {field.name for field in dataclasses.fields(ServerArgs)}
    old, new = "cuda_graph_max_bs", "cuda_graph_max_bs_decode"
    if old not in known and old in arguments:
        arguments[new] = arguments.pop(old)
    return arguments | {name: value for name, value in optional.items() if name in known}


def served(engine: Any, wave: dict[str, Any]) -> dict[str, Any]:
    """Send one wave, under SGLang's own profiler where asked for; see :func:`generate`."""
    if not wave.get("profile"):
        return generate(engine, wave)
    engine.start_profile()
    try:
        return generate(engine, wave)
    finally:
        engine.stop_profile()


def generate(engine: Any, wave: dict[str, Any]) -> dict[str, Any]:
    """Send one wave of requests; return tokens, seconds and SGLang's own counts."""
    requests = wave["requests"]
    tokens = wave["tokens"]
    lengths = tokens if isinstance(tokens, list) else [tokens] * requests
    prompts = [[(i * (k + 3)) % 2000 + 3 for i in range(k, k + 32)] for k in range(requests)]
    sampling = [
        {"temperature": 0, "max_new_tokens": length, "ignore_eos": True} for length in lengths
    ]
    start = time.monotonic_ns()
    outputs = engine.generate(input_ids=prompts, sampling_params=sampling)
    end = time.monotonic_ns()
    return {
        "start_ns": start,
        "end_ns": end,
        "tokens": sum(len(output["output_ids"]) for output in outputs),
        "output_ids": [output["output_ids"] for output in outputs],
        "spec_verify_ct": [output["meta_info"].get("spec_verify_ct") for output in outputs],
        "spec_accept_length": [output["meta_info"].get("spec_accept_length") for output in outputs],
    }


def tell(request: dict[str, Any]) -> list[Any]:
    """Send one request to the agent of every rank; return the answers."""
    answers = []
    for path in sorted(Path(os.environ["SPECMAP_SOCKETS"]).glob("*.sock")):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as agent:
            agent.settimeout(ANSWER_S)
            try:
                agent.connect(str(path))
                KEPT.append(agent.dup())  # an agent disarms when the connection that armed it ends
                agent.sendall(json.dumps(request).encode() + b"\n")
                answers.append(json.loads(agent.makefile().readline()))
            except (OSError, ValueError) as error:  # left by a killed rank, or the rank is stuck
                answers.append(f"{path.name}: {error}")
    return answers


def limited(engine: Any, wave: dict[str, Any]) -> dict[str, Any]:
    """Send a wave; where it is not over within its limit, say so and leave it alone."""
    found: list[dict[str, Any]] = []
    thread = threading.Thread(target=lambda: found.append(served(engine, wave)), daemon=True)
    thread.start()
    thread.join(wave.get("limit_s"))
    return found[0] if found else {"unfinished": True}


@contextlib.contextmanager
def turn() -> Iterator[None]:
    """Wait until no other engine with the same file in TURNS is at work."""
    place = os.environ.get("TURNS")
    if not place:
        yield
        return
    with Path(place).open("a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def run(case: dict[str, Any], place: Path) -> None:
    """Start the engine, send the waves, stop it; the result is written after every wave."""
    import sglang

    start = time.monotonic()
    engine = sglang.Engine(**server_arguments(case))
    result: dict[str, Any] = {
        "name": case["name"],
        "sglang": sglang.__version__,
        "start_s": round(time.monotonic() - start, 1),
        "waves": [],
    }
    with turn():
        for wave in case["waves"]:
            for request in wave.get("tell", []):
                print("TOLD", request, tell(request), flush=True)
            if wave.get("flag"):
                Path(wave["flag"]).touch()
            result["waves"].append(wave | limited(engine, wave))
            place.write_text(json.dumps(result))
    engine.shutdown()


if __name__ == "__main__":
    run(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
