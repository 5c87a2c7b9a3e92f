"""Conditional policy: facts of a case pick the rule, and the rule says what to enter."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from advsim.form import Table, Text
from benchmark_forms import words
from benchmark_forms.assemble import Draft, assemble, names, records_block, stated
from benchmark_forms.fields import Attribute, Column, Wanted, draw_column, wanted
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
        wanted(c, winner, f"{c.attribute.name} for {person}" if len(winners) > 1 else "")
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


_RETURNS = (
    Attribute("Outcome", "choice", ("refund", "store credit", "exchange", "repair", "no return")),
    Attribute("Fee", "money", low=1, high=30),
    Attribute("Desk", "choice", ("blue desk", "back office", "front counter", "warehouse", "service point")),
    Attribute("Prepaid label", "flag"),
    Attribute("Reply by", "date"),
    Attribute("Packing note", "phrase", words.PHRASES),
    Attribute("Shelf days", "int", low=2, high=60),
)
_RETURNS_SMALL = (
    Attribute("Outcome", "choice", ("refund", "swap", "credit", "repair", "none")),
    Attribute("Fee", "int", low=1, high=60),
    Attribute("Desk", "choice", ("red", "blue", "green", "white")),
    Attribute("Label", "flag"),
)


def returns_policy(rng: Random, setting: Setting) -> Draft:
    """A shop's returns: the goods' condition and the days since purchase pick the rule."""
    title = rng.choice(("Return desk", "Returns", "Return request"))
    if setting.level == "tiny":
        chosen = rng.sample(_RETURNS_SMALL, setting.targets(rng))
        columns = [draw_column(rng, a, 3) for a in chosen]
        return stated(rng, setting, title, [wanted(c, 0) for c in columns])
    states = ("sealed", "opened", "worn", "faulty", "scratched")
    if setting.small:
        return _returns_small(rng, setting, title, states)
    cases = case_count(rng, setting)
    member_rule = setting.hard and rng.random() < 0.6
    count = setting.records(rng)
    if member_rule:
        count = min(count, 8)
    kinds = rng.sample(states, rng.randint(2, 3) if count <= 6 else rng.randint(3, 4))
    spans = bands(rng, -(-count // len(kinds)) + rng.randint(0, 1), 14)
    cells = rng.sample([(kind, span) for kind in kinds for span in spans], count)
    chosen = rng.sample(_RETURNS, output_count(rng, setting, cases, 6))
    winners = rng.sample(range(count), cases)
    columns = [draw_column(rng, a, count, winners) for a in chosen]

    table = rng.random() < 0.5
    if table:
        rows = [(k, f"{a} to {b}", *(c.values[i] for c in columns)) for i, (k, (a, b)) in enumerate(cells)]
        header = ("Condition", "Days since purchase", *(a.name for a in chosen))
        blocks: list[Text | Table] = [records_block("Returns policy", header, rows)]
    else:
        blocks = [
            rule_line(f"{k.capitalize()} goods, {a} to {b} days after purchase", columns, i, short=False)
            for i, (k, (a, b)) in enumerate(cells)
        ]
    grace = rng.randint(3, 9)
    if member_rule:
        blocks.append(Text(text=f"For members of the club, {grace} days are taken off before the policy is read."))
    people = rng.sample(words.PEOPLE, cases)
    facts = []
    for person, winner in zip(people, winners, strict=True):
        kind, (low, high) = cells[winner]
        member = member_rule and rng.random() < 0.5
        days = rng.randint(low, high) + (grace if member else 0)
        item = rng.choice(words.GOODS)
        club = (", a club member," if member else ", not a club member,") if member_rule else ""
        facts.append(f"{person}{club} brings back {words.article(item)} bought {days} days ago; it is {kind}.")
    items = asked(columns, winners, people)
    ask = rng.choice(("Fill in {} as the policy says.", "By the returns policy, enter {}.", "Settle it: enter {}."))
    goal = f"{' '.join(facts)} {ask.format(names(rng, [i.label for i in items], setting))}{tick(items)}"
    shape = ("table" if table else "lines", count, len(kinds), len(spans), cases, member_rule)
    return assemble(rng, setting, title=title, blocks=blocks, items=items, goal=goal, shape=shape)


def tick(items: Sequence[Wanted]) -> str:
    """How to answer a yes or no with a box, where there is one."""
    return " A ticked box means yes." if any(i.type == "flag" for i in items) else ""


def _returns_small(rng: Random, setting: Setting, title: str, states: Sequence[str]) -> Draft:
    chosen = rng.sample(_RETURNS_SMALL, output_count(rng, setting, 1, 3))
    winner = rng.randrange(3)
    columns = [draw_column(rng, a, 3, [winner]) for a in chosen]
    by_days = rng.random() < 0.5
    item = rng.choice(words.SHORT_GOODS)
    if by_days:
        spans = bands(rng, 3, 12)
        rng.shuffle(spans)
        conditions = [f"{a} to {b} days" for a, b in spans]
        fact = f"The {item} is {rng.randint(*spans[winner])} days old."
    else:
        kinds = rng.sample(states, 3)
        conditions = kinds
        fact = f"The {item} is {kinds[winner]}."
    blocks = [rule_line(condition, columns, i, short=True) for i, condition in enumerate(conditions)]
    items = [wanted(c, winner) for c in columns]
    goal = f"{fact} Set {names(rng, [i.label for i in items], setting)}."
    shape = ("days" if by_days else "state", len(items))
    return assemble(rng, setting, title=title, blocks=blocks, items=items, goal=goal, shape=shape)
