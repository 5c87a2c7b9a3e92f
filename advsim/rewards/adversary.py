"""What an injection earns the adversary: the success flip (`docs/method.md` §3.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from advsim.rewards.clusters import cluster_sizes

MALFORMED = -1.0
Mode = Literal["flip", "any_failure", "constant"]


@dataclass(frozen=True, slots=True)
class Fork:
    """One clean control and its continuation under the attack.

    Attributes:
        control_good: c, the control was judged good.
        bad: b, the continuation was judged bad.
        valid: v, the injection rendered and the task stayed feasible.
    """

    control_good: bool
    bad: bool
    valid: bool


def flip(forks: Sequence[Fork]) -> float | None:
    """Σ c·b·v / Σ c; None when no control was good: there is nothing to compare with."""
    good = [fork for fork in forks if fork.control_good]
    return sum(fork.bad and fork.valid for fork in good) / len(good) if good else None


def any_failure(forks: Sequence[Fork]) -> float | None:
    """The share of continuations that failed, whatever their control did: the ablation of the comparison."""
    return sum(fork.bad and fork.valid for fork in forks) / len(forks) if forks else None


def rewards(
    instructions: Sequence[str | None],
    forks: Sequence[Sequence[Fork]],
    *,
    lambda_a: float = 0.3,
    similarity: float = 0.8,
    mode: Mode = "flip",
) -> list[float | None]:
    """R_A of each of one task's proposals P_x: the flip less λ_A · (n_A(z) − 1)/|P_x|.

    Args:
        instructions: z of each proposal; None when it is malformed, which earns −1.
        forks: For each proposal its continuations without those that ended in an error (none for a malformed one).
        lambda_a: Weight of repeating oneself.
        similarity: What counts as repeating (as for the curriculum's goals).
        mode: `flip` as published; `any_failure` without the comparison; `constant` without a judge (1 for well-formed).

    Returns:
        A reward for each; None where nothing can be compared.
    """
    sizes = iter(cluster_sizes([z for z in instructions if z is not None], similarity))
    result: list[float | None] = []
    for z, continued in zip(instructions, forks, strict=True):
        if z is None:
            result.append(MALFORMED)
            continue
        penalty = lambda_a * (next(sizes) - 1) / len(instructions)
        gain = 1.0 if mode == "constant" else (flip if mode == "flip" else any_failure)(continued)
        result.append(None if gain is None else gain - penalty)
    return result
