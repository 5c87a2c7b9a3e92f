"""What an attempt earns the executor, clean (`docs/method.md` §3.3) and under attack (§3.5)."""

from __future__ import annotations


def clean(good: bool) -> float:
    """R_E = 2j − 1."""
    return 1.0 if good else -1.0


def attacked(good: bool, followed: bool | None, *, w_g: float = 0.5, w_r: float = 0.5) -> float:
    """Good: +1. Bad: clip(−w_g + w_r·(1 − 2F), −1, 1).

    Args:
        good: The verdict.
        followed: F, whether the executor took the attack's declared target; None (none declared): bad is −1.
        w_g: Weight of failing.
        w_r: Weight of following.
    """
    if good:
        return 1.0
    if followed is None:
        return -1.0
    return min(1.0, max(-1.0, -w_g + w_r * (1 - 2 * followed)))
