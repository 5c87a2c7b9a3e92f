"""Stage 1: curriculum and executor (`docs/method.md` §3.8), a round as a list of steps.

propose → assess → update the curriculum → propose afresh → assess and update the executor (once an epoch)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from advsim.config import RunConfig
from advsim.seeds import derive
from advsim.task import Task
from advsim.training.console import Phase
from advsim.training.executor_update import executor_epochs
from advsim.training.proposals import Proposal, distinct, learn, propose, record_only, top_up
from advsim.training.rollouts import Input, play, solve_rates
from advsim.training.steps import RunFolder, read_json, write_json
from advsim.training.team import Team


def capability(round_: int) -> str:
    """The name of the executor's checkpoint after a round; round 0 is the base."""
    return f"capability{round_}" if round_ else "base"


def executor_after(run: RunFolder, round_: int) -> Path | None:
    """The folder of the executor's adapter after a round of stage 1."""
    if round_ == 0:
        return None
    return run.folder(f"stage1.{round_:02d}.5-executor-{run.config.stage1.executor_epochs}") / "executor"


def curriculum_after(run: RunFolder, round_: int) -> Path | None:
    """The folder of the curriculum's adapter after a round."""
    return run.folder(f"stage1.{round_:02d}.3-curriculum") / "curriculum" if round_ else None


async def stage1(run: RunFolder, team: Team) -> None:
    """All rounds; what is done is skipped."""
    for round_ in range(1, run.config.stage1.rounds + 1):
        await _round(run, team, round_)


async def _round(run: RunFolder, team: Team, round_: int) -> None:
    config, name = run.config, f"stage1.{round_:02d}"
    plan = config.stage1
    tags: dict[str, Any] = {"stage": "stage1", "round": round_}

    async def first_proposals(folder: Path) -> None:
        prepare(run, team, executor_after(run, round_ - 1), curriculum_after(run, round_ - 1))
        with Phase(run, team, f"{name} propose") as phase:
            proposals = await propose(config, team, round_, plan.proposals, (name, "propose"))
            phase.say(valid=sum(p.task is not None for p in proposals), of=len(proposals))
        write_json(folder / "proposals.json", [p.dump() for p in proposals])

    async def assess(folder: Path) -> None:
        prepare(run, team, executor_after(run, round_ - 1), curriculum_after(run, round_ - 1))
        tasks = distinct(load_proposals(proposed))
        with Phase(run, team, f"{name} assess") as phase:
            done = await play(
                config,
                team.executor(),
                [Input(task) for task in tasks],
                plan.rollouts,
                (name, "assess"),
                **tags,
                phase="assess",
                update=(round_ - 1) * plan.executor_epochs,
            )
            rates = solve_rates(done, len(tasks))
            phase.rates(rates)
        run.write_rows(f"{name}.2-assess", [rollout.row for rollout in done])
        write_json(folder / "rates.json", {task.id: rate for task, rate in zip(tasks, rates, strict=True)})

    async def update_curriculum(folder: Path) -> None:
        prepare(run, team, executor_after(run, round_ - 1), curriculum_after(run, round_ - 1))
        proposals = load_proposals(proposed)
        rows, samples = learn(
            config,
            team,
            proposals,
            read_json(assessed / "rates.json"),
            (name, "replay"),
            **tags,
            phase="propose",
            update=(round_ - 1) * plan.curriculum_epochs,
        )
        with Phase(run, team, f"{name} update curriculum") as phase:
            reports = [
                team.train("curriculum", samples, derive(config.seed, name, "curriculum", epoch))
                for epoch in range(plan.curriculum_epochs)
            ]
            phase.trained(reports)
        run.write_rows(f"{name}.3-curriculum", rows)
        team.save("curriculum", folder / "curriculum")

    async def fresh_proposals(folder: Path) -> None:
        prepare(run, team, executor_after(run, round_ - 1), learned / "curriculum")
        with Phase(run, team, f"{name} propose afresh") as phase:
            await propose_tasks(
                run,
                team,
                folder,
                f"{name}.4-fresh",
                round_,
                plan.proposals,
                phase,
                **tags,
                phase="fresh",
                update=round_ * plan.curriculum_epochs,
            )

    proposed = await run.step(f"{name}.1-propose", first_proposals)
    assessed = await run.step(f"{name}.2-assess", assess)
    learned = await run.step(f"{name}.3-curriculum", update_curriculum)
    fresh = await run.step(f"{name}.4-fresh", fresh_proposals)
    await executor_epochs(
        run,
        team,
        f"{name}.5-executor",
        executor_after(run, round_ - 1),
        [Input(task) for task in load_tasks(fresh)],
        rollouts=plan.rollouts,
        group=plan.group,
        epochs=plan.executor_epochs,
        reuse=plan.reuse,
        update=(round_ - 1) * plan.executor_epochs,
        label=capability(round_),
        **tags,
    )


def prepare(
    run: RunFolder,
    team: Team,
    executor: Path | None,
    curriculum: Path | None = None,
    adversary: Path | None = None,
) -> None:
    """Gives every role its weights and clears what the step before left, so that a step depends on its inputs only."""
    team.use("executor", executor)
    team.use("curriculum", curriculum)
    team.use("adversary", adversary)
    team.engine.forget()


async def propose_tasks(
    run: RunFolder,
    team: Team,
    folder: Path,
    name: str,
    round_: int,
    count: int,
    console: Phase,
    **provenance: Any,
) -> None:
    """Proposals and, where too few are valid, generated tasks: `proposals.json`, `tasks.json`, the ledger's part."""
    proposals = await propose(run.config, team, round_, count, (name,))
    own = distinct(proposals)
    added = top_up(run.config, own, count, (name,))
    console.say(valid=sum(p.task is not None for p in proposals), of=count, distinct=len(own), generated=len(added))
    run.write_rows(name, record_only(run.config, team, proposals, **provenance))
    write_json(folder / "proposals.json", [p.dump() for p in proposals])
    write_json(
        folder / "tasks.json",
        {"proposed": [t.model_dump(mode="json") for t in own], "generated": [t.model_dump(mode="json") for t in added]},
    )


def load_proposals(folder: Path) -> list[Proposal]:
    """What a proposing step wrote."""
    return [Proposal.restore(item) for item in read_json(folder / "proposals.json")]


def load_tasks(folder: Path) -> list[Task]:
    """The round's tasks: proposed ones, then generated ones."""
    data = read_json(folder / "tasks.json")
    return [Task.model_validate(item) for item in (*data["proposed"], *data["generated"])]


def stage1_updates(config: RunConfig) -> int:
    """How often stage 1 updates the executor."""
    return config.stage1.rounds * config.stage1.executor_epochs
