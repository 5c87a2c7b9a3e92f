"""Records of which exactly one (or, ranked, a best and a second best) meets all conditions.

The deciding record's place, and its rank by every number, are drawn first and uniformly; the conditions and the other
records are then laid around it, so that neither tells which record it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal, NamedTuple

Direction = Literal["least", "most"]
YES_NO = ("yes", "no")
"""A word feature that a record has or lacks: only having it is ever asked for."""


class Feature(NamedTuple):
    """What the records are chosen by: words (with a pool), or whole numbers between `low` and `high`."""

    name: str
    pool: tuple[str, ...] = ()
    low: int = 0
    high: int = 0


class Condition(NamedTuple):
    """A word that must stand there, or a number that is the least or the most allowed."""

    feature: Feature
    bound: str
    direction: Direction | None = None

    def holds(self, value: str) -> bool:
        """Whether a record with this value meets it."""
        if self.direction is None:
            return value == self.bound
        return int(value) >= int(self.bound) if self.direction == "least" else int(value) <= int(self.bound)


class Candidates(NamedTuple):
    """The records' features, column by column, the conditions, and which records are best and second best.

    Without a ranking only `best` meets the conditions; with one, at least one other does, and `second` is the next.
    """

    columns: dict[str, tuple[str, ...]]
    conditions: tuple[Condition, ...]
    best: int
    second: int | None
    fitting: tuple[int, ...]


def draw(
    rng: Random, features: Sequence[Feature], count: int, *, ranked: Sequence[int] | None = None, lowest: bool = True
) -> Candidates:
    """Records with one condition on each of the features; at least one feature must be a word.

    Args:
        rng: Random generator.
        features: What the conditions are about.
        count: How many records.
        ranked: A number for each record, all different; of the records that meet the conditions, the one with the
            lowest (else highest) wins. None: only one record meets them.
        lowest: Whether the lowest number wins.
    """
    best = rng.randrange(count)
    order = sorted(range(count), key=lambda i: ranked[i], reverse=not lowest) if ranked is not None else []
    behind = order[order.index(best) + 1 :] if order else []
    fitting = {best, *(i for i in behind if rng.random() < 0.5)}
    if behind:
        fitting.add(rng.choice(behind))

    columns: dict[str, tuple[str, ...]] = {}
    conditions: list[Condition] = []
    failed: set[int] = set()
    for feature in features:
        if not feature.pool:
            values = rng.sample(range(feature.low, feature.high + 1), count)
            condition = _bound(rng, feature, values, fitting)
            columns[feature.name] = tuple(map(str, values))
            conditions.append(condition)
            failed |= {i for i, v in enumerate(values) if not condition.holds(str(v))}
    words = [f for f in features if f.pool]
    must_fail = {i: rng.choice(words).name for i in range(count) if i not in fitting and i not in failed}
    for feature in words:
        right = "yes" if feature.pool == YES_NO else rng.choice(feature.pool)
        wrong = [w for w in feature.pool if w != right]
        columns[feature.name] = tuple(
            right if i in fitting or (must_fail.get(i) != feature.name and rng.random() < 0.7) else rng.choice(wrong)
            for i in range(count)
        )
        conditions.append(Condition(feature, right))
    rng.shuffle(conditions)
    ahead = [i for i in order if i in fitting]
    second = ahead[1] if len(ahead) > 1 else None
    return Candidates(columns, tuple(conditions), best, second, tuple(sorted(fitting)))


def _bound(rng: Random, feature: Feature, values: Sequence[int], fitting: set[int]) -> Condition:
    """A bound that all fitting records meet; how many of the others it shuts out is drawn, too."""
    direction: Direction = rng.choice(("least", "most"))
    fits = [values[i] for i in fitting]
    if direction == "least":
        edge = min(fits)
        outside = sorted((v for v in values if v < edge), reverse=True)
        shut = outside[rng.randint(0, len(outside) - 1)] if outside else edge - rng.randint(1, 5)
        return Condition(feature, str(rng.randint(max(shut + 1, 0), edge)), direction)
    edge = max(fits)
    outside = sorted(v for v in values if v > edge)
    shut = outside[rng.randint(0, len(outside) - 1)] if outside else min(edge + rng.randint(2, 6), feature.high + 1)
    return Condition(feature, str(rng.randint(edge, max(edge, shut - 1))), direction)
