"""Many episodes of the executor, and what they become: ledger rows, solve rates, samples for the learner."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from advsim.agents.protocol import Attacker
from advsim.config import RunConfig
from advsim.console import progress
from advsim.ledger import Row
from advsim.llm.policies import ModelExecutor, ModelExecutorSession, PlannedAttacker, Tokens
from advsim.record import record
from advsim.rewards import executor as executor_reward
from advsim.rewards.advantage import difficulty_scale, group_advantages
from advsim.rewards.solve_rate import solve_rate
from advsim.rollout import Episode, episode, run_many
from advsim.seeds import derive
from advsim.task import Attack, Task
from advsim.training.learner import Sample
from advsim.world.base import AsyncWorld, as_async
from advsim.world.faults import FaultyWorld
from advsim.world.symbolic import SymbolicWorld


@dataclass(frozen=True, slots=True)
class Input:
    """What the executor is given: a task, and the attack that its page will bring, if any.

    Attributes:
        kind: Where it comes from: `clean`, `fresh` (this round's attack) or `history` (an earlier round's).
    """

    task: Task
    attack: Attack | None = None
    kind: str = "clean"


@dataclass(slots=True)
class Rollout:
    """An episode, its row, and its tokens.

    Attributes:
        input: Index of what it was given.
    """

    input: int
    row: Row
    tokens: Tokens
    episode: Episode | None = None


def make_world(config: RunConfig, seed: int) -> AsyncWorld:
    """A world of the configured kind; its faults, if any, follow the seed."""
    exact = SymbolicWorld()
    if not any(config.world.faults.model_dump().values()):
        return as_async(exact)
    return as_async(FaultyWorld(exact, config.world.faults, derive(seed, "world")))


async def play(
    config: RunConfig,
    executor: ModelExecutor,
    inputs: Sequence[Input],
    count: int,
    path: Sequence[str | int],
    *,
    keep: bool = False,
    **provenance: Any,
) -> list[Rollout]:
    """`count` episodes of each input.

    Args:
        config: The run's.
        executor: Who does the tasks.
        inputs: What it is given.
        count: Episodes of each.
        path: Names the seeds' stream.
        keep: Keep each episode for forking, its states and the engine's memory included.
        provenance: Set in each row (stage, round, phase, update, …).

    Returns:
        By input and then by index in its group; failed ones are there as error rows.
    """

    def job(item: Input, seed: int) -> Callable[[], Awaitable[Episode]]:
        async def run() -> Episode:
            world = make_world(config, seed)
            attacker: Attacker | None = PlannedAttacker(item.attack) if item.attack is not None else None
            done = await episode(
                item.task, world, executor, attacker, seed=seed, max_actions=config.episode.max_actions, keep=keep
            )
            if not keep and isinstance(done.executor, ModelExecutorSession):
                done.executor.release()
            return done

        return run

    jobs = [
        job(item, derive(config.seed, *path, i, item.task.id, k)) for i, item in enumerate(inputs) for k in range(count)
    ]
    with progress(" ".join(map(str, path)), lambda: executor.engine.stats.sampled) as on_progress:
        episodes = await run_many(
            jobs, concurrency=config.engine.episodes, retries=config.episode.retries, on_progress=on_progress
        )
    found = []
    for n, done in enumerate(episodes):
        i, k = divmod(n, count)
        attack = inputs[i].attack
        row = record(done, executor, PlannedAttacker(attack) if attack is not None else None)
        row = stamp(row, config, group=f"{'/'.join(map(str, path))}/{i}", index=k, **provenance)
        assert isinstance(done.executor, ModelExecutorSession)
        found.append(Rollout(i, row, done.executor.tokens(), done if keep else None))
    return found


def stamp(row: Row, config: RunConfig, **provenance: Any) -> Row:
    """The row with the run's provenance and whatever else is given."""
    return dataclasses.replace(row, run=config.name, config_hash=config.hash, train_seed=config.seed, **provenance)


def solve_rates(rollouts: Iterable[Rollout], inputs: int) -> list[float | None]:
    """p̂ of each input, over the rollouts that have a verdict."""
    good: list[list[bool]] = [[] for _ in range(inputs)]
    for rollout in rollouts:
        if rollout.row.error is None and rollout.row.good is not None:
            good[rollout.input].append(rollout.row.good)
    return [solve_rate(verdicts) for verdicts in good]


def score(
    config: RunConfig, rollouts: Sequence[Rollout], rates: Sequence[float | None]
) -> tuple[list[Row], list[Sample]]:
    """Rewards and advantages of the executor (`docs/method.md` §3.3, §3.5).

    Args:
        config: The run's.
        rollouts: Groups of one input each.
        rates: p̂ of each input, measured before the update.

    Returns:
        All rows, those with a verdict with reward and advantage; and the samples of those. An error is neither.
    """
    rewards = [_reward(config, rollout) for rollout in rollouts]
    groups: dict[int, list[int]] = {}
    for n, rollout in enumerate(rollouts):
        if rewards[n] is not None and rates[rollout.input] is not None:
            groups.setdefault(rollout.input, []).append(n)
    advantages: dict[int, float] = {}
    for i, members in groups.items():
        p = rates[i]
        assert p is not None
        scale = difficulty_scale(p, config.rewards.min_scale) if config.switches.difficulty_scale else 1.0
        values = [reward for n in members if (reward := rewards[n]) is not None]
        advantages |= dict(zip(members, group_advantages(values, scale), strict=True))
    rows, samples = [], []
    for n, rollout in enumerate(rollouts):
        advantage = advantages.get(n)
        rows.append(
            dataclasses.replace(rollout.row, reward=rewards[n], advantage=advantage, p_hat=rates[rollout.input])
        )
        if advantage is not None and rollout.tokens.prompt_ids:
            samples.append(sample(rollout.tokens, advantage, str(rollout.input)))
    return rows, samples


def sample(tokens: Tokens, advantage: float, group: str) -> Sample:
    """A conversation for the learner."""
    return Sample(tokens.prompt_ids, tokens.completion_ids, tokens.mask, advantage, group)


def _reward(config: RunConfig, rollout: Rollout) -> float | None:
    row = rollout.row
    if row.error is not None or row.good is None:
        return None
    if row.attack is None:  # clean, or the episode ended before the attack's turn
        return executor_reward.clean(row.good)
    return executor_reward.attacked(row.good, row.followed, w_g=config.rewards.w_g, w_r=config.rewards.w_r)
