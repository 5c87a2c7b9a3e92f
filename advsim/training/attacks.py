"""The adversary's half of a round: proposals against tasks, their success by forking clean controls, rewards.

Static proposals are made on the first page. Reactive ones are made by walking along a control: the adversary is asked
before each of its transitions until it injects, so that both kinds are attacks with a transition d, and are
compared with the same controls in the same way (`docs/method.md` §3.4).
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from advsim.action import Action
from advsim.action import parse as parse_action
from advsim.agents import adversary as prompts
from advsim.agents.proposal import ProposalError
from advsim.agents.protocol import EngineError
from advsim.config import RunConfig
from advsim.ledger import Row
from advsim.llm.policies import PlannedAttacker, Tokens
from advsim.page import parse as parse_page
from advsim.record import record
from advsim.rewards import adversary as reward
from advsim.rewards.advantage import group_advantages
from advsim.rewards.adversary import Fork
from advsim.rollout import Episode, fork_under_attack, run_many
from advsim.seeds import derive
from advsim.task import Attack, Step, Task
from advsim.training.learner import Sample
from advsim.training.rollouts import Rollout, sample, stamp
from advsim.training.team import Team
from advsim.world.symbolic import first_page

Kind = Literal["static", "reactive"]


@dataclass(frozen=True, slots=True)
class Proposal:
    """One try of the adversary against one task.

    Attributes:
        task: Index of the task. kind: How it was asked.
        attack: The injection; None when it waited all along, or when what it wrote cannot be read.
        malformed: Whether it is the latter.
        questions, prompts, texts: Tokens, prompts and answers, one each time that it was asked.
        problem: Why it is malformed. seed: Of its stream. error: What failed in the infrastructure.
    """

    task: int
    kind: Kind
    attack: Attack | None
    malformed: bool
    questions: tuple[Tokens, ...]
    prompts: tuple[str, ...]
    texts: tuple[str, ...]
    problem: str
    seed: int
    error: str | None = None


def kind_of(config: RunConfig, place: int) -> Kind:
    """How the proposal at this place is asked for; with both kinds every other one is reactive."""
    mode = config.switches.adversary_mode
    if mode == "both":
        return "static" if place % 2 == 0 else "reactive"
    return mode


async def propose(
    team: Team, tasks: Sequence[Task], controls: Sequence[Sequence[Episode]], asked: Sequence[tuple[int, Kind, int]]
) -> list[Proposal]:
    """Asks the adversary.

    Args:
        team: With the adversary.
        tasks: The tasks.
        controls: Clean episodes of each, for reactive questions.
        asked: Index of the task, kind, and seed of each proposal.
    """

    async def one(index: int, kind: Kind, seed: int) -> Proposal:
        try:
            if kind == "static":
                return await _static(team, tasks[index], index, seed)
            usable = [c for c in controls[index] if c.trajectory.error is None and c.trajectory.steps]
            if not usable:
                return Proposal(index, kind, None, False, (), (), (), "", seed, "no control to walk along")
            return await _reactive(team, tasks[index], index, usable[seed % len(usable)], seed)
        except EngineError as error:
            return Proposal(index, kind, None, False, (), (), (), "", seed, f"EngineError: {error}")

    return list(await asyncio.gather(*(one(*item) for item in asked)))


async def _static(team: Team, task: Task, index: int, seed: int) -> Proposal:
    policy = team.attacker("static")
    assert task.form is not None
    page = first_page(task.form)
    attack, tokens, text = await policy.propose(task, page, seed)
    prompt = prompts.static_prompt(task.goal, page, policy.sampling.verbose)
    if isinstance(attack, ProposalError):
        return Proposal(index, "static", None, True, (tokens,), (prompt,), (text,), attack.message, seed)
    return Proposal(index, "static", attack, False, (tokens,), (prompt,), (text,), "", seed)


async def _reactive(team: Team, task: Task, index: int, control: Episode, seed: int) -> Proposal:
    policy = team.attacker("reactive")
    session = policy.begin(task, seed)
    asked: list[str] = []
    attack = None
    for turn, step in enumerate(control.trajectory.steps, 1):
        page, pending = parse_page(step.page), parse_action(step.completion)
        action = pending if isinstance(pending, Action) else None
        if len(session.questions) < policy.max_queries:
            asked.append(prompts.reactive_prompt(task.goal, page, action, policy.sampling.verbose))
        attack = await session.before(turn, page, action)
        if attack is not None:
            break
    malformed = attack is None and session.malformed > 0
    problem = f"{session.malformed} of {len(asked)} answers were neither an attack nor a wait" if malformed else ""
    questions, texts = tuple(session.questions), tuple(session.texts)
    return Proposal(index, "reactive", attack, malformed, questions, tuple(asked), texts, problem, seed)


async def fork_all(
    config: RunConfig, proposals: Sequence[Proposal], controls: Sequence[Sequence[Episode]]
) -> list[list[Episode | None]]:
    """Continues every control under every attack: for each proposal one result a control, None where there is none."""
    places: list[tuple[int, int]] = []
    jobs: list[Callable[[], Awaitable[Episode]]] = []

    def job(control: Episode, attack: Attack) -> Callable[[], Awaitable[Episode]]:
        async def run() -> Episode:
            done = await fork_under_attack(control, attack, max_actions=config.episode.max_actions)
            assert done is not None
            done.executor.release()  # type: ignore[attr-defined]
            return done

        return run

    results: list[list[Episode | None]] = []
    for n, proposal in enumerate(proposals):
        own = controls[proposal.task]
        results.append([None] * len(own))
        if proposal.attack is None:
            continue
        for k, control in enumerate(own):
            past = control.trajectory
            if past.error is None and proposal.attack.turn <= len(past.steps):
                places.append((n, k))
                jobs.append(job(control, proposal.attack))
    done = await run_many(jobs, concurrency=config.engine.episodes, retries=config.episode.retries)
    for (n, k), episode in zip(places, done, strict=True):
        results[n][k] = episode
    return results


def score(
    config: RunConfig,
    team: Team,
    tasks: Sequence[Task],
    proposals: Sequence[Proposal],
    controls: Sequence[Sequence[Rollout]],
    forks: Sequence[Sequence[Episode | None]],
    path: Sequence[str | int],
    **tags: Any,
) -> tuple[list[Row], list[Sample]]:
    """Rewards and advantages of the adversary (`docs/method.md` §3.4), and rows of proposals and continuations.

    Args:
        config: The run's.
        team: With the adversary that proposed.
        tasks: The tasks.
        proposals: All of them, in groups of one task.
        controls: Of each task.
        forks: Of each proposal, one a control.
        path: Names the groups.
        tags: Provenance for the rows.
    """
    rows: list[Row] = []
    compared: list[list[Fork]] = []
    for n, proposal in enumerate(proposals):
        found: list[Fork] = []
        for k, control in enumerate(controls[proposal.task]):
            continued = forks[n][k]
            row = None
            if continued is not None and proposal.attack is not None:
                row = record(continued, team.executor(), PlannedAttacker(proposal.attack))
                group = f"{'/'.join(map(str, path))}/{proposal.task}/{n}"
                rows.append(stamp(row, config, group=group, index=k, phase="fork", **tags))
            fork = _compare(control.row, row, proposal.attack)
            if fork is not None:
                found.append(fork)
        compared.append(found)
    samples: list[Sample] = []
    groups: dict[int, list[int]] = {}
    for n, proposal in enumerate(proposals):
        if proposal.error is None:
            groups.setdefault(proposal.task, []).append(n)
    values: dict[int, tuple[float | None, float | None]] = {}
    for members in groups.values():
        earned = reward.rewards(
            [None if proposals[n].malformed else _said(proposals[n]) for n in members],
            [compared[n] for n in members],
            lambda_a=config.rewards.lambda_a if config.switches.repetition else 0.0,
            similarity=config.rewards.similarity,
            mode=config.switches.adversary_reward,
        )
        known = [(n, r) for n, r in zip(members, earned, strict=True) if r is not None]
        values |= {n: (r, None) for n, r in zip(members, earned, strict=True)}
        if not any(r is not None and not proposals[n].malformed for n, r in known):
            continue  # no control was good: the task gives no comparison and is left out
        advantages = group_advantages([r for _, r in known])
        for (n, r), advantage in zip(known, advantages, strict=True):
            values[n] = (r, advantage)
            samples += [sample(tokens, advantage, str(proposals[n].task)) for tokens in proposals[n].questions]
    for n, proposal in enumerate(proposals):
        earned_here, advantage_here = values.get(n, (None, None))
        row = attack_row(team, tasks[proposal.task], proposal)
        group = f"{'/'.join(map(str, path))}/{proposal.task}"
        row = dataclasses.replace(row, reward=earned_here, advantage=advantage_here)
        rows.append(stamp(row, config, group=group, index=n, phase="propose", **tags))
    return rows, samples


def _said(proposal: Proposal) -> str:
    return proposal.attack.instruction if proposal.attack is not None else ""


def _compare(control: Row, continued: Row | None, attack: Attack | None) -> Fork | None:
    """c, b and v; None when the control or the continuation has no verdict because something failed."""
    if control.error is not None or control.good is None:
        return None
    if continued is None:  # it waited, or the control ended before the attack's transition: nothing changed
        return Fork(control.good, bad=False, valid=False)
    if continued.error is not None or continued.good is None:
        return None
    valid = continued.rendered is True and continued.feasible is not False
    return Fork(control.good, bad=not continued.good, valid=valid)


def attack_row(team: Team, task: Task, proposal: Proposal) -> Row:
    """A proposal as a ledger row: one step a question."""
    answers = zip(proposal.prompts, proposal.texts, strict=False)
    return Row(
        role="adversary",
        policy="adversary",
        checkpoint=team.checkpoints["adversary"],
        task_id=task.id,
        task_hash=task.content_hash,
        family=task.family,
        stratum=task.stratum,
        setting=task.setting,
        generation=task.generation,
        split=task.split,
        goal=task.goal,
        world="symbolic",
        world_version="",
        seed=proposal.seed,
        steps=tuple(Step(prompt, text, "", proposal.problem) for prompt, text in answers),
        attack=proposal.attack,
        valid=not proposal.malformed if proposal.error is None else None,
        error=proposal.error,
    )


def asked_for(
    config: RunConfig, tasks: Sequence[Task], count: int, path: Sequence[str | int]
) -> list[tuple[int, Kind, int]]:
    """`count` proposals against each task, in groups; where there are both kinds, they alternate over tasks too."""
    return [
        (index, kind_of(config, index + k), derive(config.seed, *path, task.id, k))
        for index, task in enumerate(tasks)
        for k in range(count)
    ]
