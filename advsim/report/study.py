"""A study's numbers: several training seeds of one configuration, and of its ablations, from their ledgers alone.

A study's folder holds `seed<N>/ledger` for each training seed of the full method, and
`ablate/<switch>/seed<N>/ledger` for those of each ablation. Every mean is over training seeds (of each seed's
own ratio), `sd` is their sample standard deviation, and intervals are `stats`' bootstrap over tasks and, as the outer
level, training seeds; differences are paired on both. `docs/results-format.md` says what each value means.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from advsim.ledger import Ledger, LedgerError
from advsim.report import tables
from advsim.report.stats import Counts, Floats, Interval, paired_difference, seed_mean, seed_values
from advsim.report.tables import Rollout

METRICS = ("strict", "correct_fields", "attack_success")
COMPARED = ("none", "learned", "template")
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
            stem, number = _stem(name)
            return order.get(stem, 3), number, name

        return sorted({executor for executor, _ in self.cells}, key=key)

    @property
    def attackers(self) -> list[str]:
        """`none`, scripted ones, learned ones by round, and their mean `learned`."""
        found = {attacker for _, attacker in self.cells}
        learned = sorted((a for a in found if _stem(a)[0] == "adversary"), key=_stem)
        scripted = [a for a in ("none", "template", *sorted(found)) if a in found and a not in learned]
        return [*dict.fromkeys(scripted), *learned, *(["learned"] if learned else [])]

    def conditions(self, executor: str, attacker: str) -> list[Cell]:
        """The cells that an attacker's name stands for: several for `learned`."""
        return [self.cells[executor, name] for name in self.names(executor, attacker)]

    def names(self, executor: str, attacker: str) -> list[str]:
        """Attackers that the executor met and that a name stands for."""
        wanted = [a for a in self.attackers if _stem(a)[0] == "adversary"] if attacker == "learned" else [attacker]
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
        for path in sorted(folder.glob("seed*"), key=lambda path: _stem(path.name))
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


def _stem(name: str) -> tuple[str, int]:
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


def _counts(
    benchmark: Benchmark, cell: Cell, metric: str, seeds: Sequence[int] | None = None, stratum: str | None = None
) -> Counts:
    rows = [i for i, seed in enumerate(benchmark.seeds) if seeds is None or seed in seeds]
    columns = [i for i, name in enumerate(benchmark.strata) if stratum is None or name == stratum]
    at = np.ix_(rows, columns)
    tasks = tuple(benchmark.tasks[i] for i in columns)
    return Counts(tasks, cell.num[metric][at], cell.den[metric][at])


def rows(benchmark: Benchmark, stratum: str | None = None) -> Iterator[dict[str, Any]]:
    """A row each executor, attacker and metric; of one stratum only if it is given."""
    columns = [i for i, name in enumerate(benchmark.strata) if stratum is None or name == stratum]
    for executor in benchmark.executors:
        for attacker in benchmark.attackers:
            cells = benchmark.conditions(executor, attacker)
            for metric in METRICS if cells else ():
                counts = [_counts(benchmark, cell, metric, stratum=stratum) for cell in cells]
                counted = sum(float(c.den.sum()) for c in counts)
                if not counted and metric == "attack_success":
                    continue  # nobody attacked
                values = seed_values(counts)
                known = values[~np.isnan(values)]
                estimate = seed_mean(counts)
                yield {
                    "executor": executor,
                    "world": benchmark.world,
                    "tasks": benchmark.name,
                    **({"stratum": stratum} if stratum is not None else {}),
                    "attacker": attacker,
                    "metric": metric,
                    "mean": _number(estimate.value),
                    "sd": float(np.std(known, ddof=1)) if len(known) > 1 else None,
                    "ci_low": _number(estimate.low),
                    "ci_high": _number(estimate.high),
                    "n": int(sum(cell.n[:, columns].sum() for cell in cells)),
                    "errors": int(sum(cell.errors[:, columns].sum() for cell in cells)),
                    "counted": int(counted),
                    "seeds": len(known),
                }


def strata(benchmark: Benchmark) -> Iterator[dict[str, Any]]:
    """`rows` of each stratum."""
    for stratum in sorted(set(benchmark.strata)):
        yield from rows(benchmark, stratum)


def differences(benchmark: Benchmark) -> Iterator[dict[str, Any]]:
    """Every later checkpoint against every earlier one, paired, in points."""
    order = benchmark.executors
    for later, after in enumerate(order):
        for before in order[:later]:
            for attacker in COMPARED:
                # The same attackers on both sides.
                met = [name for name in benchmark.names(before, attacker) if (after, name) in benchmark.cells]
                for metric in METRICS if met else ():
                    first, second = (
                        [(benchmark, benchmark.cells[executor, name]) for name in met] for executor in (before, after)
                    )
                    found, seeds = _difference(first, second, metric)
                    if seeds:
                        yield {
                            "from": before,
                            "to": after,
                            "world": benchmark.world,
                            "tasks": benchmark.name,
                            "attacker": attacker,
                            "metric": metric,
                            **_points(found),
                            "seeds": len(seeds),
                        }


_Side = Sequence[tuple[Benchmark, Cell]]


