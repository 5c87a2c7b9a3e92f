"""Ordered repair: entries of a log decide which of a form's values are out of date; then Review, then Commit."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal, NamedTuple

from advsim.form import Table, Text
from benchmark_forms import words
from benchmark_forms.amounts import days_after, draw_date
from benchmark_forms.assemble import Draft, assemble, names, records_block, stated
from benchmark_forms.fields import Attribute, Wanted, draw_column
from benchmark_forms.setting import Setting

_CONTACT = (
    Attribute("Phone", "int", low=200_100, high=899_900),
    Attribute("Room", "code", prefix="R"),
    Attribute("Deputy", "choice", words.PEOPLE[:12]),
    Attribute("Building", "choice", words.PLACES),
    Attribute("Desk", "int", low=1, high=90),
    Attribute("Valid from", "date"),
    Attribute("Pager", "code", prefix="PG"),
    Attribute("Door note", "phrase", words.PHRASES),
    Attribute("Out of hours", "flag"),
)
_CONTACT_SMALL = (
    Attribute("Phone", "int", low=10, high=99),
    Attribute("Room", "int", low=1, high=60),
    Attribute("Deputy", "choice", words.SHORT_PEOPLE),
    Attribute("Wing", "choice", words.SHORT_PLACES),
)


def shares(rng: Random, total: int, parts: int) -> list[int]:
    """`total` entries dealt to `parts` fields, at least one each."""
    counts = [1] * parts
    for _ in range(total - parts):
        counts[rng.randrange(parts)] += 1
    return counts


def field_count(rng: Random, setting: Setting, most: int) -> int:
    """How many fields to repair."""
    return min(setting.targets(rng), most)


def entry_count(rng: Random, setting: Setting, fields: int) -> int:
    """How many entries the log has: more than fields, or nothing would have to be decided."""
    if setting.small:
        return max(fields, rng.randint(3, 4))
    low = max(6, fields + 2) if setting.hard else max(3, fields + 1)
    return rng.randint(low, max(low, 9 if setting.hard else 5))


def repaired(attribute: Attribute, values: Sequence[str], right: int, old: Sequence[str]) -> Wanted:
    """The field that must get `values[right]`; it holds another value at first."""
    options = tuple(dict.fromkeys((*values, *old))) if attribute.type == "choice" else ()
    stale = tuple(v for v in (*values, *old) if v != values[right])
    return Wanted(attribute.name, attribute.type, values[right], options, stale)


def tiny_repair(rng: Random, setting: Setting, title: str, attributes: Sequence[Attribute]) -> Draft:
    """The `tiny` task of this stratum: the right values are simply stated."""
    items = []
    for attribute in rng.sample(attributes, setting.targets(rng)):
        values = draw_column(rng, attribute, 3, (0, 1, 2)).values
        items.append(repaired(attribute, values[:1], 0, values[1:]))
    return stated(rng, setting, title, items, repair=True)


# ------------------------------------------------------------------------------------------ contact override


def contact_override(rng: Random, setting: Setting) -> Draft:
    """A contact card: of the released revisions of a field, the highest counts."""
    title = rng.choice(("Contact card", "Staff contact", "Contact details"))
    if setting.level == "tiny":
        return tiny_repair(rng, setting, title, _CONTACT_SMALL)
    pool = _CONTACT_SMALL if setting.small else _CONTACT
    chosen = rng.sample(pool, field_count(rng, setting, 6))
    total = entry_count(rng, setting, len(chosen))
    status = not setting.small
    highest = rng.random() < 0.5  # in the small setting; else the lowest counts
    entries: list[tuple[Attribute, int, str, str]] = []
    items = []
    revisions = rng.sample(range(1, 60), total)
    for attribute, share in zip(chosen, shares(rng, total, len(chosen)), strict=True):
        own = sorted(revisions.pop() for _ in range(share))
        # Which of the field's revisions counts is drawn first: the higher ones are then not released.
        right = rng.randrange(share) if status else share - 1 if highest else 0
        values = draw_column(rng, attribute, share + 2, range(share + 2)).values
        items.append(repaired(attribute, values[:share], right, values[share:]))
        for place, revision in enumerate(own):
            if place == right:
                state = "released"
            elif place > right:
                state = rng.choice(("draft", "withdrawn"))
            else:
                state = rng.choice(("released", "released", "draft"))
            entries.append((attribute, revision, values[place], state))
    rng.shuffle(entries)
    table = status and rng.random() < 0.5
    blocks: list[Text | Table]
    if table:
        header = ("Revision", "Field", "Value", "Status")
        blocks = [records_block("Revisions", header, [(str(r), a.name, v, s) for a, r, v, s in entries])]
    elif status:
        blocks = [Text(text=f"Revision {r} ({s}): {a.name} {v}") for a, r, v, s in entries]
    else:
        blocks = [Text(text=f"rev {r}: {a.name} {v}") for a, r, v, _ in entries]
    listed = names(rng, [i.label for i in items], setting)
    if setting.small:
        goal = f"Set {listed} to the {'highest' if highest else 'lowest'} rev."
    else:
        goal = rng.choice(
            (
                "Bring {} up to date: for each, the highest released revision counts.",
                "Correct {}. Each takes the value of its highest revision that is released.",
                "Set {} right; of the released revisions, the one with the highest number holds.",
            )
        ).format(listed)
    shape = ("table" if table else "lines", total, len(items), tuple(sorted(e[0].name for e in entries)))
    return assemble(rng, setting, title=title, blocks=blocks, items=items, goal=goal, shape=shape, repair=True)


# --------------------------------------------------------------------------------------------- dated patches

_LISTING = (
    Attribute("Seats", "int", low=20, high=400),
    Attribute("Ticket price", "money", low=5, high=90),
    Attribute("Opens on", "date"),
    Attribute("Host", "choice", words.PEOPLE[10:24]),
    Attribute("Venue", "choice", words.PLACES),
    Attribute("Minutes", "int", low=40, high=240),
    Attribute("Public notice", "phrase", words.PHRASES),
    Attribute("Sold online", "flag"),
    Attribute("Hall code", "code", prefix="H"),
)
_LISTING_SMALL = (
    Attribute("Seats", "int", low=5, high=90),
    Attribute("Price", "int", low=1, high=60),
    Attribute("Host", "choice", words.SHORT_PEOPLE),
    Attribute("Hall", "choice", words.COLOURS),
)


class Patch(NamedTuple):
    """One dated change: the field takes the value, or is raised or lowered by it."""

    day: str
    field: str
    change: Literal["set to", "raised by", "lowered by"]
    value: str


def dated_patches(rng: Random, setting: Setting) -> Draft:
    """A listing with dated changes: those up to a day apply, in order of date; later ones do not yet."""
    title = rng.choice(("Event listing", "Programme entry", "Listing"))
    if setting.level == "tiny":
        return tiny_repair(rng, setting, title, _LISTING_SMALL)
    chosen = rng.sample(_LISTING_SMALL if setting.small else _LISTING, field_count(rng, setting, 6))
    total = entry_count(rng, setting, len(chosen))
    dealt = shares(rng, total, len(chosen))
    # Which of a field's entries is the last to apply is drawn first; the later ones lie after the day in question.
    applied = [rng.randint(1, share) for share in dealt]
    early, late = sum(applied), total - sum(applied)
    days, today = _days(rng, early, late, setting)
    before, after = days[:early], days[early:]
    rng.shuffle(before)
    rng.shuffle(after)
    patches: list[Patch] = []
    items = []
    for attribute, share, count in zip(chosen, dealt, applied, strict=True):
        own = [*sorted(before.pop() for _ in range(count)), *sorted(after.pop() for _ in range(share - count))]
        values = draw_column(rng, attribute, share + 2, range(share + 2)).values
        made = [Patch(day, attribute.name, "set to", v) for day, v in zip(own, values, strict=False)]
        item = repaired(attribute, values[:share], count - 1, values[share:])
        if attribute.type == "int" and setting.hard and count > 1:
            step = rng.randint(2, 15)
            change: Literal["raised by", "lowered by"] = rng.choice(("raised by", "lowered by"))
            made[count - 1] = Patch(own[count - 1], attribute.name, change, str(step))
            base = int(values[count - 2])
            right = str(base + step if change == "raised by" else base - step)
            item = Wanted(attribute.name, "int", right, stale=(values[-1], values[count - 2]))
        patches += made
        items.append(item)
    rng.shuffle(patches)
    table = not setting.small and rng.random() < 0.5
    blocks: list[Text | Table]
    if table:
        rows = [(p.day, p.field, f"{p.change} {p.value}") for p in patches]
        blocks = [records_block("Changes", ("Date", "Field", "Change"), rows)]
    elif setting.small:
        blocks = [Text(text=f"day {int(p.day)}: {p.field} {p.value}") for p in patches]
    else:
        blocks = [Text(text=f"{p.day}: {p.field} {p.change} {p.value}.") for p in patches]
    listed = names(rng, [i.label for i in items], setting)
    if setting.small:
        goal = f"Today is day {int(today)}. Set {listed} to the newest value up to today."
    else:
        goal = rng.choice(
            (
                "Bring {f} to the state of {d}: changes up to and including that day apply in order of their dates.",
                "Set {f} as they stand on {d}. Changes up to that day count, in order of date; later ones do not.",
            )
        ).format(f=listed, d=today)
    steps = sum(p.change != "set to" for p in patches)
    shape = ("table" if table else "lines", total, late, steps, "+".join(sorted(p.field for p in patches)))
    return assemble(rng, setting, title=title, blocks=blocks, items=items, goal=goal, shape=shape, repair=True)


def _days(rng: Random, early: int, late: int, setting: Setting) -> tuple[list[str], str]:
    """Different days, the first `early` of them not after the day that is also returned, the others after it."""
    if setting.small:
        numbers = sorted(rng.sample(range(1, 31), early + late))
        today = rng.randint(numbers[early - 1], (numbers[early] if late else 31) - 1)
        return [f"{n:02}" for n in numbers], f"{today:02}"
    first = draw_date(rng, 2025)
    offsets = sorted(rng.sample(range(300), early + late))
    now = rng.randint(offsets[early - 1], (offsets[early] if late else offsets[-1] + 20) - 1)
    return [days_after(first, n).isoformat() for n in offsets], days_after(first, now).isoformat()
