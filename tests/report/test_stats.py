"""Intervals against published values, exact enumeration and coverage."""

import itertools
import math

import numpy as np
import pytest

from advsim.report.stats import Counts, bootstrap, interval, paired_difference, wilson


def counts(num: list[list[float]], den: list[list[float]] | None = None) -> Counts:
    above = np.array(num, dtype=float)
    below = np.ones_like(above) if den is None else np.array(den, dtype=float)
    return Counts(tuple(f"t{i}" for i in range(above.shape[1])), above, below)


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [
        # Newcombe (1998), Statistics in Medicine 17, table I, method 3.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (29, 29, 0.8830, 1.0000),  # n / (n + z²), worked out by hand
    ],
)
def test_wilson_gives_the_published_intervals(k: int, n: int, low: float, high: float) -> None:
    got = wilson(k, n)
    assert got.value == k / n
    assert (round(got.low, 4), round(got.high, 4)) == (low, high)


def test_nothing_counted_is_nan() -> None:
    for got in (wilson(0, 0), bootstrap(counts([[0, 0]], [[0, 0]]))):
        assert all(map(math.isnan, (got.value, got.low, got.high)))


def test_bootstrap_percentiles_match_all_resamples() -> None:
    # Six tasks: all 6**6 resamples can be listed, and the percentiles are those of a binomial count / 6.
    values = [1, 1, 1, 1, 0, 0]
    means = sorted(sum(draw) / 6 for draw in itertools.product(values, repeat=6))
    low, high = np.percentile(means, [2.5, 97.5])
    got = bootstrap(counts([values]), replicates=20_000)
    assert got.value == pytest.approx(4 / 6)
    assert (got.low, got.high) == (pytest.approx(low), pytest.approx(high))


def test_bootstrap_resamples_tasks_not_rollouts() -> None:
    # Three rollouts of each of 10 tasks that always agree tell no more than one rollout would.
    one = bootstrap(counts([[1, 0] * 5]))
    three = bootstrap(counts([[3, 0] * 5], [[3, 3] * 5]))
    assert (three.low, three.high) == (one.low, one.high)
    assert one.high - one.low > 0.5


def test_training_seeds_are_the_outer_level() -> None:
    # Two seeds that disagree wholly: the interval must span both, however many tasks there are.
    got = bootstrap(counts([[1] * 200, [0] * 200]))
    assert (got.value, got.low, got.high) == (0.5, 0.0, 1.0)


def test_ratio_weighs_by_denominator() -> None:
    assert counts([[1, 0]], [[1, 3]]).value == 0.25
    assert bootstrap(counts([[1, 0]], [[1, 3]])).value == 0.25


def test_interval_chooses_wilson_for_single_draws_and_for_certainty() -> None:
    assert interval(counts([[1, 0, 1]])) == wilson(2, 3)
    assert interval(counts([[1, 0, 1]], [[1, 0, 1]])) == wilson(2, 2)  # the second task was not counted
    # Two rollouts a task that all succeeded: as sure as three tasks make it, not as six rollouts would.
    assert interval(counts([[2, 2, 2]], [[2, 2, 2]])) == wilson(3, 3)
    several = counts([[2, 1, 0]], [[2, 2, 2]])
    assert interval(several) == bootstrap(several)


def test_intervals_are_reproducible() -> None:
    data = counts([[1, 0, 1, 1, 0]])
    assert bootstrap(data) == bootstrap(data)
    values = [i / 40 for i in range(41)]
    assert bootstrap(counts([values])) == bootstrap(counts([values]))
    assert bootstrap(counts([values]), seed=1) != bootstrap(counts([values]))


def test_paired_difference_uses_the_pairing() -> None:
    # Each task is better by exactly 0.5 after: paired, there is no uncertainty at all.
    before = counts([[0.0, 0.5, 0.0, 0.5, 0.25]])
    after = counts([[0.5, 1.0, 0.5, 1.0, 0.75]])
    got = paired_difference([before], [after])
    assert (got.value, got.low, got.high) == pytest.approx((0.5, 0.5, 0.5), abs=1e-12)
    # Unpaired noise of the same size has a wide interval.
    swapped = Counts(after.tasks, after.num[:, ::-1].copy(), after.den)
    mixed = paired_difference([before], [swapped])
    assert mixed.value == pytest.approx(0.5)
    assert mixed.high - mixed.low > 0.1


def test_paired_difference_averages_conditions_and_meets_on_shared_tasks() -> None:
    one = Counts(("a", "b"), np.array([[1.0, 0.0]]), np.ones((1, 2)))
    two = Counts(("b", "a", "c"), np.array([[1.0, 1.0, 0.0]]), np.ones((1, 3)))
    zero = Counts(("a", "b"), np.zeros((1, 2)), np.ones((1, 2)))
    # Over a and b: one is 0.5, two is 1.0; their mean against zero.
    assert paired_difference([zero], [one, two]).value == pytest.approx(0.75)
    other = Counts(("x",), np.ones((1, 1)), np.ones((1, 1)))
    assert math.isnan(paired_difference([zero], [other]).value)
    with pytest.raises(ValueError, match="same training seeds"):
        paired_difference([zero], [counts([[1, 1], [1, 1]])])


def test_bootstrap_covers_the_truth() -> None:
    # 60 tasks with their own success rates (mean 0.5), 3 rollouts each: about 95 of 100 intervals hold 0.5.
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(200):
        rates = rng.beta(1, 1, size=60)
        got = bootstrap(counts([list(rng.binomial(3, rates))], [[3] * 60]), replicates=400)
        held += got.low <= 0.5 <= got.high
    assert 178 <= held <= 198
