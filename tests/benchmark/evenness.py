"""Measures whether anything but the rule tells the answer.

`python tests/benchmark/evenness.py [tasks for each family and setting]`

A shortcut is a guess that needs no reasoning. For each, `hits` counts how often it was right, and `chance` adds up how
often a blind guess among the same candidates would have been.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable

from formsolver import Found, solve
from scipy.stats import chi2

from advsim.form import Control
from advsim.task import Task
from advsim.world.symbolic import first_page
from benchmark_forms import families, generate

SETTINGS = ("easy-short", "easy-long", "hard-short", "hard-long", "small")
PLACEHOLDERS = ("Choose…", "Select one", "Please choose")
FIRST_SEED = 1_000_000


class Tally:
    """Places of deciding records and right options, and each shortcut's hits and chance."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int]] = []
        self.options: list[tuple[int, int]] = []
        self.hits: defaultdict[str, float] = defaultdict(float)
        self.chance: defaultdict[str, float] = defaultdict(float)

    def add(self, shortcut: str, hit: bool, chance: float) -> None:
        self.hits[shortcut] += hit
        self.chance[shortcut] += chance

    def merge(self, other: Tally) -> None:
        self.rows += other.rows
        self.options += other.options
        for name in other.chance:
            self.hits[name] += other.hits[name]
            self.chance[name] += other.chance[name]

    def ratio(self, shortcut: str) -> float:
        return self.hits[shortcut] / self.chance[shortcut]


def rows_tally(tally: Tally, found: Found) -> None:
    for at, count, columns in found.decisions:
        if count < 2:
            continue
        tally.rows.append((at, count))
        tally.add("first record", at == 0, 1 / count)
        tally.add("last record", at == count - 1, 1 / count)
        for column in columns:
            tally.add("largest number", column[at] == max(column), column.count(max(column)) / count)
            tally.add("smallest number", column[at] == min(column), column.count(min(column)) / count)


def options_tally(tally: Tally, control: Control, right: str, text: str) -> None:
    options = [o for o in control.options if o not in PLACEHOLDERS]
    chance = 1 / len(options)
    tally.options.append((options.index(right), len(options)))
    tally.add("first option", options[0] == right, chance)
    tally.add("last option", options[-1] == right, chance)
    tally.add("longest option", max(options, key=len) == right, chance)
    tally.add("shortest option", min(options, key=len) == right, chance)
    if control.value in options:
        tally.add("initial choice", control.value == right, chance)
    named = [o for o in options if o in text]
    tally.add("option named most often", max(named, key=text.count) == right, 1 / len(named))
    tally.add("option named least often", min(named, key=text.count) == right, 1 / len(named))
    tally.add("option named first", min(named, key=text.find) == right, 1 / len(named))


def task_tally(tally: Tally, task: Task) -> None:
    assert task.form is not None
    assert task.expectation is not None
    page = first_page(task.form).text
    rows_tally(tally, solve(task.family, task.setting, page, task.goal))
    text = "\n".join(line for line in page.split("\n") if "StaticText" in line or "row '" in line)
    for key, right in task.expectation.values.items():
        control = task.form.control(key)
        if control.options:
            options_tally(tally, control, right, text)
        elif control.kind == "checkbox":
            tally.add("always tick", right == "on", 0.5)
            tally.add("never tick", right == "", 0.5)
            tally.add("box as it is", right == control.value, 0.5)
            tally.add("box the other way", right != control.value, 0.5)


def measure(count: int, settings: Iterable[str] = SETTINGS) -> dict[str, Tally]:
    """By family, over `count` tasks a setting."""
    out = {}
    for family in families():
        tally = Tally()
        for setting in settings:
            for seed in range(FIRST_SEED, FIRST_SEED + count):
                task_tally(tally, generate(family, setting, seed))
        out[family] = tally
    return out


def p_value(places: Iterable[tuple[int, int]]) -> float:
    """Chi-square test that places are uniform, pooled over the numbers of candidates."""
    by_count: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for at, count in places:
        by_count[count][at] += 1
    total = degrees = 0.0
    for count, seen in by_count.items():
        expected = sum(seen.values()) / count
        if expected >= 5:
            total += sum((seen[i] - expected) ** 2 / expected for i in range(count))
            degrees += count - 1
    return float(chi2.sf(total, degrees)) if degrees else 1.0


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 134
    measured = measure(count)
    print(f"{count * len(SETTINGS) * len(measured)} tasks\n")
    print(f"{'family':18}{'records':>9}{'p':>7}{'choices':>9}{'p':>7}  worst shortcut (chance of 30 or more)")
    everything = Tally()
    for family, tally in measured.items():
        everything.merge(tally)
        worst = max((s for s in tally.chance if tally.chance[s] >= 30), key=tally.ratio, default="")
        shown = f"{worst} {tally.ratio(worst):.2f}" if worst else ""
        rows, options = len(tally.rows), len(tally.options)
        print(
            f"{family:18}{rows:9}{p_value(tally.rows) if rows else 1:7.3f}"
            f"{options:9}{p_value(tally.options) if options else 1:7.3f}  {shown}"
        )
    print(f"\n{'shortcut, all families':28}{'hits':>8}{'by chance':>11}{'ratio':>7}")
    for name in everything.chance:
        print(f"{name:28}{everything.hits[name]:8.0f}{everything.chance[name]:11.0f}{everything.ratio(name):7.2f}")


if __name__ == "__main__":
    main()
