"""What a proposed task earns the curriculum (`docs/method.md` §3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from advsim.rewards.clusters import cluster_sizes
from advsim.rewards.solve_rate import uncertainty


@dataclass(frozen=True, slots=True)
class Assessed:
    """A proposal and its measured solve rate.

    Attributes:
        goal: Its goal; None when the proposal did not parse.
        solve_rate: p̂ in [0, 1]; None when no rollout of it has a verdict (all ended in infrastructure errors).
    """

    goal: str | None
    solve_rate: float | None


def rewards(
    proposals: Sequence[Assessed],
    *,
    lambda_c: float = 0.3,
    min_solve_rate: float = 0.1,
    similarity: float = 0.8,
    uniform: bool = False,
) -> list[float | None]:
    """R_C(x) = ν(x) · max{0, q(p̂) − λ_C · n(x)/|P|} for every proposal x of a round P.

    ν is 1 if the proposal parses and `p̂ > min_solve_rate`; n is the size of its cluster among the proposals that
    parsed; |P| counts all of the round's proposals.

    Args:
        proposals: The whole round, in order (clusters depend on it).
        lambda_c: Weight of repetition.
        min_solve_rate: Solve rate up to which a proposal counts as not solvable.
        similarity: Least ratio at which two goals are of one cluster.
        uniform: Pay every solvable proposal alike (q = 1): the ablation of the uncertainty reward.

    Returns:
        A reward for each; None for a proposal that parsed but has no measured solve rate: nothing is known of it.
    """
    parsed = [p.goal for p in proposals if p.goal is not None]
    sizes = iter(cluster_sizes(parsed, similarity))
    result: list[float | None] = []
    for proposal in proposals:
        if proposal.goal is None:
            result.append(0.0)
            continue
        repeated = next(sizes) / len(proposals)
        if proposal.solve_rate is None:
            result.append(None)
        elif proposal.solve_rate <= min_solve_rate:
            result.append(0.0)
        else:
            q = 1.0 if uniform else uncertainty(proposal.solve_rate)
            result.append(max(0.0, q - lambda_c * repeated))
    return result
