"""Studies: one configuration with several training seeds, and each mechanism of the method switched off.

Each training seed is a run of its own (`training.run`) in `seed<N>/` of the study's folder, an ablation's in
`ablate/<switch>/seed<N>/`: done again with the same folder, finished steps are skipped, so a study goes on where it
stopped and grows by asking for more seeds or switches. The numbers are `report.summary`'s, from the ledgers.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from advsim.config import ABLATIONS, Evaluation, RunConfig
from advsim.report.study import ABLATED
from advsim.training.stage2 import rounds
from advsim.training.steps import RunError


def seeded(config: RunConfig, train_seeds: int, rollout_seeds: int | None) -> list[RunConfig]:
    """The full method once a training seed: `config.seed` and the numbers after it.

    Every block of the evaluation has R rollout seeds, or those that the configuration gives it where R is None.
    """
    blocks = config.evaluation
    if rollout_seeds is not None:
        seeds = tuple(range(rollout_seeds))
        blocks = tuple(block.model_copy(update={"seeds": seeds}) for block in blocks)
    return [
        config.model_copy(update={"seed": config.seed + number, "evaluation": blocks}) for number in range(train_seeds)
    ]


def ablated(config: RunConfig, switch: str) -> RunConfig:
    """A configuration without one mechanism.

    Only the last checkpoint is evaluated, and not in the browser (unless nothing else is asked for). Where there are
    more rounds of stage 2 than in the full method, the adversaries evaluated are spread over them alike.

    Raises:
        KeyError: The switch is none of `config.ABLATIONS`.
    """
    switches = config.switches.model_copy(update=ABLATIONS[switch])
    without = config.model_copy(update={"switches": switches})
    more, fewer = rounds(without), rounds(config)

    def attacker(name: str) -> str:
        number = name.removeprefix("adversary")
        if number == name or not number or not fewer:
            return name
        return f"adversary{max(1, round(int(number) * more / fewer))}"

    def block(given: Evaluation) -> Evaluation:
        attackers = tuple(attacker(name) for name in given.attackers)
        return given.model_copy(update={"checkpoints": ("robust",), "attackers": attackers})

    kept = [given for given in config.evaluation if given.world != "browser"] or list(config.evaluation)
    return without.model_copy(update={"evaluation": tuple(block(given) for given in kept)})


def jobs(
    config: RunConfig, out: Path, *, train_seeds: int, rollout_seeds: int | None, switches: Sequence[str] = ()
) -> list[tuple[RunConfig, Path]]:
    """A study's runs and their folders: the full method's first, then each ablation's.

    Raises:
        KeyError: A switch is none of `config.ABLATIONS`.
    """
    full = seeded(config, train_seeds, rollout_seeds)
    found = [(one, out / f"seed{one.seed}") for one in full]
    for switch in switches:
        found += [(ablated(one, switch), out / ABLATED / switch / f"seed{one.seed}") for one in full]
    return found


def study(work: Sequence[tuple[RunConfig, Path]], at_once: int = 1) -> None:
    """Does the runs; what is finished is skipped.

    Args:
        work: Configurations and folders, as `jobs` gives them.
        at_once: How many at a time. More than one are processes of their own, which say what they do in `FOLDER.log`.

    Raises:
        RunError: One of several processes failed, after the others of its kind have ended. A run in this process
            raises as `training.run.run` does.
        ConfigError, TaskFileError: A run could not be done; none was begun.
    """
    from advsim.training.console import console
    from advsim.training.run import check, run

    for config, _ in work:
        check(config)
    if at_once == 1:
        for number, (config, folder) in enumerate(work, 1):
            console.print(f"run {number} of {len(work)}: {folder}", soft_wrap=True)
            run(config, folder)
        return
    with ThreadPoolExecutor(at_once) as pool:
        failed = [line for line in pool.map(lambda job: _apart(*job), work) if line]
    if failed:
        raise RunError("; ".join(failed))


def _apart(config: RunConfig, folder: Path) -> str:
    """One run in a process of its own; what went wrong, or nothing."""
    from advsim.training.console import console

    folder.parent.mkdir(parents=True, exist_ok=True)
    log = folder.with_name(f"{folder.name}.log")
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "config.yaml"
        file.write_text(config.model_dump_json(), encoding="utf-8")  # JSON is YAML
        console.print(f"begun: {folder}", soft_wrap=True)
        with log.open("a", encoding="utf-8") as told:
            command = [sys.executable, "-m", "advsim.cli", "run", str(file), "--out", str(folder)]
            code = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=told, stderr=told, check=False).returncode
    console.print(f"{'done' if code == 0 else f'failed ({code})'}: {folder}", soft_wrap=True)
    return "" if code == 0 else f"{folder}: failed with exit code {code}; its last lines are in {log}"
