"""A run's last part: its checkpoints under its attackers, in simulation and in the browser, and the report."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from advsim.agents.protocol import Attacker, Crowd, Executor
from advsim.config import ConfigError, Evaluation, RunConfig
from advsim.console import counting
from advsim.evaluate import evaluate, spread, worlds
from advsim.ledger import Row
from advsim.task import Task
from advsim.training.console import Phase, console
from advsim.training.rollouts import stamp
from advsim.training.stage1 import executor_after
from advsim.training.stage2 import adversary_after, robust_after, rounds
from advsim.training.steps import RunFolder, write_json
from advsim.training.team import Team
from benchmark_forms import load


@dataclass(frozen=True, slots=True)
class Cell:
    """A checkpoint under all attackers of a block of the evaluation: one step of the run.

    Attributes:
        number: The block's, from 1. block: What is asked of it. label: The checkpoint, such as `robust3`.
    """

    number: int
    block: Evaluation
    label: str

    @property
    def name(self) -> str:
        """The step's."""
        return f"eval.{self.number:02d}.{self.block.world}.{self.label}"


def missing(run: RunFolder) -> list[Cell]:
    """Every checkpoint of every block, without those that are done."""
    blocks = enumerate(run.config.evaluation, 1)
    cells = [
        Cell(n, block, label) for n, block in blocks for label in labels(run.config, block.checkpoints, "checkpoint")
    ]
    return [cell for cell in cells if not run.done(cell.name)]


async def evaluate_run(run: RunFolder, cells: Sequence[Cell], rows_of: Callable[[Cell], Awaitable[list[Row]]]) -> None:
    """Keeps the rows of each cell as a step of its own."""
    for cell in cells:

        async def work(folder: Path, cell: Cell = cell) -> None:
            rows = await rows_of(cell)
            run.write_rows(cell.name, rows)
            write_json(folder / "rows.json", len(rows))

        await run.step(cell.name, work)


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


async def play(run: RunFolder, team: Team, cell: Cell, show: Callable[[str, int, int, str], None]) -> list[Row]:
    """A cell's episodes.

    Args:
        run: Whose checkpoints they are. team: Who plays.
        cell: Which.
        show: Moves a bar; see `console.Bars.show`.

    Returns:
        Their rows; they depend on the run's configuration and checkpoints and on nothing that was played before.
    """
    config, block = run.config, cell.block
    tasks = spread(load(block.tasks), block.limit)
    team.engine.forget()
    executor = _executor(run, team, cell.label)
    jobs = config.engine.browser if block.world == "browser" else config.engine.episodes
    names = labels(config, block.attackers, "attacker")
    attackers = [_attacker(run, team, name, tasks) for name in names]
    crowd = Crowd()
    # A page in the browser takes its time: without waiting for all tabs, the clock would decide who is batched.
    together = team.engine.together(crowd) if block.world == "browser" else nullcontext()
    async with worlds(block.world, jobs=jobs) as make_world:
        with Phase(run, team, f"{block.world} {cell.label}") as phase, together:
            # All attackers side by side: few episodes are long, and their last turns would otherwise run alone.
            rows = await evaluate(
                tasks,
                make_world,
                executor,
                attackers,
                seeds=block.seeds,
                max_actions=config.episode.max_actions,
                concurrency=jobs,
                retries=config.episode.retries,
                crowd=crowd,
                on_progress=counting(cell.name, show, lambda: team.engine.stats.sampled),
            )
            good = {name: sum(row.good is True for row in rows if row.attacker == name) for name in names}
            errors = sum(row.error is not None for row in rows)
            phase.say(good=good, of=len(rows) // max(1, len(names)), errors=errors)
    return [stamp(row, config, stage="eval", phase="eval", group=f"eval/{cell.number}") for row in rows]


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
