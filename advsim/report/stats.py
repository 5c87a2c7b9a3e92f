"""Intervals: Wilson for one rate, and a bootstrap over tasks and training seeds for ratios and paired differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

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


def seed_values(conditions: Sequence[Counts]) -> Floats:
    """The ratio of each training seed, shape (training seeds,); over several conditions the mean of their ratios.

    NaN for a seed in which nothing was counted; a condition that a seed lacks is left out of that seed's mean.
    """
    return _seed_ratios(conditions, None)


def seed_mean(conditions: Sequence[Counts], *, replicates: int = 4000, seed: int = 0) -> Interval:
    """Mean over training seeds of `seed_values`, with its bootstrap interval (as in `bootstrap`).

    Where every counted rollout agrees the bootstrap would claim certainty: Wilson's interval over the number of
    counted tasks is given instead, as in `interval`.

    Args:
        conditions: One `Counts` a condition (one learned adversary each, say), all of the same seeds and tasks.
        replicates: Bootstrap replicates.
        seed: Of the resampling.
    """
    value = _nan_mean(seed_values(conditions))
    if math.isnan(value):
        return Interval(math.nan, math.nan, math.nan)
    if value in (0.0, 1.0):
        tasks = int((np.sum([c.den.sum(axis=0) for c in conditions], axis=0) > 0).sum())
        return wilson(value * tasks, tasks)
    rows, columns = _weights(conditions[0].den.shape, replicates, seed)
    return _percentiles(value, _draws(conditions, rows, columns))


def paired_difference(
    before: Sequence[Counts], after: Sequence[Counts], *, replicates: int = 4000, seed: int = 0
) -> Interval:
    """Interval of `mean(after) - mean(before)`, each the mean over training seeds of `seed_values`.

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
    value = _nan_mean(seed_values(second)) - _nan_mean(seed_values(first))
    return _percentiles(value, _draws(second, rows, columns) - _draws(first, rows, columns))


def _seed_ratios(conditions: Sequence[Counts], columns: Floats | None) -> Floats:
    """Ratios of each seed under given task weights, shape (seeds, replicates), or (seeds,) with each task once."""
    ratios = []
    for c in conditions:
        num, den = (c.num.sum(axis=1), c.den.sum(axis=1)) if columns is None else (c.num @ columns.T, c.den @ columns.T)
        ratios.append(np.divide(num, den, out=np.full_like(num, np.nan), where=den > 0))
    return _mean_where(np.stack(ratios), np.ones(len(ratios)))


def _draws(conditions: Sequence[Counts], rows: Floats, columns: Floats) -> Floats:
    """The statistic in each replicate: mean over the drawn seeds."""
    return _mean_where(_seed_ratios(conditions, columns), rows.T)


def _mean_where(values: Floats, weights: Floats) -> Floats:
    """Weighted mean over the first axis of what is not NaN; NaN where nothing is left."""
    weights = np.broadcast_to(weights.reshape(weights.shape + (1,) * (values.ndim - weights.ndim)), values.shape)
    weights = np.where(np.isnan(values), 0.0, weights)
    total, mass = (np.nan_to_num(values) * weights).sum(axis=0), weights.sum(axis=0)
    result: Floats = np.divide(total, mass, out=np.full_like(total, np.nan), where=mass > 0)
    return result


def _nan_mean(values: Floats) -> float:
    return float(_mean_where(values, np.ones(len(values))))


@lru_cache(maxsize=16)
def _weights(shape: tuple[int, ...], replicates: int, seed: int) -> tuple[Floats, Floats]:
    """How often each training seed and each task is drawn in each replicate."""
    seeds, tasks = shape
    rng = np.random.default_rng(seed)
    rows = rng.multinomial(seeds, np.full(seeds, 1 / seeds), size=replicates).astype(np.float64)
    columns = rng.multinomial(tasks, np.full(tasks, 1 / tasks), size=replicates).astype(np.float64)
    rows.setflags(write=False)  # shared by all who ask for the same shape
    columns.setflags(write=False)
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
