"""A round's tasks: what the curriculum proposed, and, where too little of it is valid, what the generator adds."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from advsim.agents import curriculum as prompts
from advsim.agents.proposal import ProposalError
from advsim.agents.protocol import EngineError
from advsim.config import RunConfig
from advsim.ledger import Row
from advsim.llm.policies import Tokens
from advsim.rewards import curriculum as reward
from advsim.rewards.advantage import deal_groups, group_advantages
from advsim.seeds import derive
from advsim.task import Step, Task
from advsim.training.imitation.source import benchmark_problems
from advsim.training.learner import Sample
from advsim.training.rollouts import sample, stamp
from advsim.training.team import Team
from benchmark_forms import stream


@dataclass(frozen=True, slots=True)
class Proposal:
    """One completion of the curriculum.

    Attributes:
        prompt, text: What was asked and what came.
        tokens: The same as ids, for replay under the very prompt (`docs/method.md` §3.7).
        task: What was read from it; None when it is malformed.
        problem: Why it is.
        seed, error: The sample's seed; what failed in the infrastructure, if anything.
    """

    prompt: str
    text: str
    tokens: Tokens
    task: Task | None
    problem: str
    seed: int
    error: str | None = None

    def dump(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "prompt": self.prompt,
            "text": self.text,
            "prompt_ids": self.tokens.prompt_ids,
            "completion_ids": self.tokens.completion_ids,
            "logprobs": self.tokens.logprobs,
            "task": self.task.model_dump(mode="json") if self.task is not None else None,
            "problem": self.problem,
            "seed": self.seed,
            "error": self.error,
        }

    @staticmethod
    def restore(data: dict[str, Any]) -> Proposal:
        """From what `dump` gave."""
        ids = tuple(data["completion_ids"])
        tokens = Tokens(tuple(data["prompt_ids"]), ids, (True,) * len(ids), tuple(data["logprobs"]))
        task = Task.model_validate(data["task"]) if data["task"] is not None else None
        return Proposal(data["prompt"], data["text"], tokens, task, data["problem"], data["seed"], data["error"])


async def propose(config: RunConfig, team: Team, round_: int, count: int, path: Sequence[str | int]) -> list[Proposal]:
    """A round's proposals, in order. `path` names the seeds' stream."""
    sampling = team.sampling("curriculum")

    async def one(index: int) -> Proposal:
        seed = derive(config.seed, *path, index)
        prompt = prompts.prompt(round_, prompts.hint(derive(seed, "hint")), sampling.verbose)
        given = tuple(team.chat.opening(prompt))
        try:
            done = await team.engine.generate(
                team.adapter("curriculum"),
                given,
                max_tokens=sampling.max_new_tokens,
                temperature=sampling.temperature,
                seed=seed,
            )
        except EngineError as error:
            return Proposal(prompt, "", Tokens(given, (), (), ()), None, "", seed, f"EngineError: {error}")
        tokens = Tokens(given, done.token_ids, (True,) * len(done.token_ids), done.logprobs)
        task = prompts.parse(done.text, benchmark_problems())
        if isinstance(task, ProposalError):
            return Proposal(prompt, done.text, tokens, None, task.message, seed)
        return Proposal(prompt, done.text, tokens, task, "", seed)

    return list(await asyncio.gather(*(one(index) for index in range(count))))


def distinct(proposals: Sequence[Proposal]) -> list[Task]:
    """The valid proposals' tasks, each once, in order."""
    return list({p.task.id: p.task for p in proposals if p.task is not None}.values())


def top_up(config: RunConfig, tasks: Sequence[Task], wanted: int, path: Sequence[str | int]) -> list[Task]:
    """Tasks of the seeded generator that a round lacks; their family in the ledger tells them from proposals.

    Args:
        config: The run's; it may forbid this.
        tasks: What the curriculum gave.
        wanted: The round's number of proposals, of which `tasks.min_valid` must be had.
        path: Names the seeds' stream.
    """
    missing = int(config.tasks.min_valid * wanted + 0.5) - len(tasks)
    if not config.tasks.top_up or missing <= 0:
        return []
    drawn = stream(
        derive(config.seed, *path, "top-up"), settings=(config.tasks.setting,), exclude_families=config.tasks.held_out
    )
    return list(islice(drawn, missing))


def learn(
    config: RunConfig,
    team: Team,
    proposals: Sequence[Proposal],
    rates: dict[str, float | None],
    path: Sequence[str | int],
    **provenance: Any,
) -> tuple[list[Row], list[Sample]]:
    """Rewards, replay groups and advantages of a round's proposals (`docs/method.md` §3.2, §3.7).

    Args:
        config: The run's.
        team: With the curriculum that proposed.
        proposals: The round's.
        rates: p̂ by task id.
        path: Names the groups.
        provenance: Set in each row.

    Returns:
        A row each; a sample for each that has a reward.
    """
    known = [p for p in proposals if p.error is None]
    earned = reward.rewards(
        [reward.Assessed(p.task.goal if p.task else None, rates.get(p.task.id) if p.task else None) for p in known],
        lambda_c=config.rewards.lambda_c if config.switches.repetition else 0.0,
        min_solve_rate=config.rewards.min_solve_rate,
        similarity=config.rewards.similarity,
        uniform=not config.switches.uncertainty,
    )
    scored = [(n, r) for n, r in enumerate(earned) if r is not None]
    groups = deal_groups([r for _, r in scored], config.stage1.group)
    place: dict[int, tuple[int, int, float]] = {}
    for g, members in enumerate(groups):
        values = group_advantages([scored[m][1] for m in members])
        for k, (m, advantage) in enumerate(zip(members, values, strict=True)):
            place[scored[m][0]] = (g, k, advantage)
    samples = [sample(known[n].tokens, a, f"{g}") for n, (g, _, a) in sorted(place.items())]
    reward_of = {id(p): (n, earned[n]) for n, p in enumerate(known)}
    rows = []
    for p in proposals:
        n, value = reward_of.get(id(p), (-1, None))
        dealt = place.get(n)
        rows.append(
            stamp(
                _row(p, team),
                config,
                group=f"{'/'.join(map(str, path))}/{dealt[0]}" if dealt is not None else "",
                index=dealt[1] if dealt is not None else 0,
                p_hat=rates.get(p.task.id) if p.task is not None else None,
                reward=value,
                advantage=dealt[2] if dealt is not None else None,
                **provenance,
            )
        )
    return rows, samples


def _row(proposal: Proposal, team: Team) -> Row:
    task = proposal.task
    return Row(
        role="curriculum",
        policy="curriculum",
        checkpoint=team.checkpoints["curriculum"],
        task_id=task.id if task is not None else f"malformed/{proposal.seed:x}",
        task_hash=task.content_hash if task is not None else "",
        family=task.family if task is not None else "",
        split="train",
        goal=task.goal if task is not None else "",
        world="symbolic",
        world_version="",
        seed=proposal.seed,
        steps=(Step(proposal.prompt, proposal.text, "", proposal.problem),),
        valid=task is not None if proposal.error is None else None,
        error=proposal.error,
    )


def record_only(config: RunConfig, team: Team, proposals: Sequence[Proposal], **provenance: Any) -> list[Row]:
    """Rows of proposals that teach nothing (their tasks are what was wanted)."""
    return [stamp(_row(p, team), config, index=n, **provenance) for n, p in enumerate(proposals)]
