"""A run's last part: its checkpoints under its attackers, in simulation and in the browser, and the report."""

from __future__ import annotations

import re
from contextlib import nullcontext
from pathlib import Path
from typing import Literal

from advsim.agents.protocol import Attacker, Crowd, Executor
from advsim.config import ConfigError, Evaluation, RunConfig
from advsim.console import progress
from advsim.evaluate import evaluate_under, spread, worlds
from advsim.task import Task
from advsim.training.console import Phase, console
from advsim.training.rollouts import stamp
from advsim.training.stage1 import executor_after
from advsim.training.stage2 import adversary_after, robust_after, rounds
from advsim.training.steps import RunFolder, write_json
from advsim.training.team import Team
from benchmark_forms import load


async def evaluate_run(run: RunFolder, team: Team) -> None:
    """Every block of the configuration; one step a checkpoint. What is done is skipped."""
    for number, block in enumerate(run.config.evaluation, 1):
        for label in labels(run.config, block.checkpoints, "checkpoint"):
            await run.step(f"eval.{number:02d}.{block.world}.{label}", _work(run, team, number, block, label))


def labels(config: RunConfig, names: tuple[str, ...], what: Literal["checkpoint", "attacker"]) -> list[str]:
    """Full names: `robust` becomes the last one; a stage without rounds leads back to the base. Each once.

    Raises:
        ConfigError: A round that the run does not have.
    """
    last = {
        "capability": config.stage1.rounds if config.switches.stage1 else 0,
        "robust": rounds(config),
        "adversary": rounds(config),
    }
    found: list[str] = []
    for name in names:
        stem, number = re.fullmatch(r"([a-z]+)(\d*)", name).groups()  # type: ignore[union-attr]
        label = name
        if stem in last:
            round_ = int(number) if number else last[stem]
            if round_ > last[stem]:
                raise ConfigError(f"evaluation: {what} {name!r} is asked for, but the run has {last[stem]} such rounds")
            if round_ == 0:
                # Without its stage the executor is what the stage before left; without an adversary nobody attacks.
                label = f"capability{last['capability']}" if stem == "robust" and last["capability"] else "base"
            else:
                label = f"{stem}{round_}"
        if label not in found and not (what == "attacker" and label == "base"):
            found.append(label)
    return found


def _work(run: RunFolder, team: Team, number: int, block: Evaluation, label: str):  # type: ignore[no-untyped-def]
    config = run.config

    async def work(folder: Path) -> None:
        tasks = spread(load(block.tasks), block.limit)
        team.engine.forget()
        executor = _executor(run, team, label)
        jobs = config.engine.browser if block.world == "browser" else config.engine.episodes
        names = labels(config, block.attackers, "attacker")
        attackers = [_attacker(run, team, name, tasks) for name in names]
        crowd, what = Crowd(), f"{block.world} {label}"
        # A page in the browser takes its time: without waiting for all tabs, the clock would decide who is batched.
        together = team.engine.together(crowd) if block.world == "browser" else nullcontext()
        async with worlds(block.world, jobs=jobs) as make_world:
            with Phase(run, team, what) as phase, progress(what) as on_progress, together:
                # All attackers side by side: few episodes are long, and their last turns would otherwise run alone.
                rows = await evaluate_under(
                    attackers,
                    tasks,
                    make_world,
                    executor,
                    seeds=block.seeds,
                    max_actions=config.episode.max_actions,
                    concurrency=jobs,
                    retries=config.episode.retries,
                    crowd=crowd,
                    on_progress=on_progress,
                )
                good = {name: sum(row.good is True for row in rows if row.attacker == name) for name in names}
                phase.say(
                    good=good, of=len(rows) // max(1, len(names)), errors=sum(row.error is not None for row in rows)
                )
        rows = [stamp(row, config, stage="eval", phase="eval", group=f"eval/{number}") for row in rows]
        run.write_rows(f"eval.{number:02d}.{block.world}.{label}", rows)
        write_json(folder / "rows.json", len(rows))

    return work


def _executor(run: RunFolder, team: Team, label: str) -> Executor:
    folder = None
    if label.startswith("capability"):
        folder = executor_after(run, int(label.removeprefix("capability")))
    elif label.startswith("robust"):
        folder = robust_after(run, int(label.removeprefix("robust")))
    adapter, checkpoint = team.add(label, folder)
    return team.checkpoint(adapter, checkpoint, label)


def _attacker(run: RunFolder, team: Team, name: str, tasks: list[Task]) -> Attacker | None:
    if not name.startswith("adversary"):
        from advsim.agents.template import make_attacker

        return make_attacker(name, tasks)
    folder = adversary_after(run, int(name.removeprefix("adversary")))
    adapter, checkpoint = team.add(name, folder)
    return team.attacker("reactive", adapter, checkpoint, name)


def write_report(run: RunFolder) -> Path:
    """`report.html`, from the ledger alone; written anew each time."""
    from advsim.report import html

    target = html.write(run.path, run.ledger.path)
    console.print(f"report: {target}", soft_wrap=True)
    return target
