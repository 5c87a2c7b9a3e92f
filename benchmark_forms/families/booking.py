"""Conditional policy, third family: each entry of a booking has a rule of its own."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from advsim.form import Table, Text
from benchmark_forms import words
from benchmark_forms.assemble import Draft, assemble, names, records_block, stated
from benchmark_forms.families.asking import span, tick
from benchmark_forms.fields import Attribute, Column, Wanted, draw_column, wanted
from benchmark_forms.setting import Setting

_OUTPUTS = (
    Attribute("Room", "choice", ("Nook", "Studio", "Forum", "Gallery", "Loft")),
    Attribute("Approver", "choice", words.PEOPLE[:14]),
    Attribute("Deposit", "money", low=5, high=95),
    Attribute("Entrance", "choice", ("main gate", "east door", "courtyard", "ramp", "garage")),
    Attribute("Caretaker needed", "flag"),
    Attribute("Answer by", "date"),
    Attribute("House note", "phrase", words.PHRASES),
    Attribute("Spare chairs", "int", low=1, high=40),
    Attribute("Locker", "code", prefix="L"),
)
_OUTPUTS_SMALL = (
    Attribute("Room", "choice", ("nook", "loft", "hall", "den")),
    Attribute("Key", "int", low=1, high=60),
    Attribute("Door", "choice", ("east", "west", "north", "south")),
    Attribute("Fee", "int", low=2, high=60),
    Attribute("Guard", "flag"),
)
_PARTS = ("morning", "afternoon", "evening")


class Facts(NamedTuple):
    """What is booked."""

    people: int
    hours: int
    part: str


class Rule(NamedTuple):
    """How one entry depends on one fact: `cases` are the fact's ranges or words, `right` the one that holds."""

    fact: str
    cases: tuple[str, ...]
    column: Column
    right: int

    def told(self) -> str:
        """The cases and their values, in one line."""
        return "; ".join(f"{case}: {value}" for case, value in zip(self.cases, self.column.values, strict=True))


def room_booking(rng: Random, setting: Setting) -> Draft:
    """A room booking: each entry goes by people, hours or time of day, unless an exception sets it."""
    title = rng.choice(("Room booking", "Book a room", "Booking desk"))
    if setting.small:
        return _booking_small(rng, setting, title)
    facts = Facts(rng.randint(4, 26), rng.randint(4, 6), rng.choice(_PARTS))
    wanted_count = setting.targets(rng)
    exceptions = rng.randint(1, 2) if setting.hard else 0
    count = min(max(setting.records(rng) - exceptions, wanted_count), 9 - exceptions)
    rules = [_rule(rng, a, facts) for a in rng.sample(_OUTPUTS, count)]
    asked = sorted(rng.sample(range(count), wanted_count))
    items = {i: wanted(rules[i].column, rules[i].right) for i in asked}

    guests = rng.random() < 0.25  # an exception is one answer of about four, and as likely
    overridden = rng.sample(asked, min(exceptions, len(asked)))
    sentences = []
    for i in overridden:
        fixed = _other_value(rng, rules[i])
        sentences.append(f"With outside guests, {rules[i].column.attribute.name} is always {fixed}.")
        if guests:
            items[i] = items[i]._replace(value=fixed, stale=(items[i].value, *items[i].stale))
        if items[i].type == "choice":
            items[i] = items[i]._replace(options=(*items[i].options, fixed))
    table = rng.random() < 0.4
    blocks: list[Text | Table]
    if table:
        rows = [(r.column.attribute.name, r.fact, r.told()) for r in rules]
        blocks = [records_block("Booking rules", ("Entry", "Goes by", "Rule"), rows)]
    else:
        blocks = [Text(text=f"{r.column.attribute.name} goes by {r.fact}. {r.told()}.") for r in rules]
    blocks += [Text(text=s) for s in sentences]
    on_page = rng.random() < 0.4
    who = rng.choice(words.PEOPLE)
    if on_page:
        header = ("Booked by", "People", "Hours", "Time of day", "Outside guests")
        row = (who, str(facts.people), str(facts.hours), facts.part, "yes" if guests else "no")
        blocks.insert(rng.choice((0, len(blocks))), records_block("Request", header, [row]))
        case = rng.choice(
            (f"Handle the request of {who} on the page.", f"{who}'s request on the page is to be booked.")
        )
    else:
        company = ", with outside guests" if guests else ", without outside guests"
        case = (
            f"{who} books for {facts.people} people and {facts.hours} hours in the {facts.part}"
            f"{company if exceptions else ''}."
        )
    chosen = [items[i] for i in asked]
    ask = rng.choice(("By the booking rules, enter {}.", "Fill in {} by the rules.", "Work out and enter {}."))
    goal = f"{case} {ask.format(names(rng, [i.label for i in chosen], setting))}{tick(chosen)}"
    by = "+".join(f"{rules[i].fact}{len(rules[i].cases)}" for i in asked)
    shape = ("table" if table else "lines", count, exceptions, on_page, by)
    return assemble(rng, setting, title=title, blocks=blocks, items=chosen, goal=goal, shape=shape)


