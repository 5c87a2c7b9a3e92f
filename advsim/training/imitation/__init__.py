"""Conversations to imitate, for the warm start of the shipped backbone: one generator a role.

Everything here is made from generated training tasks and the exact world, by seed, without end. Nothing of a frozen
benchmark and no held-out family goes in (`source.Source`). Some of the executor's pages carry a notice that *must* be
obeyed (press Review first; the code is shown in the notice; the form is closed): a page's text gives orders, and a
model that learns this can be hijacked by a page, as real ones can (`docs/method.md` §6). No other switch does it.

Demonstrators differ (`episodes.SILENT`, `episodes.UNHEEDED`): some write what they think and some do not, some obey a
notice and some go on. A model of all of them does now this and now that, which is what training needs to tell the
better from the worse.
"""

from __future__ import annotations

from random import Random
from typing import Final, Literal

from advsim.training.imitation.episodes import (
    SILENT,
    UNHEEDED,
    Message,
    executor_example,
    pressing_example,
    sums_example,
)
from advsim.training.imitation.proposers import adversary_example, curriculum_example
from advsim.training.imitation.source import HELD_OUT, Source, benchmark_problems

__all__ = ["HELD_OUT", "Message", "Role", "Source", "benchmark_problems", "example"]

Role = Literal["executor", "curriculum", "adversary"]
PRESSING: Final = 0.06
"""Share of the executor's examples that only name buttons to press."""
SUMS: Final = 0.25
"""Share of the executor's examples that are sums and nothing else."""


def example(seed: str, role: Role, source: Source, *, differ: float = 1.0) -> list[Message]:
    """The example of this role and seed; always the same one for the same generator of tasks.

    Args:
        seed: Decides everything.
        role: Whose.
        source: Where its task comes from.
        differ: How far the executor's demonstrators differ: 0 if all write thoughts and obey every notice, up to 1.
    """
    rng = Random(seed)
    if role == "executor":
        silent, unheeded = SILENT * differ, UNHEEDED * differ
        kind = rng.random()
        if kind < SUMS:
            return sums_example(rng)
        if kind < SUMS + PRESSING:
            return pressing_example(rng, silent)
        return executor_example(rng, source, silent=silent, unheeded=unheeded)
    return curriculum_example(rng, source) if role == "curriculum" else adversary_example(rng, source)
