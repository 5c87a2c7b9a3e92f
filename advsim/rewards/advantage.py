"""From rewards to advantages: the baseline of a group and the weight of a difficulty (`docs/method.md` §3.3, §3.7)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from advsim.rewards.solve_rate import uncertainty

EPSILON = 1e-6


def difficulty_scale(p: float, least: float = 0.1) -> float:
    """f(p) = max(0.1, q(p)), with the solve rate measured before the update."""
    return max(least, uncertainty(p))


def group_advantages(rewards: Sequence[float], scale: float = 1.0) -> list[float]:
    """Â_k = scale · (R_k − mean) / (std + 1e-6), with the population's standard deviation.

    A group of equal rewards (or of one) gives zeros: it teaches nothing, and is no error.
    """
    if not rewards:
        return []
    mean = math.fsum(rewards) / len(rewards)
    std = math.sqrt(math.fsum((r - mean) ** 2 for r in rewards) / len(rewards))
    return [scale * (r - mean) / (std + EPSILON) for r in rewards]


def deal_groups(rewards: Sequence[float], size: int) -> list[list[int]]:
    """Deals the indices of rewards into groups of about `size` that each hold easy and hard ones (§3.7).

    Sorted by reward (ties by position), then dealt round-robin, so that group g holds ranks g, g + n, g + 2n, …
    Every index is in exactly one group; with fewer than two rewards a group there is one group.
    """
    count = max(1, len(rewards) // size)
    order = sorted(range(len(rewards)), key=lambda i: (rewards[i], i))
    return [order[start::count] for start in range(count)] if rewards else []
