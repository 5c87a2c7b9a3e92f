"""The whole job: stage 1, stage 2, evaluation, report. In a folder that holds a part of it, it goes on from there."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from advsim.config import ConfigError, RunConfig
from advsim.llm.backbone import fingerprint
from advsim.training.apart import players
from advsim.training.console import console
from advsim.training.evaluation import evaluate_run, labels, missing, write_report
from advsim.training.stage1 import stage1 as do_stage1
from advsim.training.stage2 import stage2 as do_stage2
from advsim.training.steps import open_run
from advsim.training.team import Team
from benchmark_forms import SETTINGS, families, load
from benchmark_forms.files import shipped

PARTS = ("stage1", "stage2", "evaluate", "report")


def run(config: RunConfig, out: Path, parts: Sequence[str] = PARTS, processes: int = 1) -> None:
    """Does the parts that are asked for; finished steps are skipped.

    Args:
        config: The run's configuration.
        out: Its folder.
        parts: Of `PARTS`, in order.
        processes: How many checkpoints are evaluated at a time; nothing but the time depends on it.

    Raises:
        ConfigError: The backbone or a setting cannot be used.
        RunError: The folder belongs to another configuration or process, or an earlier part is missing.
        TaskFileError: The evaluation's tasks cannot be read.
    """
    if unknown := set(parts) - set(PARTS):
        raise ValueError(f"expected parts of {', '.join(PARTS)}, got {', '.join(sorted(unknown))}")
    began = time.perf_counter()
    check(config, "evaluate" in parts)
    with open_run(out, config, fingerprint(config.backbone)) as folder:
        team = Team(config, folder.scratch)

        async def work() -> None:
            if "stage1" in parts and config.switches.stage1:
                await do_stage1(folder, team)
            if "stage2" in parts:
                await do_stage2(folder, team)
            if "evaluate" in parts:
                cells = missing(folder)
                with players(folder, team, cells, processes) as rows_of:
                    await evaluate_run(folder, cells, rows_of)

        with _settled():
            asyncio.run(work())
        if "report" in parts:
            write_report(folder)
        console.print(f"{', '.join(parts)} done in {time.perf_counter() - began:.0f} s: {out}", soft_wrap=True)


@contextmanager
def _settled() -> Iterator[None]:
    """Full garbage collections leave out what is there already: libraries and backbone, 0.2 s each time."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def check(config: RunConfig, evaluate: bool = True) -> None:
    """Finds out now rather than in an hour what a run could not do. Raises ConfigError and TaskFileError."""
    fingerprint(config.backbone)
    tasks = config.tasks
    if tasks.setting not in SETTINGS:
        raise ConfigError(f"tasks.setting: expected one of {', '.join(SETTINGS)}, got {tasks.setting!r}")
    if unknown := [name for name in tasks.held_out if name not in families()]:
        raise ConfigError(f"tasks.held_out: expected families (of {', '.join(families())}), got {unknown[0]!r}")
    if len(set(tasks.held_out)) == len(families()):
        raise ConfigError("tasks.held_out: expected that some family is left for training, got all of them")
    shipped()  # no proposal may repeat one
    for block in config.evaluation if evaluate else ():
        load(block.tasks)
        labels(config, block.checkpoints, "checkpoint")
        labels(config, block.attackers, "attacker")


def stage1(config: RunConfig, out: Path) -> None:
    """Curriculum and executor: the first half of `run`."""
    run(config, out, ("stage1",))


def stage2(config: RunConfig, out: Path) -> None:
    """Adversary and executor, in the folder where stage 1 was done: the second half."""
    run(config, out, ("stage2",))
