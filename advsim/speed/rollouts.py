"""Rollouts by our engine beside loops that read the whole conversation anew every turn. A program: it prints JSON.

Same weights, same episodes, greedy, so the same tokens; that is checked. An episode is on the embedded backbone under
two adapters: the executor's, and the adversary's where one attacks. Each task is played several times and never twice
alike: clean, under template attacks with different goals, and against the reactive adversary. Figures are in CPU time
of one core, the ways taken in turn and the median counted, so that a busy machine changes them little.
"""

from __future__ import annotations

import asyncio
import copy
import json
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from advsim.agents.protocol import Attacker
from advsim.agents.template import TemplateAttacker, possible
from advsim.config import Backbone, Lora
from advsim.evaluate import spread
from advsim.llm import backbone as weights
from advsim.llm.batch import cache_argument
from advsim.llm.chat import ChatFormat
from advsim.llm.engine import Completion, Engine, Memory, Stats
from advsim.llm.local import LocalEngine, merge
from advsim.llm.policies import ModelAttacker, ModelAttackerSession, ModelExecutor, ModelExecutorSession, Sampling
from advsim.rollout import MAX_ACTIONS, Episode, episode, run_many
from advsim.task import Task
from advsim.world.base import as_async
from advsim.world.symbolic import SymbolicWorld
from benchmark_forms import load

_LORA = Lora()
_SCALE = _LORA.alpha / _LORA.rank
_TASKS, _EPISODES = 12, 128  # tasks, and most episodes at a time
_ACTION_TOKENS, _ATTACK_TOKENS, _CONTEXT = 96, 128, 2048  # as in the default job
_MOVED = 0.002  # how far the adapters are from none: enough to be other weights, too little to spoil the policy


@dataclass(frozen=True, slots=True)
class Played:
    """What one way made of the episodes.

    Attributes:
        cpu_s: CPU time.
        tokens: Of each episode, every sequence that was sampled.
        errors: Episodes that failed.
    """

    cpu_s: float
    tokens: tuple[tuple[tuple[int, ...], ...], ...]
    errors: int


class PlainEngine:
    """One request at a time, its whole prompt read from the first token on: an `Engine` that remembers nothing.

    Within a completion it keeps keys and values, as `generate` of transformers does (and in less time).

    Args:
        models: By adapter, the weights merged (which spares this yardstick PEFT's own overhead).
        tokenizer: Theirs.
    """

    def __init__(self, models: Mapping[str | None, Any], tokenizer: Any) -> None:
        self._models, self._tokenizer = models, tokenizer
        self._end = tokenizer.eos_token_id
        self._cache = cache_argument(next(iter(models.values())))
        self.stats = Stats()

    async def generate(
        self,
        adapter: str | None,
        token_ids: Sequence[int],
        *,
        max_tokens: int,
        temperature: float,
        seed: int,
        stop: Sequence[int] = (),
        memory: Memory | None = None,
    ) -> Completion:
        """See `Engine.generate`; always greedy, and log-probabilities are not computed."""
        with torch.inference_mode():
            sampled = self._greedy(self._models[adapter], list(token_ids), max_tokens, {self._end, *stop})
        self.stats.sampled += len(sampled)
        ended = sampled[-1] in {self._end, *stop}
        text = self._tokenizer.decode(sampled[:-1] if ended else sampled, skip_special_tokens=True)
        return Completion(tuple(sampled), (), text, "stop" if ended else "length")

    def _greedy(self, model: Any, new: list[int], most: int, stop: set[int]) -> list[int]:
        sampled: list[int] = []
        cache = None
        while len(sampled) < most and not (sampled and sampled[-1] in stop):
            given = {"input_ids": torch.tensor([new]), self._cache: cache}
            output = model(**given, use_cache=True, logits_to_keep=1)
            cache = output.past_key_values
            new = [int(output.logits[0, -1, : len(self._tokenizer)].argmax())]
            sampled += new
        return sampled


