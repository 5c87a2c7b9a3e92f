"""A study's rollouts: several training seeds of one configuration, and of its ablations, as arrays of counts.

A study's folder holds `seed<N>/ledger` for each training seed of the full method, and
`ablate/<switch>/seed<N>/ledger` for those of each ablation. Any of these may be `seed<N>.parquet` instead: the same
ledger, abridged (`report.abridged`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from advsim.ledger import Ledger, LedgerError
from advsim.report import abridged, tables
from advsim.report.stats import Counts, Floats
from advsim.report.tables import Rollout

METRICS = ("strict", "correct_fields", "attack_success")
ABLATED = "ablate"
_SEED = re.compile(r"seed\d+")


@dataclass(frozen=True, slots=True)
class Runs:
    """The training seeds of one configuration.

    Attributes:
        rollouts: Of all of them, in the order of their ledgers. digests: Each ledger's, by training seed.
    """

    rollouts: list[Rollout]
    digests: dict[int, str]

    @property
    def seeds(self) -> tuple[int, ...]:
        """The training seeds, sorted."""
        return tuple(sorted(self.digests))

    @property
    def facts(self) -> dict[str, str]:
        """Where the numbers come from, read off the rows, as a report's first lines say it."""
        evaluated = [r for r in self.rollouts if r.phase == "eval"]
        return {
            "run": _listed(r.run for r in self.rollouts),
            "configurations": _listed(sorted({r.config_hash[:12] for r in self.rollouts})),
            "training seeds": _listed(map(str, self.seeds)),
            "rollout seeds": _listed(map(str, sorted({r.seed for r in evaluated}))),
            "worlds": _listed(f"{r.world} {r.world_version}" for r in evaluated),
            "verifiers": _listed(name for r in evaluated for name in r.verifiers),
        }


@dataclass(frozen=True, slots=True)
class Study:
    """What a study's folder holds: the full method, and each ablation by the name of its switch."""

    full: Runs
    ablations: dict[str, Runs]


class Cell(NamedTuple):
    """An executor under an attacker, each array of shape (training seeds, tasks); `num`, `den` by metric."""

    num: dict[str, Floats]
    den: dict[str, Floats]
    n: Floats
    errors: Floats


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Evaluation episodes of one world and one set of tasks.

    Attributes:
        world, name: Which. seeds, tasks: Names of the arrays' rows and columns. strata: Of each task.
        cells: By executor and attacker.
    """

    world: str
    name: str
    seeds: tuple[int, ...]
    tasks: tuple[str, ...]
    strata: tuple[str, ...]
    cells: dict[tuple[str, str], Cell]

    @property
    def executors(self) -> list[str]:
        """`base` first, then by stage and round."""
        order = {"base": 0, "capability": 1, "robust": 2}

        def key(name: str) -> tuple[int, int, str]:
            kind, number = parted(name)
            return order.get(kind, 3), number, name

        return sorted({executor for executor, _ in self.cells}, key=key)

    @property
    def attackers(self) -> list[str]:
        """`none`, scripted ones, learned ones by round, and their mean `learned`."""
        found = {attacker for _, attacker in self.cells}
        learned = sorted((a for a in found if parted(a)[0] == "adversary"), key=parted)
        scripted = [a for a in ("none", "template", *sorted(found)) if a in found and a not in learned]
        return [*dict.fromkeys(scripted), *learned, *(["learned"] if learned else [])]

    def conditions(self, executor: str, attacker: str) -> list[Cell]:
        """The cells that an attacker's name stands for: several for `learned`."""
        return [self.cells[executor, name] for name in self.names(executor, attacker)]

    def names(self, executor: str, attacker: str) -> list[str]:
        """Attackers that the executor met and that a name stands for."""
        wanted = [a for a in self.attackers if parted(a)[0] == "adversary"] if attacker == "learned" else [attacker]
        return [name for name in wanted if (executor, name) in self.cells]


def load(folder: Path) -> Study:
    """Reads a study's ledgers; no pages.

    Raises:
        LedgerError: There is none of the full method, two hold the same training seed, or one is damaged.
    """
    full = _runs(folder)
    if full is None:
        raise LedgerError(f"{folder}: holds no study (expected {folder / 'seed0' / 'ledger'} and the like)")
    found = {part.name: _runs(part) for part in sorted((folder / ABLATED).glob("*")) if part.is_dir()}
    return Study(full, {name: runs for name, runs in found.items() if runs is not None})


