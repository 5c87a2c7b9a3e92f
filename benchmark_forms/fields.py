"""From values to controls: what a record says, and the fields that ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal, NamedTuple

from advsim.form import Control
from benchmark_forms.amounts import draw_date, draw_money, show
from benchmark_forms.setting import Setting

ValueType = Literal["choice", "int", "money", "date", "flag", "phrase", "code"]
Kind = Literal["text", "number", "date", "textarea", "select", "radio", "checkbox"]

# How often each kind of field asks for each type of value.
_KINDS: dict[ValueType, tuple[tuple[Kind, int], ...]] = {
    "choice": (("select", 9), ("radio", 6), ("text", 5)),
    "int": (("number", 1), ("text", 1)),
    "money": (("text", 3), ("number", 2)),
    "date": (("date", 3), ("text", 2)),
    "flag": (("checkbox", 1),),
    "phrase": (("textarea", 3), ("text", 1)),
    "code": (("text", 1),),
}
_SMALL_KINDS: dict[ValueType, tuple[tuple[Kind, int], ...]] = {
    **_KINDS,
    "choice": (("text", 2), ("select", 2), ("radio", 1)),
    "int": (("text", 2), ("number", 1)),
    "phrase": (("text", 1),),
}
PLACEHOLDERS = ("Choose…", "Select one", "Please choose")


class Attribute(NamedTuple):
    """Something that every record of a kind has.

    Attributes:
        name: Column header and field label.
        type: Type of its values.
        pool: Words to draw from (choices, phrases).
        low, high: Bounds of numbers, and of money in whole units.
        prefix: Letters before a code's number.
    """

    name: str
    type: ValueType
    pool: tuple[str, ...] = ()
    low: int = 1
    high: int = 60
    prefix: str = "K"


class Column(NamedTuple):
    """One attribute's value in each record, and for choices every value that could have stood there."""

    attribute: Attribute
    values: tuple[str, ...]
    universe: tuple[str, ...]


class Wanted(NamedTuple):
    """A value that the task asks for.

    Attributes:
        label: Label of its field.
        type: Type of the value.
        value: The right one.
        options: For choices: what else could be chosen.
        stale: Other values that the field may hold at first.
    """

    label: str
    type: ValueType
    value: str
    options: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()


def draw_column(rng: Random, attribute: Attribute, count: int, winners: Sequence[int] = ()) -> Column:
    """Values for `count` records, the ones at `winners` deciding the task.

    Choices and flags: the deciding records' values are uniform (and differ among themselves while they can), and
    the other records even the counts out, so that neither a fixed option nor the commonest one is a better guess
    than any other. All other types: all different.
    """
    kind = attribute.type
    if kind in ("choice", "flag"):
        if kind == "flag":
            universe: tuple[str, ...] = ("yes", "no")
        else:
            # No larger than what the records can name: an option that no record names is no real choice.
            size = min(len(attribute.pool), max(3, min(count, rng.randint(3, 5))))
            universe = tuple(rng.sample(attribute.pool, size))
        return Column(attribute, _even(rng, universe, count, winners), universe)
    if kind == "phrase":
        values = tuple(rng.sample(attribute.pool, count))
    elif kind == "int":
        values = tuple(map(str, rng.sample(range(attribute.low, attribute.high + 1), count)))
    else:
        found: dict[str, None] = {}
        while len(found) < count:
            found[_draw(rng, attribute)] = None
        values = tuple(found)
    return Column(attribute, values, values)


def _even(rng: Random, universe: tuple[str, ...], count: int, winners: Sequence[int]) -> tuple[str, ...]:
    values = [""] * count
    order = list(universe)
    rng.shuffle(order)
    for place, winner in enumerate(winners):
        values[winner] = order[place % len(order)]
    rest = [i for i in range(count) if not values[i]]
    rng.shuffle(rest)
    used = {option: values.count(option) for option in universe}
    rng.shuffle(order)  # who is ahead by one must not depend on who decides
    for i in rest:
        least = min(order, key=used.__getitem__)
        values[i] = least
        used[least] += 1
    return tuple(values)