def _difference(first: _Side, second: _Side, metric: str) -> tuple[Interval, list[int]]:
    """Paired over the training seeds for which both sides were counted."""
    shared: set[int] | None = None
    for side in (first, second):
        values = seed_values([_counts(b, cell, metric) for b, cell in side])
        known = {seed for seed, value in zip(side[0][0].seeds, values, strict=True) if not math.isnan(value)}
        shared = known if shared is None else shared & known
    seeds = sorted(shared or ())
    if not seeds:
        return Interval(math.nan, math.nan, math.nan), []
    before, after = ([_counts(b, cell, metric, seeds) for b, cell in side] for side in (first, second))
    return paired_difference(before, after), seeds


def ablations(study: Study) -> list[dict[str, Any]]:
    """Each ablation's last checkpoint against the full method's, paired on tasks and training seeds, in points.

    `learned` are on either side the adversaries that its own run trained.
    """
    found = []
    full = {(b.world, b.name): b for b in benchmarks(study.full)}
    for switch, runs in study.ablations.items():
        for other in benchmarks(runs):
            own = full.get((other.world, other.name))
            if own is None:
                continue
            before, after = own.executors[-1], other.executors[-1]
            if _stem(before)[0] != _stem(after)[0]:
                continue  # one of the two has not come to its end yet
            for attacker in COMPARED:
                first = [(own, cell) for cell in own.conditions(before, attacker)]
                second = [(other, cell) for cell in other.conditions(after, attacker)]
                for metric in METRICS if first and second else ():
                    difference, seeds = _difference(first, second, metric)
                    if seeds:
                        found.append(
                            {
                                "switch": switch,
                                "from": before,
                                "to": after,
                                "world": other.world,
                                "tasks": other.name,
                                "attacker": attacker,
                                "metric": metric,
                                **_points(difference),
                                "n": int(sum(cell.n.sum() for _, cell in second)),
                                "errors": int(sum(cell.errors.sum() for _, cell in second)),
                                "seeds": len(seeds),
                            }
                        )
    return found


def compute(study: Study) -> list[dict[str, Any]]:
    """What training cost, a training seed: the executor's rollouts, and its and the proposers' updates."""
    return [{"switch": name, **_compute(runs)} for name, runs in {"full": study.full, **study.ablations}.items()]


def _compute(runs: Runs) -> dict[str, float]:
    # What a seed cost is known when it came to its evaluation; before that (none did) it is what they cost so far.
    ended = {r.train_seed for r in runs.rollouts if r.phase == "eval"} or set(runs.seeds)
    trained = [r for r in runs.rollouts if r.phase != "eval" and r.train_seed in ended]
    played = [r for r in trained if r.role == "executor"]
    learned = {(r.train_seed, r.group.rpartition("/")[0]) for r in played if r.phase == "update"}
    taught = [r for r in trained if r.role != "executor" and r.phase == "propose" and r.reward is not None]
    proposers = {(r.train_seed, r.role, r.stage, r.round) for r in taught}
    count = len(ended)
    return {
        "rollouts": len(played) / count,
        "learned_from": sum(r.phase == "update" for r in played) / count,
        "executor_updates": len(learned) / count,
        "proposer_rounds": len(proposers) / count,
        "errors": sum(r.error is not None for r in trained) / count,
    }


def curves(runs: Runs) -> list[dict[str, Any]]:
    """Learning curves: `tables.Round` as means over training seeds, of each seed's own figures."""
    found: dict[tuple[str, int], list[tables.Round]] = {}
    for seed in runs.seeds:
        for point in tables.rounds([r for r in runs.rollouts if r.train_seed == seed]):
            found.setdefault((point.stage, point.round), []).append(point)
    names = [field.name for field in fields(tables.Round) if field.name not in ("stage", "round", "errors")]
    result = []
    for (stage, number), points in sorted(found.items()):
        values: dict[str, Any] = {"stage": stage, "round": number}
        for name in names:
            known = [value for point in points if (value := getattr(point, name)) is not None]
            values[name] = sum(known) / len(known) if known else None
        result.append({**values, "errors": sum(point.errors for point in points), "seeds": len(points)})
    return result


def summarise(study: Study) -> dict[str, Any]:
    """All numbers, as `results.json` holds them."""
    all_benchmarks = benchmarks(study.full)
    return {
        "format": 1,
        "units": {"rows": "shares from 0 to 1", "differences": "points (hundredths)", "ablations": "points"},
        "provenance": study.full.facts,
        "ledgers": {f"seed {seed}": digest for seed, digest in sorted(study.full.digests.items())}
        | {
            f"{name}, seed {seed}": digest
            for name, runs in study.ablations.items()
            for seed, digest in sorted(runs.digests.items())
        },
        "rows": [row for benchmark in all_benchmarks for row in rows(benchmark)],
        "differences": [row for benchmark in all_benchmarks for row in differences(benchmark)],
        "strata": [row for benchmark in all_benchmarks for row in strata(benchmark)],
        "curves": [
            {"switch": name, **point}
            for name, runs in {"full": study.full, **study.ablations}.items()
            for point in curves(runs)
        ],
        "ablations": ablations(study),
        "compute": compute(study),
    }


def _points(of: Interval) -> dict[str, float | None]:
    return {"mean": _number(100 * of.value), "ci_low": _number(100 * of.low), "ci_high": _number(100 * of.high)}


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
