"""A policy's log-probabilities at its own tokens: no logits elsewhere, prompts that rows share read once."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.checkpoint import checkpoint
from transformers import DynamicCache

from advsim.llm.batch import cache_argument

_TOKENS_AT_ONCE = 512  # policy tokens whose logits exist at one time


def alike(input_ids: torch.Tensor, attention_mask: torch.Tensor, keep: int) -> list[list[int]]:
    """Divides rows into parts of like length, so that few long ones do not pad all others to theirs.

    The parts are those that compute the fewest tokens: each its rows padded to its longest, and each of its prompts
    once.

    Args:
        input_ids, attention_mask: (rows, tokens); prompts padded on the left, completions on the right.
        keep: Tokens of the completions' part.
    """
    prompts = [tuple(row) for row in (input_ids * attention_mask)[:, :-keep].tolist()]
    prompt_tokens = attention_mask[:, :-keep].sum(1).tolist()
    lengths = attention_mask[:, -keep:].sum(1).tolist()
    rows = sorted(range(len(lengths)), key=lambda row: lengths[row])
    # best[n]: the least cost of the first n rows, and where the last part of such a division begins.
    best: list[tuple[int, int]] = [(0, 0)]
    for end in range(1, len(rows) + 1):
        longest, read, seen = lengths[rows[end - 1]], 0, set()
        options = []
        for begin in range(end - 1, -1, -1):
            row = rows[begin]
            if prompts[row] not in seen:
                seen.add(prompts[row])
                read += prompt_tokens[row]
            options.append((best[begin][0] + (end - begin) * longest + read, begin))
        best.append(min(options))
    parts, end = [], len(rows)
    while end:
        begin = best[end][1]
        parts.append(sorted(rows[begin:end]))
        end = begin
    return parts


def log_probs(model: Any, input_ids: torch.Tensor, attention_mask: torch.Tensor, policy: torch.Tensor) -> torch.Tensor:
    """Log-probabilities of the last `policy.shape[1]` tokens where `policy` holds, else 0; same shape as `policy`."""
    base = model.get_base_model()
    hidden = _hidden(base.base_model, input_ids, attention_mask, policy.shape[1])
    # The hidden state before a token predicts it.
    selected, labels = hidden[:, : policy.shape[1]][policy], input_ids[:, -policy.shape[1] :][policy]
    head = base.get_output_embeddings()
    parts = [selected[:0, 0]]  # keeps the graph connected where no token is the policy's
    for chunk, label in zip(torch.split(selected, _TOKENS_AT_ONCE), torch.split(labels, _TOKENS_AT_ONCE), strict=True):
        if len(label):
            parts.append(checkpoint(_score, head, chunk, label, use_reentrant=False))
    return torch.zeros_like(policy, dtype=torch.float32).masked_scatter(policy, torch.cat(parts).float())


def _hidden(decoder: Any, input_ids: torch.Tensor, attention_mask: torch.Tensor, keep: int) -> torch.Tensor:
    """Hidden states before each of the last `keep` tokens: (rows, keep, width).

    Prompts are padded on the left, completions on the right. The rollouts of a group have one prompt: it is read once,
    and its keys and values, gradients and all, serve every row.
    """
    # Columns that are padding in every row cost nothing.
    used = attention_mask.any(0).nonzero()
    first, start = int(used[0]), input_ids.shape[1] - keep
    end = max(int(used[-1]) + 1, start + 1)
    ids, attention = input_ids[:, first:end], attention_mask[:, first:end]
    positions = (attention.cumsum(1) - 1).clamp(min=0)
    start -= first
    prompts, source = torch.unique(torch.where(attention.bool(), ids, -1)[:, :start], dim=0, return_inverse=True)
    # Checkpoints of a decoder's layers and caches exclude each other.
    alone = len(prompts) == len(ids) or ids.shape[1] == start + 1
    if alone or getattr(decoder, "gradient_checkpointing", False):
        states = decoder(input_ids=ids, attention_mask=attention, position_ids=positions, use_cache=False)
        shown = states.last_hidden_state[:, start - 1 : -1]
    else:
        argument = cache_argument(decoder)
        cache: Any = DynamicCache()
        origin = torch.stack([(source == index).nonzero()[0, 0] for index in range(len(prompts))])
        read = decoder(
            input_ids=ids[origin, :start],
            attention_mask=attention[origin, :start],
            position_ids=positions[origin, :start],
            use_cache=True,
            **{argument: cache},
        )
        cache = DynamicCache([(layer.keys[source], layer.values[source]) for layer in cache.layers])
        states = decoder(
            input_ids=ids[:, start:-1],
            attention_mask=attention[:, :-1],
            position_ids=positions[:, start:-1],
            use_cache=True,
            **{argument: cache},
        )
        shown = torch.cat([read.last_hidden_state[source, -1:], states.last_hidden_state], 1)
    return torch.nn.functional.pad(shown, (0, 0, 0, keep - shown.shape[1]))


def _score(head: torch.nn.Module, hidden: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    logits = head(hidden).float()
    return torch.log_softmax(logits, -1).gather(-1, labels[:, None])[:, 0]