def _rule(rng: Random, attribute: Attribute, facts: Facts) -> Rule:
    """A rule in which every case is as likely to hold: the case is drawn first, the ranges are laid around the fact."""
    fact = rng.choice(Facts._fields)
    count = 2 if attribute.type == "flag" and fact != "part" else rng.randint(3, 4)
    if fact == "part":
        cases = tuple(rng.sample(_PARTS, 3))
        right = cases.index(facts.part)
    else:
        right = rng.randrange(count)
        number, most = (facts.people, 40) if fact == "people" else (facts.hours, 9)
        cuts = sorted(rng.sample(range(1, number), right)) + sorted(rng.sample(range(number, most), count - 1 - right))
        cases = tuple(span(a + 1, b) for a, b in zip([0, *cuts], [*cuts, most], strict=True))
    return Rule(
        fact if fact != "part" else "time of day", cases, draw_column(rng, attribute, len(cases), [right]), right
    )


def _other_value(rng: Random, rule: Rule) -> str:
    """A value that an exception sets, not the one that the rule gives."""
    column, usual = rule.column, rule.column.values[rule.right]
    kind = column.attribute.type
    if kind == "flag":
        return "no" if usual == "yes" else "yes"
    pool: Sequence[str] = column.attribute.pool
    if kind != "choice":
        pool = draw_column(rng, column.attribute, 5).values
    return rng.choice([v for v in pool if v not in column.values])


def _booking_small(rng: Random, setting: Setting, title: str) -> Draft:
    count = setting.targets(rng)
    if setting.level == "tiny":
        columns = [draw_column(rng, a, 3) for a in rng.sample(_OUTPUTS_SMALL, count)]
        return stated(rng, setting, title, [wanted(c, 0) for c in columns])
    total = max(count, rng.randint(2, 3))
    people = rng.randint(3, 16)
    lines: list[Text | Table] = []
    items: list[Wanted] = []
    for attribute in rng.sample(_OUTPUTS_SMALL, total):
        right = rng.randrange(3)
        below = rng.sample(range(1, people), right)
        cuts = [0, *sorted(below + rng.sample(range(people, 29), 2 - right)), 30]
        column = draw_column(rng, attribute, 3, [right])
        told = [f"{span(a + 1, b)}: {v}" for a, b, v in zip(cuts, cuts[1:], column.values, strict=False)]
        lines.append(Text(text=f"{attribute.name} by people. {'; '.join(told)}"))
        items.append(wanted(column, right))
    items = rng.sample(items, count)
    goal = f"Book for {people} people. Set {names(rng, [i.label for i in items], setting)}."
    return assemble(rng, setting, title=title, blocks=lines, items=items, goal=goal, shape=(total, count))
