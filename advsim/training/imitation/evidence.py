"""Where a value comes from, written out in steps of which each copies something near the last thing written.

The order is what makes this learnable: first what is looked for, then the few places that have it, then which of them
it is, then its row in the page's own words. Made from the goal's and the page's text alone, and the right value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

_RANGE: Final = re.compile(r"\d+ to \d+")
_NUMBER: Final = re.compile(r"\d+")
_TWO_TRAITS: Final = re.compile(r"Take the (\w+) (\w+) one\.")
_CHEAPEST: Final = re.compile(r"Take the cheapest from the (\w+)\.")
_EXTREME: Final = re.compile(r"\bto the (highest|lowest) \w+\.")
_UP_TO: Final = re.compile(r"Today is \w+ (\d+)\..* the newest value up to today\.")


class Evidence(NamedTuple):
    """Steps that are said once, and the page's row at their end, said again for each of its values; empty if stated."""

    steps: tuple[str, ...] = ()
    row: str = ""


class Asked(NamedTuple):
    """A field whose value is looked for.

    Attributes:
        goal: The task's goal.
        lines: The page's lines of text.
        label: The field's label.
        value: Its right value, as pages say it.
        values: The right values of all fields, by label.
    """

    goal: str
    lines: Sequence[str]
    label: str
    value: str
    values: dict[str, str]


def evidence(asked: Asked) -> Evidence:
    """How the value is found; nothing where it is stated, or stands on the page's only line."""
    if sums := _sums(asked):
        return Evidence(tuple(sums))
    if len(asked.lines) < 2:
        return Evidence()
    for rule in (_two_traits, _cheapest, _entry):
        if found := rule(asked):
            return found
    return _row(asked)


# --- selection ---------------------------------------------------------------------------------------------------


def _items(line: str) -> list[str]:
    return re.split(r": |, ", line)


def _number(text: str) -> int:
    return int(_NUMBER.findall(text)[0])


def _two_traits(asked: Asked) -> Evidence | None:
    """The rows that have the first trait, one after the other, until one has the second as well."""
    match = _TWO_TRAITS.search(asked.goal)
    if match is None:
        return None
    steps = [f"{match[2]}, {match[1]}"]
    for line in asked.lines:
        name, first, second, *_ = _items(line)
        if first == match[2]:
            if second == match[1]:
                return Evidence(tuple(steps), line)
            steps.append(f"{name}: {first}, {second}")
    return None


def _cheapest(asked: Asked) -> Evidence | None:
    """The rows of the region with their prices, then the row with the lowest."""
    match = _CHEAPEST.search(asked.goal)
    if match is None:
        return None
    prices: dict[str, int] = {}
    for line in asked.lines:
        _, region, *rest = _items(line)
        if region == match[1]:
            prices[line] = next(_number(x) for x in rest if x.startswith("Price "))
    told = ", ".join(f"{_items(line)[0]} {price}" for line, price in prices.items())
    return Evidence((f"{match[1]}: {told}",), min(prices, key=prices.__getitem__))


def _entry(asked: Asked) -> Evidence | None:
    """The numbers of the field's entries, those of them that count, then the entry that decides."""
    extreme, until = _EXTREME.search(asked.goal), _UP_TO.search(asked.goal)
    last = "last entry that is not dropped" in asked.goal
    if not (extreme or until or last):
        return None
    entries = {_number(x): x for x in asked.lines if _items(x)[1].startswith(f"{asked.label} ")}
    dropped = next((x.partition(": drop ")[2] for x in asked.lines if ": drop " in x), "")
    if extreme:
        told, counting = extreme[1], [max(entries) if extreme[1] == "highest" else min(entries)]
    elif until:
        told, counting = f"up to {until[1]}", [n for n in entries if n <= int(until[1])]
    else:
        told, counting = f"not {dropped}", [n for n in entries if str(n) not in _NUMBER.findall(dropped)]
    steps = [f"{asked.label}: {', '.join(map(str, entries))}"]
    if len(entries) > 1 and (dropped or not last):
        steps.append(f"{told}: {', '.join(map(str, counting))}")
    decides = min(counting) if extreme and extreme[1] == "lowest" else max(counting)
    return Evidence(tuple(steps), entries[decides])


