"""What a run says while it works: a line a phase, with the engine's speed and the share of time outside it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from rich.console import Console

from advsim.llm.engine import Stats
from advsim.training.learner import UpdateReport
from advsim.training.steps import RunFolder
from advsim.training.team import Team

console = Console(stderr=True, highlight=False, markup=False)


class Phase:
    """Times a phase and prints its line at the end.

    Args:
        run: Whose `progress.jsonl` gets the same.
        team: Whose engine is watched.
        name: What is done.
    """

    def __init__(self, run: RunFolder, team: Team, name: str) -> None:
        self._run, self._team, self._name = run, team, name
        self._facts: dict[str, Any] = {}
        self._learning = False

    def __enter__(self) -> Phase:
        self._team.engine.stats = Stats()
        self._began = time.perf_counter()
        return self

    def say(self, **facts: Any) -> None:
        """Adds facts to the line."""
        self._facts |= facts

    def rates(self, rates: Sequence[float | None]) -> None:
        """Sums up solve rates."""
        known = [rate for rate in rates if rate is not None]
        if known:
            self.say(
                tasks=len(known),
                mean_p=round(statistics.fmean(known), 3),
                median_p=round(statistics.median(known), 3),
                undecided=sum(0 < rate < 1 for rate in known),
            )
        else:
            self.say(tasks=0)

    def trained(self, reports: Sequence[UpdateReport]) -> None:
        """Sums up updates."""
        self._learning = True
        last = reports[-1]
        self.say(
            steps=sum(r.steps for r in reports),
            samples=last.samples,
            decided=last.decided,
            tokens=last.tokens,
            loss=round(last.loss, 5),
            kl=round(last.kl, 6),
            grad_norm=round(last.grad_norm, 4),
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            return
        wall = time.perf_counter() - self._began
        stats = self._team.engine.stats
        if stats.passes and not self._learning:
            self.say(
                sampled_per_s=round(stats.sampled / wall),
                read_per_s=round(stats.read / wall),
                remembered=stats.remembered,
                batch=round(stats.sampled / stats.passes, 1),
                outside_engine=round(1 - stats.seconds / wall, 3),
            )
        self._run.note(phase=self._name, seconds=round(wall, 3), **self._facts)
        facts = "  ".join(f"{key.replace('_', ' ')} {_show(key, value)}" for key, value in self._facts.items())
        console.print(f"{self._name:<34} {wall:7.1f} s  {facts}", soft_wrap=True)


def _show(key: str, value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {count}" for name, count in value.items())
    return f"{100 * value:.1f} %" if key == "outside_engine" else str(value)
