"""The executor's half of a round, alike in both stages: measure p̂ of the inputs, then learn from groups of them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from advsim.seeds import derive
from advsim.training.console import Phase
from advsim.training.rollouts import Input, play, score, solve_rates
from advsim.training.steps import RunFolder, commit, contents, read_json, write_json
from advsim.training.team import Team


async def executor_epochs(
    run: RunFolder,
    team: Team,
    name: str,
    start: Path | None,
    inputs: Sequence[Input],
    *,
    rollouts: int,
    group: int,
    epochs: int,
    reuse: bool,
    update: int,
    label: str,
    **tags: Any,
) -> None:
    """One step an epoch, each with fresh rollouts of the executor as it is then.

    Args:
        run: The run.
        team: The policies.
        name: The steps' name; the epoch is added.
        start: The executor's adapter before.
        inputs: What it learns on.
        rollouts: K, for p̂.
        group: G, for the baseline.
        epochs: How many.
        reuse: Whether the first epoch's groups are the rollouts that measured p̂.
        update: The executor's updates before these.
        label: The checkpoint's name in `adapters/`.
        tags: Provenance for the rows.
    """
    config = run.config

    def epoch(number: int, before: Path | None, rated: Path | None) -> Any:
        async def work(folder: Path) -> None:
            team.use("executor", before)
            team.engine.forget()
            rows, groups = [], None
            if rated is None:
                with Phase(run, team, f"{name} assess") as phase:
                    measured = await play(
                        config,
                        team.executor(),
                        inputs,
                        rollouts,
                        (name, "assess"),
                        **tags,
                        phase="update" if reuse else "assess",
                        update=update,
                    )
                    rates = solve_rates(measured, len(inputs))
                    phase.rates(rates)
                if reuse:
                    groups = measured
                else:
                    rows += [rollout.row for rollout in measured]
            else:
                rates = read_json(rated / "rates.json")
            if groups is None:
                with Phase(run, team, f"{name} rollouts {number}"):
                    groups = await play(
                        config,
                        team.executor(),
                        inputs,
                        group,
                        (name, "group", number),
                        **tags,
                        phase="update",
                        update=update + number - 1,
                    )
            scored, samples = score(config, groups, rates)
            with Phase(run, team, f"{name} update {number}") as phase:
                phase.trained([team.train("executor", samples, derive(config.seed, name, "update", number))])
            run.write_rows(f"{name}-{number}", [*rows, *scored])
            write_json(folder / "rates.json", rates)
            team.save("executor", folder / "executor")

        return work

    before, rated = start, None
    for number in range(1, epochs + 1):
        done = await run.step(f"{name}-{number}", epoch(number, before, rated))
        before, rated = done / "executor", rated or done
    if before is not None:
        publish(run, label, before)


def publish(run: RunFolder, label: str, folder: Path) -> None:
    """Puts a checkpoint where people look for it: `adapters/<label>`."""
    target = run.path / "adapters" / label
    if target.is_dir() and contents(target) == contents(folder):
        return
    draft = target.with_name(f".{label}.tmp")
    shutil.rmtree(draft, ignore_errors=True)
    shutil.copytree(folder, draft)
    commit(draft, target)
