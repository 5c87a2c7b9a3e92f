"""Stage 2: adversary and executor, the curriculum frozen (`docs/method.md` §3.9), a round as a list of steps.

propose → assess clean → controls, attacks, forks, update the adversary → one fresh attack a task →
mixture → assess and update the executor (once an epoch)
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from advsim.config import RunConfig
from advsim.rollout import Episode
from advsim.seeds import derive
from advsim.task import Attack, Task
from advsim.training import attacks
from advsim.training.console import Phase
from advsim.training.executor_update import executor_epochs, publish
from advsim.training.learner import UpdateReport
from advsim.training.mixture import Attacked, mix
from advsim.training.rollouts import Input, Rollout, play, solve_rates, stamp
from advsim.training.stage1 import (
    curriculum_after,
    executor_after,
    load_tasks,
    prepare,
    propose_tasks,
    stage1_updates,
)
from advsim.training.steps import RunError, RunFolder, read_json, write_json
from advsim.training.team import Team


def robust(round_: int) -> str:
    """The name of the executor's checkpoint after a round."""
    return f"robust{round_}"


def rounds(config: RunConfig) -> int:
    """Rounds of stage 2. Without stage 1 there are more, so that as many executor rollouts are planned as with it."""
    if config.switches.stage1:
        return config.stage2.rounds
    first, second = config.stage1, config.stage2
    mine = first.rollouts + _update_rollouts(first.rollouts, first.group, first.executor_epochs, first.reuse)
    # p̂, controls, forks of every control for every attack, then the executor's own.
    theirs = second.rollouts * (2 + second.adversary_group * second.adversary_epochs)
    theirs += _update_rollouts(second.rollouts, second.executor_group, second.executor_epochs, second.reuse)
    return second.rounds + max(1, round(first.rounds * first.proposals * mine / (second.proposals * theirs)))


def _update_rollouts(rollouts: int, group: int, epochs: int, reuse: bool) -> int:
    """Rollouts of one task in an executor's update: those that measure p̂, then a group an epoch."""
    return rollouts + group * (epochs - reuse)


def robust_after(run: RunFolder, round_: int) -> Path | None:
    """The folder of the executor's adapter after a round of stage 2; round 0: where it starts from."""
    if round_ == 0:
        return executor_after(run, run.config.stage1.rounds) if run.config.switches.stage1 else None
    return run.folder(f"stage2.{round_:02d}.5-executor-{run.config.stage2.executor_epochs}") / "executor"


def adversary_after(run: RunFolder, round_: int) -> Path | None:
    """The folder of the adversary's adapter after a round."""
    return run.folder(f"stage2.{round_:02d}.3-adversary") / "adversary" if round_ else None


async def stage2(run: RunFolder, team: Team) -> None:
    """All rounds; what is done is skipped. Raises RunError when stage 1 is not done."""
    start = robust_after(run, 0)
    if start is not None and not start.is_dir():
        raise RunError(f"{run.path}: stage 1 is not done here; run `advsim stage1` with the same --out first")
    for round_ in range(1, rounds(run.config) + 1):
        await _round(run, team, round_)


async def _round(run: RunFolder, team: Team, round_: int) -> None:
    config, name = run.config, f"stage2.{round_:02d}"
    plan = config.stage2
    tags: dict[str, Any] = {"stage": "stage2", "round": round_}
    frozen = curriculum_after(run, config.stage1.rounds) if config.switches.stage1 else None
    before = stage1_updates(config) if config.switches.stage1 else 0
    updates = before + (round_ - 1) * plan.executor_epochs

    def players(adversary_round: int) -> None:
        prepare(run, team, robust_after(run, round_ - 1), frozen, adversary_after(run, adversary_round))

    async def propose(folder: Path) -> None:
        players(round_ - 1)
        with Phase(run, team, f"{name} propose") as phase:
            # The rounds of both stages are counted on in the prompt.
            number = config.stage1.rounds + round_
            await propose_tasks(
                run, team, folder, f"{name}.1-propose", number, plan.proposals, phase, **tags, phase="propose"
            )

    async def assess(folder: Path) -> None:
        players(round_ - 1)
        tasks = load_tasks(proposed)
        with Phase(run, team, f"{name} assess clean") as phase:
            done = await play(
                config,
                team.executor(),
                [Input(task) for task in tasks],
                plan.rollouts,
                (name, "assess"),
                **tags,
                phase="assess",
                update=updates,
            )
            rates = solve_rates(done, len(tasks))
            phase.rates(rates)
        run.write_rows(f"{name}.2-assess", [rollout.row for rollout in done])
        write_json(folder / "rates.json", rates)

    async def update_adversary(folder: Path) -> None:
        players(round_ - 1)
        await train_adversary(run, team, folder, name, solvable(run, round_), updates, **tags)

    async def attack(folder: Path) -> None:
        players(round_)
        await fresh_attacks(run, team, folder, name, solvable(run, round_), updates, **tags)

    proposed = await run.step(f"{name}.1-propose", propose)
    await run.step(f"{name}.2-assess", assess)
    trained = await run.step(f"{name}.3-adversary", update_adversary)
    publish(run, f"adversary{round_}", trained / "adversary")
    await run.step(f"{name}.4-attacks", attack)
    await executor_epochs(
        run,
        team,
        f"{name}.5-executor",
        robust_after(run, round_ - 1),
        inputs(run, round_),
        rollouts=plan.rollouts,
        group=plan.executor_group,
        epochs=plan.executor_epochs,
        reuse=plan.reuse,
        update=updates,
        label=robust(round_),
        **tags,
    )