class Scene:
    """The episodes, and the engines that can play them.

    Args:
        backbone: The model.
        tasks: What is played.
        group: Episodes of each task, at least 2.
        max_actions: Most turns.
    """

    def __init__(
        self, tasks: Sequence[Task], *, backbone: Backbone | None = None, group: int = 6, max_actions: int = MAX_ACTIONS
    ) -> None:
        self.tasks, self.group, self.max_actions = tasks, group, max_actions
        self._model, self._tokenizer = weights.load(backbone or Backbone(device="cpu"))
        self._chat = ChatFormat(self._tokenizer)
        peft = weights.with_adapters(copy.deepcopy(self._model), _LORA, seed=0, names=("executor", "adversary"))
        generator = torch.Generator().manual_seed(0)
        self._adapters = {
            name: {
                key: value + _MOVED * torch.randn(value.shape, generator=generator)
                for key, value in weights.state(peft, name).items()
            }
            for name in ("executor", "adversary")
        }

    def ours(self, **settings: Any) -> LocalEngine:
        """Our engine; `memory_mb=0` makes it forget every conversation after each turn."""
        engine = LocalEngine(self._model, self._tokenizer, scale=_SCALE, **settings)
        for name, tensors in self._adapters.items():
            engine.add(name, tensors)
        return engine

    def plain(self) -> PlainEngine:
        """The yardstick."""
        merged: dict[str | None, Any] = {}
        merged |= {name: merge(self._model, tensors, _SCALE) for name, tensors in self._adapters.items()}
        return PlainEngine(merged, self._tokenizer)

    def play(self, engine: Engine, concurrency: int) -> Played:
        """All episodes with an engine."""
        adversary = ModelAttacker(
            engine, "adversary", "", self._chat, Sampling(0.0, _ATTACK_TOKENS, _CONTEXT), "reactive"
        )
        executor = ModelExecutor(engine, "executor", "", self._chat, Sampling(0.0, _ACTION_TOKENS, _CONTEXT))

        def job(task: Task, k: int) -> Callable[[], Awaitable[Episode]]:
            goals = possible(task)
            attacker: Attacker | None = TemplateAttacker("template", {task.id: goals[k % len(goals)]})
            if k == 0:
                attacker = None
            elif k == 1:
                attacker = adversary
            return lambda: episode(
                task, as_async(SymbolicWorld()), executor, attacker, seed=k, max_actions=self.max_actions
            )

        jobs = [job(task, k) for task in self.tasks for k in range(self.group)]
        began = time.process_time()
        episodes = asyncio.run(run_many(jobs, concurrency=concurrency, retries=0))
        spent = time.process_time() - began
        return Played(
            spent,
            tuple(_sampled(done) for done in episodes),
            sum(done.trajectory.error is not None for done in episodes),
        )


def _sampled(done: Episode) -> tuple[tuple[int, ...], ...]:
    """The ids that both sides sampled in an episode: the executor's, then those of each of the attacker's answers."""
    assert isinstance(done.executor, ModelExecutorSession)
    tokens = [done.executor.tokens()]
    if isinstance(done.attacker, ModelAttackerSession):
        tokens += done.attacker.questions
    return tuple(tuple(i for i, own in zip(t.completion_ids, t.mask, strict=True) if own) for t in tokens)


def measure(scene: Scene, repeats: int = 3) -> dict[str, float]:
    """How many times faster our engine is than either yardstick, over all episodes of a scene.

    Raises:
        RuntimeError: The ways did not do the same work: episodes failed, or more than a tenth (near ties in the
            logits are rounded differently in a batch) have other tokens.
    """
    ways: dict[str, tuple[Callable[[], Engine], int]] = {
        "ours": (scene.ours, _EPISODES),
        "batched": (lambda: scene.ours(memory_mb=0), _EPISODES),
        "plain": (scene.plain, 1),
    }
    rounds = [
        {name: scene.play(make(), concurrency) for name, (make, concurrency) in ways.items()} for _ in range(repeats)
    ]
    first = rounds[0]
    count = len(first["ours"].tokens)
    same = sum(len(set(all_ways)) == 1 for all_ways in zip(*(played.tokens for played in first.values()), strict=True))
    errors = sum(played.errors for played in first.values())
    if errors or same < 0.9 * count:
        raise RuntimeError(f"not the same work: {same} of {count} episodes have the same tokens, {errors} failed")
    sampled = sum(len(sequence) for tokens in first["ours"].tokens for sequence in tokens)
    return {
        "rollout_speedup": statistics.median(r["plain"].cpu_s / r["ours"].cpu_s for r in rounds),
        "rollout_vs_batched": statistics.median(r["batched"].cpu_s / r["ours"].cpu_s for r in rounds),
        "rollout_tokens_per_s": sampled / statistics.median(r["ours"].cpu_s for r in rounds),
        "rollout_same_tokens": same / count,
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(measure(Scene(spread(load("bench-small"), _TASKS)))))
