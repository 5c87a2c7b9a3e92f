"""What the families' goals have in common: how many cases and values they ask for, and under which labels."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from advsim.form import Text
from benchmark_forms.fields import Column, Wanted, wanted
from benchmark_forms.setting import Setting


def case_count(rng: Random, setting: Setting) -> int:
    """How many cases a form settles: with two, every field is asked for twice."""
    return rng.randint(1, 2) if setting.long else 1


def output_count(rng: Random, setting: Setting, cases: int, most: int) -> int:
    """How many values each case has, so that all cases together keep to the setting's bounds."""
    if setting.small:
        return min(setting.targets(rng), most)
    if cases == 2:
        return rng.randint(2, 3)
    return min(setting.targets(rng), most)


def rule_line(condition: str, columns: Sequence[Column], row: int, *, short: bool) -> Text:
    """One rule as a sentence."""
    said = ", ".join(f"{c.attribute.name} {c.values[row]}" for c in columns)
    return Text(text=f"{condition}: {said}" if short else f"{condition}: {said}.")


def asked(columns: Sequence[Column], winners: Sequence[int], people: Sequence[str]) -> list[Wanted]:
    """Every column's value for every case; with several cases, the label says whose it is."""
    return [
        wanted(c, winner, for_person(c.attribute.name, person, len(winners)))
        for winner, person in zip(winners, people, strict=True)
        for c in columns
    ]


def bands(rng: Random, count: int, width: int) -> list[tuple[int, int]]:
    """Neighbouring ranges of whole numbers, from 1 upwards."""
    found: list[tuple[int, int]] = []
    low = 1
    for _ in range(count):
        high = low + rng.randint(max(2, width // 2), width)
        found.append((low, high))
        low = high + 1
    return found


def span(low: int, high: int) -> str:
    """A range of whole numbers in words."""
    return f"{low} to {high}" if low < high else str(low)


def for_person(label: str, person: str, cases: int) -> str:
    """The label of a person's field; with one case there is no need to say whose."""
    return f"{label} for {person}" if cases > 1 else label


def tick(items: Sequence[Wanted]) -> str:
    """How to answer a yes or no with a box, where there is one."""
    return " A ticked box means yes." if any(i.type == "flag" for i in items) else ""


def decimals(items: Sequence[Wanted]) -> str:
    """How to write amounts, where there are any."""
    money_asked = any(i.type == "money" for i in items)
    return " Amounts have two decimals; half a cent is rounded up." if money_asked else ""


def some(rng: Random, items: Sequence[Wanted], setting: Setting) -> list[Wanted]:
    """As many of the possible values as the setting asks for, in their order."""
    count = min(len(items), setting.targets(rng))
    chosen = sorted(rng.sample(range(len(items)), count))
    return [items[i] for i in chosen]


def label_shape(items: Sequence[Wanted], named: Sequence[str]) -> str:
    """The labels without the records' own names: which values the task asks for."""
    text = "+".join(i.label for i in items)
    for name in named:
        text = text.replace(f" {name}", "")
    return text
