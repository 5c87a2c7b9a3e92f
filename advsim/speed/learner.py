"""Memory and time of the learner's log-probabilities at policy tokens only, beside all tokens. A program: JSON.

Forward and backward of one sequence through `training.learner`'s own function, or plainly: all logits, their
log-softmax, the policy's tokens picked. Either way runs in a process of its own, whose peak counts from after the model
was made. The model is small and random, but for its head. A quarter of the tokens are the policy's; in episodes in
`diff` form it is less.

And the time of a step on groups of rollouts, whose prompt is read once, beside as many tokens that share nothing.
"""

from __future__ import annotations

import json
import resource
import statistics
import sys
import time
from pathlib import Path
from typing import Any, Literal

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from advsim.config import Backbone, Lora
from advsim.llm import backbone as weights
from advsim.training.log_probs import log_probs

TOKENS, VOCABULARY = 4096, 150_000
_TURN, _SAMPLED = 128, 32  # tokens of a turn, and how many of them are the policy's
_PROMPT, _COMPLETION = 280, 220  # of an episode in the default job
_REPEATS = 3

Way = Literal["ours", "all"]


def make_model(vocabulary: int, tokens: int) -> Any:
    """A random Llama with a head of that size, and a trainable adapter that is not nought."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=tokens,
        tie_word_embeddings=True,
    )
    base = LlamaForCausalLM(config).requires_grad_(False)
    model = weights.with_adapters(base, Lora(rank=4, alpha=8), seed=0, names=("executor",))
    generator = torch.Generator().manual_seed(1)
    tensors = weights.state(model, "executor")
    weights.set_state(
        model, "executor", {k: v + 0.05 * torch.randn(v.shape, generator=generator) for k, v in tensors.items()}
    )
    return model


def sequence(vocabulary: int, tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids (1, tokens), and which of those after the first turn are the policy's (1, tokens - turn)."""
    ids = torch.randint(0, vocabulary, (1, tokens), generator=torch.Generator().manual_seed(2))
    policy = torch.arange(tokens - _TURN) % _TURN < _SAMPLED
    return ids, policy[None]


def loss(way: Way, model: Any, ids: torch.Tensor, policy: torch.Tensor) -> torch.Tensor:
    """Mean negative log-probability of the policy's tokens."""
    if way == "ours":
        found = log_probs(model, ids, torch.ones_like(ids), policy)
    else:
        logits = model(input_ids=ids, use_cache=False).logits
        scores = torch.log_softmax(logits[:, :-1].float(), -1).gather(-1, ids[:, 1:, None])[..., 0]
        found = scores[:, -policy.shape[1] :] * policy
    return -found.sum() / policy.sum()


def measure(way: Way, tokens: int = TOKENS, vocabulary: int = VOCABULARY, repeats: int = _REPEATS) -> dict[str, float]:
    """Peak memory over that of the model, the median time of a step, and the loss."""
    model = make_model(vocabulary, tokens)
    ids, policy = sequence(vocabulary, tokens)
    small = ids[:, : 2 * _TURN], policy[:, :_TURN]
    # What libraries take once is no part of a step.
    loss(way, model, *small).backward()  # type: ignore[no-untyped-call]
    before, seconds, value = _peak(), [], 0.0
    for _ in range(repeats):
        model.zero_grad()
        began = time.process_time()
        step = loss(way, model, ids, policy)
        step.backward()  # type: ignore[no-untyped-call]
        seconds.append(time.process_time() - began)
        value = step.item()
        del step  # and with it its graph
    more = max(0, _peak() - before)  # the kernel's counters may lag by some pages
    return {"memory_mb": more / 2**20, "step_s": statistics.median(seconds), "loss": value}


def group(
    backbone: Backbone | None = None, *, tasks: int = 4, rollouts: int = 6, repeats: int = _REPEATS
) -> dict[str, float]:
    """Time of a step on groups of rollouts with one prompt each, over that of as many tokens with as many prompts."""
    model, tokenizer = weights.load(backbone or Backbone(device="cpu"))
    model = weights.with_adapters(model, Lora(), seed=0, names=("executor",))
    model.set_adapter("executor")
    generator, high = torch.Generator().manual_seed(2), len(tokenizer)
    prompts = torch.randint(0, high, (tasks * rollouts, _PROMPT), generator=generator)
    completions = torch.randint(0, high, (tasks * rollouts, _COMPLETION), generator=generator)
    policy = torch.rand(completions.shape, generator=generator) < _SAMPLED / _TURN
    seconds: dict[str, list[float]] = {"one": [], "own": []}
    for _ in range(repeats + 1):
        for name, own in (("one", prompts[::rollouts].repeat_interleave(rollouts, 0)), ("own", prompts)):
            ids = torch.cat([own, completions], 1)
            began = time.process_time()
            log_probs(model, ids, torch.ones_like(ids), policy).sum().backward()  # type: ignore[no-untyped-call]
            seconds[name].append(time.process_time() - began)
    # What libraries take once is in the first round.
    return {"time_ratio": statistics.median(seconds["one"][1:]) / statistics.median(seconds["own"][1:])}


def _peak() -> int:
    """Most memory that this process has held so far, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # `getrusage` would count what the parent held when it started us
        for line in status.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    torch.set_num_threads(1)
    assert sys.argv[1] in ("ours", "all", "group")
    print(json.dumps(group() if sys.argv[1] == "group" else measure("ours" if sys.argv[1] == "ours" else "all")))
