"""A study's rollouts: several training seeds of one configuration, and of its ablations, as arrays of counts.

A study's folder holds `seed<N>/ledger` for each training seed of the full method, and
`ablate/<switch>/seed<N>/ledger` for those of each ablation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from advsim.ledger import Ledger, LedgerError
from advsim.report import tables
from advsim.report.stats import Counts, Floats
from advsim.report.tables import Rollout

METRICS = ("strict", "correct_fields", "attack_success")
ABLATED = "ablate"
_SEED = re.compile(r"seed\d+")
_FACTS = ["run", "config_hash", "train_seed", "seed", "phase", "world", "world_version", "verdicts"]


@dataclass(frozen=True, slots=True)
class Runs:
    """The training seeds of one configuration.

    Attributes:
        rollouts: Of all of them, in the order of their ledgers. digests: Each ledger's, by training seed.
        facts: Where they come from, as a report's first lines say it.
    """

    rollouts: list[Rollout]
    digests: dict[int, str]
    facts: dict[str, str]

    @property
    def seeds(self) -> tuple[int, ...]:
        """The training seeds, sorted."""
        return tuple(sorted(self.digests))


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


def _runs(folder: Path) -> Runs | None:
    # A run that has only begun has no part yet.
    ledgers = [
        Ledger(path / "ledger")
        for path in sorted(folder.glob("seed*"), key=lambda path: parted(path.name))
        if _SEED.fullmatch(path.name) and any((path / "ledger" / "rollouts").glob("*.parquet"))
    ]
    rollouts: list[Rollout] = []
    records: list[dict[str, Any]] = []
    digests: dict[int, str] = {}
    for ledger in ledgers:
        own = tables.load(ledger)
        seeds = {r.train_seed for r in own}
        if len(seeds) != 1 or seeds & set(digests):
            raise LedgerError(
                f"{ledger.path}: expected one training seed that no other run here has, got {sorted(seeds)}"
            )
        digests[seeds.pop()] = ledger.digest()
        rollouts += own
        records += ledger.table(_FACTS).to_pylist()
    return Runs(rollouts, digests, _facts(records)) if ledgers else None


def _facts(records: Sequence[dict[str, Any]]) -> dict[str, str]:
    """What the numbers come from, read off the rows."""
    evaluated = [record for record in records if record["phase"] == "eval"]
    return {
        "run": _listed(record["run"] for record in records),
        "configurations": _listed(sorted({record["config_hash"][:12] for record in records})),
        "training seeds": _listed(map(str, sorted({record["train_seed"] for record in records}))),
        "rollout seeds": _listed(map(str, sorted({record["seed"] for record in evaluated}))),
        "worlds": _listed(f"{record['world']} {record['world_version']}" for record in evaluated),
        "verifiers": _listed(f"{v['verifier']} {v['version']}" for record in evaluated for v in record["verdicts"]),
    }


def _listed(values: Any) -> str:
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
