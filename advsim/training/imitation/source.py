"""Where the tasks of the imitated episodes come from: never a benchmark instance, never a held-out family."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from functools import cache
from random import Random

from advsim.agents.curriculum import problem_hash
from advsim.task import Task
from advsim.training.imitation.drills import drill_task, wide_task
from advsim.training.imitation.small import micro_task
from benchmark_forms.files import shipped
from benchmark_forms.registry import families, generate

HELD_OUT = ("room_booking", "venue_choice")
"""Families that the warm start and training never see; `configs/tiny.yaml` names them too."""


@cache
def benchmark_problems() -> frozenset[str]:
    """Hashes (`problem_hash`) of the frozen benchmarks' tasks. Raises TaskFileError if one is damaged."""
    return frozenset(problem_hash(t) for t in shipped())


@dataclass(frozen=True, slots=True)
class Source:
    """Where tasks come from.

    Attributes:
        families: Names of the generated families to draw from; by default all but the held-out ones.
        excluded: Hashes (`curriculum.problem_hash`) of problems that must not appear: the benchmarks' instances.
        settings: Settings and how often each is drawn; `micro`, `drill` and `wide` are this package's own.
    """

    families: tuple[str, ...] = tuple(f for f in families() if f not in HELD_OUT)
    excluded: Container[str] = frozenset()
    settings: tuple[tuple[str, float], ...] = (("micro", 0.2), ("tiny", 0.6), ("small", 0.2))

    def task(self, rng: Random) -> Task:
        """A training task with known answer, drawn by setting and evenly by family."""
        while True:
            (setting,) = rng.choices([s for s, _ in self.settings], [w for _, w in self.settings])
            if setting == "micro":
                task = micro_task(rng)
            elif setting == "drill":
                task = drill_task(rng)
            elif setting == "wide":
                task = wide_task(rng, rng.choice(self.families))
            else:
                task = generate(rng.choice(self.families), setting, rng.getrandbits(48))
            if problem_hash(task) not in self.excluded:
                return task