def _draw(rng: Random, attribute: Attribute) -> str:
    if attribute.type == "money":
        return show(draw_money(rng, attribute.low, attribute.high))
    if attribute.type == "date":
        return draw_date(rng).isoformat()
    return f"{attribute.prefix}-{rng.randint(100, 999)}"


def wanted(column: Column, winner: int, label: str = "") -> Wanted:
    """The value that the record at `winner` has, asked for under `label` (else the attribute's name)."""
    value = column.values[winner]
    others = tuple(dict.fromkeys(v for v in column.values if v != value))
    options = column.universe if column.attribute.type == "choice" else ()
    return Wanted(label or column.attribute.name, column.attribute.type, value, options, others)


def slug(label: str) -> str:
    """A control's key: its label in lower case, joined by underscores."""
    words = "".join(ch if ch.isascii() and ch.isalnum() else " " for ch in label.lower()).split()
    key = "_".join(words)
    return key if key[:1].isalpha() else f"f_{key}"


def build(rng: Random, items: Sequence[Wanted], setting: Setting, room: int, *, repair: bool) -> list[Control]:
    """One field for each value, within `room` lines in the small settings.

    At least one field's first value is not the right one. What a choice or a box shows at first tells nothing: it is
    right as often as any other.
    """
    fields: list[Control] = []
    for i, item in enumerate(items):
        spare = room - (len(items) - i - 1)
        control = _field(rng, item, setting, spare, repair=repair)
        room -= 1 + len(control.options)
        fields.append(control)
    if all(c.value == field_value(item) for c, item in zip(fields, items, strict=True)):
        fields[0] = _unset(fields[0], items[0])
    return fields


def _field(rng: Random, item: Wanted, setting: Setting, spare: int, *, repair: bool) -> Control:
    kinds = (_SMALL_KINDS if setting.small else _KINDS)[item.type]
    if setting.small and spare < 4:
        kinds = tuple(k for k in kinds if k[0] not in ("select", "radio"))
    kind = rng.choices([k for k, _ in kinds], [w for _, w in kinds])[0]
    key = slug(item.label)
    if kind == "checkbox":
        return Control(key=key, label=item.label, kind=kind, value=rng.choice(("on", "")))
    if kind in ("select", "radio"):
        return _choice(rng, item, kind, key, setting, repair=repair)
    stale = [v for v in item.stale if v != item.value]
    first = rng.choice(stale) if stale and (repair or rng.random() < 0.25) else ""
    return Control(key=key, label=item.label, kind=kind, value=first)


def _choice(
    rng: Random, item: Wanted, kind: Literal["select", "radio"], key: str, setting: Setting, *, repair: bool
) -> Control:
    placeholder = kind == "select" and not setting.small and not repair and rng.random() < 0.4
    most = 3 if setting.small else 4 if placeholder else 5
    others = [v for v in item.options if v != item.value]
    rng.shuffle(others)
    others.sort(key=lambda v: v not in item.stale)  # first those that stand on the page
    options = [item.value, *others[: most - 1]]
    rng.shuffle(options)
    if placeholder:
        first = rng.choice(PLACEHOLDERS)
        options.insert(0, first)
    elif kind == "radio" and not repair and rng.random() < 0.5:
        first = ""
    else:
        first = rng.choice(options)
    return Control(key=key, label=item.label, kind=kind, value=first, options=tuple(options))


def _unset(control: Control, item: Wanted) -> Control:
    """The same field with a first value that is not the right one."""
    if control.kind == "checkbox":
        first = "" if item.value == "yes" else "on"
    elif control.kind == "select":
        first = next(v for v in control.options if v != item.value)
    else:
        first = ""
    return control.model_copy(update={"value": first})


def field_value(item: Wanted) -> str:
    """The value as the form submits it: a flag is `on` or empty."""
    if item.type == "flag":
        return "on" if item.value == "yes" else ""
    return item.value
