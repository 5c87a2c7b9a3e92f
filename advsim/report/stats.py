"""Intervals: Wilson for one rate, and a bootstrap over tasks and training seeds for ratios and paired differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its 95 % interval; all three are NaN where nothing was counted."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Counts:
    """A ratio's counts by training seed and task: the ratio is `sum(num) / sum(den)`.

    Attributes:
        tasks: Task ids, one a column.
        num, den: Shape (training seeds, tasks). Rollout seeds are summed inside a cell; a task without a counted
            rollout has 0 in both.
    """

    tasks: tuple[str, ...]
    num: Floats
    den: Floats

    @property
    def value(self) -> float:
        """The ratio; NaN when nothing was counted."""
        total = float(self.den.sum())
        return float(self.num.sum()) / total if total else math.nan


def wilson(successes: float, n: float, z: float = 1.959963984540054) -> Interval:
    """Wilson's score interval for a proportion (Wilson 1927); good for small n and for rates near 0 or 1."""
    if n <= 0:
        return Interval(math.nan, math.nan, math.nan)
    p = successes / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    # At the ends the formula gives 0 and 1 up to rounding; say so exactly.
    return Interval(p, 0.0 if successes == 0 else centre - half, 1.0 if successes == n else centre + half)


def interval(counts: Counts) -> Interval:
    """A ratio's interval: Wilson's where each task was counted at most once, else the bootstrap.

    Only in the first case are the counted rollouts independent draws; rollouts of one task are not. Where all counted
    tasks agree (all 0 or all 1) the bootstrap sees no variation and would claim certainty; Wilson's interval over
    the number of tasks is given instead.
    """
    once = counts.den.shape[0] == 1 and float(counts.den.max(initial=0)) <= 1
    if once:
        return wilson(float(counts.num.sum()), float(counts.den.sum()))
    value = counts.value
    if value in (0.0, 1.0):
        tasks = int((counts.den.sum(axis=0) > 0).sum())
        return wilson(value * tasks, tasks)
    return bootstrap(counts)


def bootstrap(counts: Counts, *, replicates: int = 4000, seed: int = 0) -> Interval:
    """Percentile bootstrap of a ratio; tasks resampled, training seeds as the outer level (both with replacement).

    Tasks are crossed with training seeds (each seed is measured on the same tasks), so one resample of tasks
    serves all drawn seeds (Owen 2007, the pigeonhole bootstrap: rather too wide than too narrow).
    """
    if not counts.den.sum():
        return Interval(math.nan, math.nan, math.nan)
    rows, columns = _weights(counts.den.shape, replicates, seed)
    return _percentiles(counts.value, _ratio(counts, rows, columns))


def paired_difference(
    before: Sequence[Counts], after: Sequence[Counts], *, replicates: int = 4000, seed: int = 0
) -> Interval:
    """Interval of `mean(after) - mean(before)`, each the mean of its ratios over the given conditions.

    Every replicate draws the same tasks and training seeds for both sides. Only tasks in all of the counts take part.

    Args:
        before, after: One `Counts` a condition (one learned adversary each, say), all with the same number of seeds.
        replicates: Bootstrap replicates.
        seed: Of the resampling.

    Raises:
        ValueError: The counts have different numbers of training seeds.
    """
    everything = [*before, *after]
    if not before or not after or len({c.den.shape[0] for c in everything}) != 1:
        raise ValueError("a paired difference needs both sides, with the same training seeds")
    shared = sorted(set.intersection(*(set(c.tasks) for c in everything)))
    if not shared:
        return Interval(math.nan, math.nan, math.nan)
    first, second = ([_select(c, shared) for c in side] for side in (before, after))
    rows, columns = _weights(first[0].den.shape, replicates, seed)
    value = _mean([c.value for c in second]) - _mean([c.value for c in first])
    draws = np.mean([_ratio(c, rows, columns) for c in second], axis=0)
    draws = draws - np.mean([_ratio(c, rows, columns) for c in first], axis=0)
    return _percentiles(value, draws)


def _weights(shape: tuple[int, ...], replicates: int, seed: int) -> tuple[Floats, Floats]:
    """How often each training seed and each task is drawn in each replicate."""
    seeds, tasks = shape
    rng = np.random.default_rng(seed)
    rows = rng.multinomial(seeds, np.full(seeds, 1 / seeds), size=replicates).astype(np.float64)
    columns = rng.multinomial(tasks, np.full(tasks, 1 / tasks), size=replicates).astype(np.float64)
    return rows, columns


def _ratio(counts: Counts, rows: Floats, columns: Floats) -> Floats:
    num = np.einsum("rs,st,rt->r", rows, counts.num, columns, optimize=True)
    den = np.einsum("rs,st,rt->r", rows, counts.den, columns, optimize=True)
    result: Floats = np.divide(num, den, out=np.full_like(num, np.nan), where=den > 0)
    return result


def _percentiles(value: float, draws: Floats) -> Interval:
    counted = draws[~np.isnan(draws)]
    if not len(counted):
        return Interval(value, math.nan, math.nan)
    low, high = np.percentile(counted, [2.5, 97.5])
    return Interval(value, float(low), float(high))


def _select(counts: Counts, tasks: Sequence[str]) -> Counts:
    place = {task: index for index, task in enumerate(counts.tasks)}
    chosen = [place[task] for task in tasks]
    return Counts(tuple(tasks), counts.num[:, chosen], counts.den[:, chosen])


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
