"""The two sgl_kernel operations of EAGLE that have no CPU or Triton form in SGLang 0.5.9.

Slow loops over tiny batches, written from the contract of the operations. ``fuzz.py`` compares
them with the Triton kernels that SGLang 0.5.23 ships for the same two.
"""

from __future__ import annotations

from typing import Any

FULL_MASK = 0  # TreeMaskMode: one row of context and draft tokens for each draft token


def build_tree(
    parents: Any, selected: Any, lengths: Any, mask: Any, positions: Any, index: Any,
    next_token: Any, next_sibling: Any, topk: int, depth: int, draft_tokens: int, mode: int = 0,
) -> None:  # fmt: skip
    """Fill the tree mask, the positions and the links of the draft trees, in place.

    ``parents`` and ``selected``: (bs, n); ``lengths``: (bs,); ``index``, ``next_token`` and
    ``next_sibling``: (bs, draft_tokens).
    """
    flat = mask.view(-1)
    base = 0
    for row, length in enumerate(lengths.tolist()):
        parent = _parents(parents[row].tolist(), selected[row].tolist(), topk)
        index[row] = row * draft_tokens + index.new_tensor(range(draft_tokens))
        for node in range(draft_tokens - 1, 0, -1):
            sibling = int(next_token[row, parent[node]])
            next_token[row, parent[node]] = node
            if sibling != -1:
                next_sibling[row, node] = sibling
        for node in range(draft_tokens):
            path = _path(parent, node)
            if int(mode) == FULL_MASK:
                start = base + (length + draft_tokens) * node + length
            else:
                start = draft_tokens * (draft_tokens * row + node)
            flat[start] = True
            flat[start + 1 : start + draft_tokens] = False
            for seen in path:
                flat[start + seen] = True
            positions[row * draft_tokens + node] = length + len(path)
        base += (length + draft_tokens) * draft_tokens


def _parents(parents: list[int], selected: list[int], topk: int) -> list[int]:
    """Return the parent of every node; node 0, the last accepted token, is the root."""
    found = [0]
    for token in selected:
        group = token // topk
        found.append(0 if group == 0 else selected.index(parents[group]) + 1)
    return found


def _path(parent: list[int], node: int) -> list[int]:
    """Return the node and its ancestors below the root."""
    path = []
    while node != 0:
        path.append(node)
        node = parent[node]
    return path


def verify_greedy(
    predicts: Any, accept_index: Any, accepted: Any, candidates: Any, index: Any,
    next_token: Any, next_sibling: Any, target: Any,
) -> None:  # fmt: skip
    """Walk each draft tree along the target's choices, in place.

    ``candidates``, ``index`` and the links: (bs, draft_tokens); ``accept_index``:
    (bs, steps + 1); ``accepted``: (bs,), without the bonus token.
    """
    flat = target.reshape(-1).tolist()
    for row in range(candidates.shape[0]):
        tokens, slots = candidates[row].tolist(), index[row].tolist()
        children, siblings = next_token[row].tolist(), next_sibling[row].tolist()
        last, node, count = slots[0], 0, 0
        accept_index[row, 0] = last
        while count + 1 < accept_index.shape[1]:
            node = children[node]
            while node != -1 and tokens[node] != flat[last]:
                node = siblings[node]
            if node == -1:
                break
            predicts[last] = flat[last]
            last = slots[node]
            count += 1
            accept_index[row, count] = last
        accepted[row] = count
        predicts[last] = flat[last]
