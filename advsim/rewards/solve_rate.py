"""How often a task is solved, and how uncertain that makes it (`docs/method.md` §3.1, §3.2)."""

from __future__ import annotations

from collections.abc import Sequence


def solve_rate(good: Sequence[bool]) -> float | None:
    """p̂: the share of a task's rollouts that the judge called good; None when no rollout has a verdict."""
    return sum(good) / len(good) if good else None


def uncertainty(p: float) -> float:
    """q(p) = 1 − 2|p − ½|: 1 at an even chance, 0 when always or never solved."""
    return 1.0 - 2.0 * abs(p - 0.5)