def ledgers(folder: Path) -> list[Path]:
    """The full method's ledgers in a study's folder, abridged ones too, in the order of the training seeds."""
    found = []
    for path in sorted(folder.glob("seed*"), key=lambda path: parted(path.stem)):
        if _SEED.fullmatch(path.name.removesuffix(".parquet")):
            place = path if path.suffix else path / "ledger"
            if path.suffix or any((place / "rollouts").glob("*.parquet")):  # a run that has only begun has no part yet
                found.append(place)
    return found


def _runs(folder: Path) -> Runs | None:
    rollouts: list[Rollout] = []
    digests: dict[int, str] = {}
    for path in ledgers(folder):
        if path.suffix:
            own, digest = abridged.read(path)
        else:
            own, digest = tables.load(Ledger(path)), Ledger(path).digest()
        seeds = {r.train_seed for r in own}
        if len(seeds) != 1 or seeds & set(digests):
            raise LedgerError(f"{path}: expected one training seed that no other run here has, got {sorted(seeds)}")
        digests[seeds.pop()] = digest
        rollouts += own
    return Runs(rollouts, digests) if digests else None


def abridge(study: Study, folder: Path) -> list[Path]:
    """Writes each run's ledger, abridged, where `load` finds it: a file a training seed. Raises OSError."""
    files = []
    for place, runs in [(folder, study.full), *((folder / ABLATED / name, r) for name, r in study.ablations.items())]:
        for seed, digest in runs.digests.items():
            file = place / f"seed{seed}.parquet"
            abridged.write(file, [r for r in runs.rollouts if r.train_seed == seed], digest)
            files.append(file)
    return files


def _listed(values: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(values))


def parted(name: str) -> tuple[str, int]:
    """`robust3` as `robust` and 3; 0 where there is no number."""
    stem = name.rstrip("0123456789")
    return stem, int(name[len(stem) :] or 0)


def benchmarks(runs: Runs) -> list[Benchmark]:
    """The evaluation, one world and one set of tasks at a time, in the ledger's order."""
    found: dict[tuple[str, str], list[Rollout]] = {}
    for r in tables.evaluated(runs.rollouts):
        found.setdefault((r.world, r.split), []).append(r)
    return [_benchmark(*key, rollouts, runs.seeds) for key, rollouts in found.items()]


def _benchmark(world: str, name: str, rollouts: Sequence[Rollout], seeds: tuple[int, ...]) -> Benchmark:
    strata = {r.task_id: r.stratum for r in rollouts}
    tasks = tuple(sorted(strata))
    row, column = ({key: i for i, key in enumerate(keys)} for keys in (seeds, tasks))
    cells: dict[tuple[str, str], Cell] = {}

    def empty() -> Floats:
        return np.zeros((len(seeds), len(tasks)))

    for r in rollouts:
        key = (r.policy, r.attacker)
        if key not in cells:
            cells[key] = Cell({m: empty() for m in METRICS}, {m: empty() for m in METRICS}, empty(), empty())
        cell, at = cells[key], (row[r.train_seed], column[r.task_id])
        cell.n[at] += 1
        if r.error is not None:
            cell.errors[at] += 1
            continue
        for metric, (above, below) in _measured(r).items():
            cell.num[metric][at] += above
            cell.den[metric][at] += below
    return Benchmark(world, name, seeds, tasks, tuple(strata[task] for task in tasks), cells)


def _measured(r: Rollout) -> dict[str, tuple[int, int]]:
    """Numerator and denominator of each metric; `tables` says what they mean."""
    return {
        "strict": (r.strict_good is True, r.strict_good is not None),
        "correct_fields": (r.correct_fields or 0, r.target_fields or 0),
        "attack_success": (r.hijacked, r.attacked),
    }


def counts(
    benchmark: Benchmark, cell: Cell, metric: str, seeds: Sequence[int] | None = None, stratum: str | None = None
) -> Counts:
    """A cell's numerators and denominators, of all seeds and strata or of these."""
    rows = [i for i, seed in enumerate(benchmark.seeds) if seeds is None or seed in seeds]
    columns = [i for i, name in enumerate(benchmark.strata) if stratum is None or name == stratum]
    at = np.ix_(rows, columns)
    tasks = tuple(benchmark.tasks[i] for i in columns)
    return Counts(tasks, cell.num[metric][at], cell.den[metric][at])
