"""Ordered repair: entries of a log decide which of a form's values are out of date; then Review, then Commit."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from advsim.form import Table, Text
from benchmark_forms import words
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
    entries: list[tuple[Attribute, int, str, str]] = []
    items = []
    revisions = rng.sample(range(1, 60), total)
    for attribute, share in zip(chosen, shares(rng, total, len(chosen)), strict=True):
        own = sorted(revisions.pop() for _ in range(share))
        # Which of the field's revisions counts is drawn first: the higher ones are then not released.
        right = rng.randrange(share) if status else share - 1
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
        goal = f"Set {listed} to the highest rev."
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
