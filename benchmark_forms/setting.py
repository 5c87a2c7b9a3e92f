"""How large and how hard a task is."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Literal

BENCH_SETTINGS = ("easy-short", "easy-long", "hard-short", "hard-long")
SETTINGS = (*BENCH_SETTINGS, "small", "tiny")

MAX_ACTIONS = 12
SMALL_NODES = 15
TINY_NODES = 11


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting.

    Attributes:
        name: As in `SETTINGS`.
        level: `bench` for language models, `small` and `tiny` for models of a few million parameters.
        hard: More records, and rules with an exception or a second step.
        long: More values to enter.
    """

    name: str
    level: Literal["bench", "small", "tiny"]
    hard: bool
    long: bool

    @property
    def small(self) -> bool:
        """Whether short words, few lines and one-step rules are wanted."""
        return self.level != "bench"

    @property
    def nodes(self) -> int | None:
        """Most lines that the first page may have, root included; None: no limit."""
        return {"bench": None, "small": SMALL_NODES, "tiny": TINY_NODES}[self.level]

    def targets(self, rng: Random) -> int:
        """How many values to enter."""
        if self.level == "tiny":
            return rng.randint(1, 2)
        if self.level == "small":
            return rng.randint(1, 3)
        return rng.randint(4, 6) if self.long else rng.randint(2, 3)

    def records(self, rng: Random) -> int:
        """How many records or rules decide them."""
        if self.small:
            return 3
        return rng.randint(6, 9) if self.hard else rng.randint(3, 5)


def setting(name: str) -> Setting:
    """The setting of this name. Raises ValueError for an unknown one."""
    if name not in SETTINGS:
        raise ValueError(f"unknown setting {name!r}: expected one of {', '.join(SETTINGS)}")
    if name in ("small", "tiny"):
        return Setting(name, "small" if name == "small" else "tiny", hard=False, long=False)
    difficulty, length = name.split("-")
    return Setting(name, "bench", hard=difficulty == "hard", long=length == "long")
