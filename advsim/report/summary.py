"""A study's numbers, from its ledgers alone.

Every mean is over training seeds (of each seed's own ratio), `sd` is their sample standard deviation, and intervals are
`stats`' bootstrap over tasks and, as the outer level, training seeds; differences are paired on both.
`docs/results-format.md` says what each value means.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from advsim.report import tables
from advsim.report.stats import Interval, paired_difference, seed_mean, seed_values
from advsim.report.study import METRICS, Benchmark, Cell, Runs, Study, benchmarks, counts, parted

COMPARED = ("none", "learned", "template")


def rows(benchmark: Benchmark, stratum: str | None = None) -> Iterator[dict[str, Any]]:
    """A row each executor, attacker and metric; of one stratum only if it is given."""
    columns = [i for i, name in enumerate(benchmark.strata) if stratum is None or name == stratum]
    for executor in benchmark.executors:
        for attacker in benchmark.attackers:
            cells = benchmark.conditions(executor, attacker)
            for metric in METRICS if cells else ():
                given = [counts(benchmark, cell, metric, stratum=stratum) for cell in cells]
                counted = sum(float(c.den.sum()) for c in given)
                if not counted and metric == "attack_success":
                    continue  # nobody attacked
                values = seed_values(given)
                known = values[~np.isnan(values)]
                estimate = seed_mean(given)
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
        values = seed_values([counts(b, cell, metric) for b, cell in side])
        known = {seed for seed, value in zip(side[0][0].seeds, values, strict=True) if not math.isnan(value)}
        shared = known if shared is None else shared & known
    seeds = sorted(shared or ())
    if not seeds:
        return Interval(math.nan, math.nan, math.nan), []
    before, after = ([counts(b, cell, metric, seeds) for b, cell in side] for side in (first, second))
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
            if parted(before)[0] != parted(after)[0]:
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