def _row(asked: Asked) -> Evidence:
    """The row that says the value, after the row that names it, if one does."""
    line = _line(asked)
    if line is None:
        return Evidence()
    condition, _, rest = line.partition(": ")
    numbers = _NUMBER.findall(asked.goal)
    if numbers and any(_RANGE.search(other) for other in asked.lines):
        return Evidence((), f"{numbers[0]} in {line}")
    for other in asked.lines:
        said, _, named = other.partition(": ")
        if named == condition and rest and re.search(rf"\b{re.escape(said)}\b", asked.goal):
            return Evidence((other,), line)
    return Evidence((), line)


def _line(asked: Asked) -> str | None:
    """The page's line that says this value: of those that do, the one that says most of the other values."""
    if by := re.search(rf"\b{re.escape(asked.label)} by (\w+)", asked.goal):
        return next((x for x in asked.lines if x.startswith(f"{by[1]}: ")), None)
    best, most = None, 0.0
    for line in asked.lines:
        items = _items(line)
        if f"{asked.label} {asked.value}" not in items and items[0] != asked.value:
            continue
        score = 1.0 + sum(f"{label} {value}" in items for label, value in asked.values.items())
        score += any(re.search(rf"\b{re.escape(x)}\b", asked.goal) is not None for x in items) * 0.5
        if score > most:
            best, most = line, score
    return best


# --- arithmetic --------------------------------------------------------------------------------------------------


def plus(a: int, b: int) -> str:
    """`a+b=c`."""
    return f"{a}+{b}={a + b}"


def minus(a: int, b: int) -> str:
    """`a-b=c`."""
    return f"{a}-{b}={a - b}"


def times(a: int, b: int) -> str:
    """`a*b=c`."""
    return f"{a}*{b}={a * b}"


def packs(a: int, b: int) -> str:
    """`a/b=c`, rounded up: how many packs of b hold a."""
    return f"{a}/{b}={-(-a // b)}"


def _sums(asked: Asked) -> list[str]:
    """The sums of the families and drills whose values are reckoned; nothing for any other field."""
    label, lines = asked.label, asked.lines
    if match := re.search(r"Buy (\d+) (\w+) or", asked.goal):
        row = next(x for x in lines if x.startswith(f"{match[2]}: "))
        size, need = _number(row), int(match[1])
        full = -(-need // size)
        steps = [row]
        if label != "Pack size":
            steps.append(packs(need, size))
        if label == "Spare":
            steps += [times(full, size), minus(full * size, need)]
        return steps
    if "Goods is the sum" in asked.goal:
        *items, last = [_number(x) for x in lines]
        extra = lines[-1].split(": ")[0]
        if label == extra:
            return []
        total, steps = items[0], []
        for n in items[1:]:
            steps.append(plus(total, n))
            total += n
        return steps if label == "Goods" else [*steps, (minus if extra == "Rebate" else plus)(total, last)]
    if match := re.search(r"A quote for (\d+) pieces", asked.goal):
        return _quote(asked, int(match[1]))
    said = asked.goal + "\n" + "\n".join(lines)
    if match := re.search(rf"\b{re.escape(label)} (\d+) (plus|minus|times) (\d+)", said):
        return [{"plus": plus, "minus": minus, "times": times}[match[2]](int(match[1]), int(match[3]))]
    return []


def _quote(asked: Asked, count: int) -> list[str]:
    steps: list[str] = []
    price = 0
    for line in asked.lines:
        spans, _, rest = line.partition(": ")
        numbers = [int(n) for n in _NUMBER.findall(spans)]
        if numbers and numbers[0] <= count <= numbers[-1] and rest.endswith("each"):
            price = _number(rest)
            steps.append(f"{count} in {line}")
    if asked.label != "Price":
        steps.append(times(count, price))
    if asked.label not in ("Price", "Cost"):
        steps.append(plus(count * price, _number(asked.lines[-1])))
    return steps