def solvable(run: RunFolder, round_: int) -> list[Task]:
    """The round's tasks with p̂ ≥ η."""
    name = f"stage2.{round_:02d}"
    tasks = load_tasks(run.folder(f"{name}.1-propose"))
    rates = read_json(run.folder(f"{name}.2-assess") / "rates.json")
    return [t for t, rate in zip(tasks, rates, strict=True) if rate is not None and rate >= run.config.stage2.eta]


def inputs(run: RunFolder, round_: int) -> list[Input]:
    """The executor's mixture in a round: as many inputs as there are solvable tasks (all tasks where there is none)."""
    config = run.config
    tasks = solvable(run, round_) or load_tasks(run.folder(f"stage2.{round_:02d}.1-propose"))
    history = [pair for earlier in range(1, round_) for pair in _attacks(run, earlier)]
    return mix(
        config.stage2.mixture,
        tasks,
        _attacks(run, round_),
        history,
        use_history=config.switches.history,
        seed=derive(config.seed, "stage2", round_),
    )


def _attacks(run: RunFolder, round_: int) -> list[Attacked]:
    items = read_json(run.folder(f"stage2.{round_:02d}.4-attacks") / "attacks.json")
    return [(Task.model_validate(item["task"]), Attack(**item["attack"])) for item in items]


async def controls(
    run: RunFolder, team: Team, tasks: list[Task], count: int, path: tuple[str, ...], **tags: Any
) -> list[list[Rollout]]:
    """Clean episodes of each task, kept for forking."""
    done = await play(
        run.config, team.executor(), [Input(task) for task in tasks], count, path, keep=True, phase="control", **tags
    )
    return [done[i * count : (i + 1) * count] for i in range(len(tasks))]


async def train_adversary(
    run: RunFolder, team: Team, folder: Path, name: str, tasks: list[Task], updates: int, **tags: Any
) -> None:
    """Controls once; then, an epoch at a time, proposals in groups, forks, rewards, an update."""
    config, plan = run.config, run.config.stage2
    with Phase(run, team, f"{name} controls"):
        kept = await controls(run, team, tasks, plan.rollouts, (name, "control"), update=updates, **tags)
    rows = [rollout.row for own in kept for rollout in own]
    episodes: list[list[Episode]] = [[r.episode for r in own if r.episode is not None] for own in kept]
    reports: list[UpdateReport] = []
    for epoch in range(plan.adversary_epochs):
        path = (name, "attack", epoch)
        with Phase(run, team, f"{name} attack") as phase:
            asked = attacks.asked_for(config, tasks, plan.adversary_group, path)
            proposals = await attacks.propose(team, tasks, episodes, asked)
            phase.say(well_formed=sum(not p.malformed for p in proposals), of=len(proposals))
        with Phase(run, team, f"{name} forks") as phase:
            forks = await attacks.fork_all(config, proposals, episodes)
            phase.say(forks=sum(fork is not None for own in forks for fork in own))
        with Phase(run, team, f"{name} update adversary") as phase:
            # Not among the forks: what a rollout phase spends outside the engine is a figure that people read.
            scored, samples = attacks.score(config, team, tasks, proposals, kept, forks, path, update=updates, **tags)
            rows += scored
            phase.say(mean_reward=_mean([r.reward for r in scored if r.role == "adversary" and r.reward is not None]))
            reports.append(team.train("adversary", samples, derive(config.seed, *path, "update")))
            phase.trained(reports[-1:])
    run.write_rows(f"{name}.3-adversary", rows)
    team.save("adversary", folder / "adversary")


async def fresh_attacks(
    run: RunFolder, team: Team, folder: Path, name: str, tasks: list[Task], updates: int, **tags: Any
) -> None:
    """One attack a task by the updated adversary: `attacks.json`."""
    config, path = run.config, (name, "fresh")
    asked = attacks.asked_for(config, tasks, 1, path)
    rows, episodes = [], [[] for _ in tasks]  # type: ignore[var-annotated]
    if any(kind == "reactive" for _, kind, _ in asked):
        kept = await controls(run, team, tasks, 1, (name, "walk"), update=updates, **tags)
        rows = [rollout.row for own in kept for rollout in own]
        episodes = [[r.episode for r in own if r.episode is not None] for own in kept]
    with Phase(run, team, f"{name} fresh attacks") as phase:
        proposals = await attacks.propose(team, tasks, episodes, asked)
        phase.say(attacks=sum(p.attack is not None for p in proposals), of=len(proposals))
    rows += [
        stamp(attacks.attack_row(team, tasks[p.task], p), config, phase="fresh", index=n, update=updates, **tags)
        for n, p in enumerate(proposals)
    ]
    run.write_rows(f"{name}.4-attacks", rows)
    found = [
        {"task": tasks[p.task].model_dump(mode="json"), "attack": dataclasses.asdict(p.attack)}
        for p in proposals
        if p.attack is not None
    ]
    write_json(folder / "attacks.json", found)


def _mean(values: list[float]) -> float | None:
    return round(sum(values) / len(values), 3) if values else None
