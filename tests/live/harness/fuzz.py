"""Compares the stand-in kernels with the Triton ones of SGLang 0.5.23 on random draft trees.

``fuzz.py TREES`` prints how many agreed; a difference raises.
"""

from __future__ import annotations

import random
import sys
from typing import Any

import patches
import standins
import stubs
import torch

VOCABULARY, HIDDEN = 16, 4


def tree(topk: int, steps: int, draft_tokens: int, batch: int) -> Any:
    """Draft as SGLang does, with random probabilities: parents, selected tokens, tokens."""
    from sglang.srt.speculative.eagle_utils import organize_draft_results
    from sglang.srt.speculative.spec_utils import select_top_k_tokens

    rounds: list[Any] = []
    scores, hidden, rows = None, torch.zeros(batch, HIDDEN), batch
    for step in range(steps):
        chances = torch.softmax(torch.randn(rows, VOCABULARY) * 2, -1)
        best, token = chances.topk(topk)
        _, hidden, scores, info = select_top_k_tokens(step, best, token, hidden, scores, topk)
        rounds.append(info)
        rows = batch * topk
    return organize_draft_results(*map(list, zip(*rounds, strict=True)), draft_tokens)


def built(build: Any, drafted: Any, lengths: Any, shape: Any, mode: Any) -> Any:
    """Return the mask, the positions and the links that a kernel builds."""
    batch, draft_tokens = len(lengths), shape[-1]
    context = int(lengths.sum()) * draft_tokens if mode == 0 else 0
    mask = torch.full((context + draft_tokens**2 * batch,), True)
    positions = torch.zeros(batch * draft_tokens, dtype=torch.long)
    links = torch.full((3, batch, draft_tokens), -1, dtype=torch.long)
    parents, selected, _ = drafted
    build(parents.long(), selected, lengths, mask, positions, *links, *shape, mode)
    return mask, positions, links


def verified(verify: Any, tokens: Any, links: Any, target: Any, steps: int) -> Any:
    """Return predictions, accepted indices and accepted counts."""
    batch, draft_tokens = tokens.shape
    predicts = torch.zeros(batch * draft_tokens, dtype=torch.int32)
    index = torch.full((batch, steps + 1), -1, dtype=torch.int32)
    count = torch.zeros(batch, dtype=torch.int32)
    verify(predicts, index, count, tokens, *links, target)
    return predicts, index, count


def choices(tokens: Any, next_token: Any) -> Any:
    """Return target tokens that often are those of a child."""
    target = torch.randint(0, VOCABULARY, tokens.shape)
    for row, column in torch.nonzero(next_token != -1).tolist():
        if random.random() < 0.75:
            target[row, column] = tokens[row, next_token[row, column]]
    return target


def compare() -> int:
    """Compare both kernels on one batch of trees; return how many tokens were accepted."""
    from sglang.kernels.ops.speculative import spec_tree

    batch, topk, steps = random.randint(1, 3), random.randint(1, 4), random.randint(1, 4)
    nodes = topk + (steps - 1) * topk * topk
    draft_tokens = steps + 1 if topk == 1 else random.randint(2, nodes + 1)
    shape = (topk, steps, draft_tokens)
    drafted = tree(*shape, batch)
    lengths = torch.randint(1, 10, (batch,))
    links = None
    for mode in spec_tree.TreeMaskMode.FULL_MASK, spec_tree.TreeMaskMode.QLEN_ONLY:
        ours = built(standins.build_tree, drafted, lengths, shape, mode)
        theirs = built(spec_tree.sgl_build_tree_kernel_triton, drafted, lengths, shape, mode)
        assert all(map(torch.equal, ours, theirs)), (shape, mode, ours, theirs)
        links = ours[2]
    tokens = torch.cat([torch.randint(0, VOCABULARY, (batch, 1)), drafted[2]], 1)
    target = choices(tokens, links[1])
    ours = verified(standins.verify_greedy, tokens, links, target, steps)
    theirs = verified(spec_tree.verify_tree_greedy_triton, tokens, links, target, steps)
    assert all(map(torch.equal, ours, theirs)), (shape, ours, theirs)
    return int(ours[2].sum())


def main(trees: int) -> None:
    """Compare so many random batches."""
    stubs.install(*patches.STUBS["0.5.23"])
    torch.manual_seed(0)
    random.seed(0)
    accepted = sum(compare() for _ in range(trees))
    sys.stdout.write(f"{trees} agree, {accepted} tokens accepted\n")


if __name__ == "__main__":
    main(int(sys.argv[1]))
