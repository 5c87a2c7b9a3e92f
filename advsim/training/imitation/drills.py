"""Drills: pages that ask for several values, all found by one rule.

Whole `small` tasks ask for one to three values that have to be found, among many tokens that are easy; which row is
meant stays a guess for long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Final, Literal, NamedTuple

from advsim.agents import curriculum
from advsim.form import Control, FormSpec, Text
from advsim.task import Expectation, Task
from advsim.training.imitation.small import KEPT, LABELS, MORE_LABELS, TITLES, field_of, plain_value
from benchmark_forms import words
from benchmark_forms.fields import slug
from benchmark_forms.registry import families
from benchmark_forms.setting import Setting

_NAMES: Final = tuple(dict.fromkeys((
    *words.SHORT_PEOPLE, *words.SHORT_PLACES, *words.COLOURS, *words.SHORT_GOODS, *words.SHORT_SUPPLIES,
    "faulty", "opened", "worn", "sealed", "scratched", "new", "old", "late", "spare", "open", "full", "cold", "first",
    "elm", "oak", "bay", "fir", "yew", "fig", "loft", "hall", "den", "dome", "barn", "nook", "Owl", "Ram", "Bee", "Cod",
    "Elk", "desk", "coat", "fan", "hat", "lift", "pump", "gate", "shop", "bike", "van", "rail", "ship",
)))  # fmt: skip
_TRAITS: Final = (
    ("small", "big", "flat"), ("north", "south", "coast"), ("low", "top", "mid"), ("new", "used", "old"),
    ("red", "blue", "grey", "black", "white", "green"), ("light", "heavy"), ("wood", "steel", "glass"),
)  # fmt: skip
_ASKS: Final = (
    "The coat is {}.", "The box goes to {}.", "Take {}.", "Who has the {}?", "The {} fails.", "It is about {}.",
    "Look up {}.",
)  # fmt: skip


class _Drill(NamedTuple):
    """What a drill's rule makes of its table.

    Attributes:
        fact: The goal's beginning, which says what to go by; may be empty.
        lines: The page's lines.
        wanted: The right value of each label.
        others: Values of the page that are wrong, for first values and options.
    """

    fact: str
    lines: list[str]
    wanted: dict[str, str]
    others: list[str]


class _Table(NamedTuple):
    """Labels, the rows' values, and which row decides."""

    labels: list[str]
    rows: list[list[str]]
    at: int

    def drill(self, fact: str, lines: Sequence[str]) -> _Drill:
        """The drill that asks for the deciding row."""
        wanted = dict(zip(self.labels, self.rows[self.at], strict=True))
        return _Drill(fact, list(lines), wanted, [v for row in self.rows for v in row])

    def told(self, conditions: Sequence[str], mark: str = ": ") -> list[str]:
        """The rows as lines, each with its condition first."""
        return [f"{c}{mark}{_list(self.labels, row)}" for c, row in zip(conditions, self.rows, strict=True)]


def _list(labels: Sequence[str], values: Sequence[str]) -> str:
    return ", ".join(f"{x} {v}" for x, v in zip(labels, values, strict=True))


def _pool(rng: Random) -> Sequence[str]:
    if rng.random() < 0.6:
        return [str(n) for n in range(1, 100 if rng.random() < 0.8 else 1000)]
    return rng.choice((words.SHORT_PEOPLE, words.SHORT_PLACES, words.COLOURS, _NAMES))


def _table(rng: Random, rows: int, count: int) -> _Table:
    columns = [rng.sample(_pool(rng), rows) for _ in range(count)]
    values = [list(row) for row in zip(*columns, strict=True)]
    # `_cheapest` and `_named` have a meaning for these.
    labels = [x for x in (*LABELS, *MORE_LABELS) if x not in ("Price", "Model", "Supplier")]
    return _Table(rng.sample(labels, count), values, rng.randrange(rows))


def _spans(cuts: Sequence[int], top: int) -> list[str]:
    """The ranges of whole numbers from 1 to `top` that end at each of the cuts and at the top."""
    return [f"{a + 1} to {b}" if a + 1 < b else str(b) for a, b in zip((0, *cuts), (*cuts, top), strict=True)]


def _one(rng: Random, table: _Table) -> _Drill:
    said = _list(table.labels, table.rows[table.at])
    if rng.random() < 0.3:
        return table.drill(f"Values: {said}.", ())
    return table.drill("", [f"{rng.choice(('Values', 'Note', 'Request', 'Today'))}: {said}"])


def _each(rng: Random, table: _Table) -> _Drill:
    count = len(table.labels)
    keys = rng.sample(_NAMES, count + rng.randint(0, 1))
    found = dict(zip(keys, rng.sample(_pool(rng), len(keys)), strict=True))
    said = ", ".join(f"{x} by {k}" for x, k in zip(table.labels, keys, strict=False))
    wanted = {x: found[k] for x, k in zip(table.labels, keys, strict=False)}
    return _Drill(f"Values: {said}.", [f"{k}: {found[k]}" for k in sorted(found)], wanted, list(found.values()))


def _key(rng: Random, table: _Table, joined: bool = False) -> _Drill:
    rows = len(table.rows)
    kind = rng.choices(("name", "letter", "day"), (50, 35, 15))[0]
    if kind == "name":
        keys = rng.sample(_NAMES, rows)
    elif kind == "letter":
        word = rng.choice(("zone", "crew", "row", "type"))
        keys = [f"{word} {x}" for x in rng.sample("ABCDE", rows)]
    else:
        keys = [f"day {n}" for n in rng.sample(range(1, 60), rows)]
    asked, before = keys[table.at], []
    if joined:
        asked, other = rng.sample([n for n in _NAMES if n not in keys], 2)
        before = [f"{asked}: {keys[table.at]}", f"{other}: {rng.choice([k for k in keys if k != keys[table.at]])}"]
        rng.shuffle(before)
    return table.drill(rng.choice(_ASKS).format(asked), [*before, *table.told(keys)])


def _join(rng: Random, table: _Table) -> _Drill:
    return _key(rng, table, joined=True)


def _span(rng: Random, table: _Table) -> _Drill:
    top = rng.randint(12, 60)
    cuts = sorted(rng.sample(range(1, top), len(table.rows) - 1))
    number = rng.randint((0, *cuts)[table.at] + 1, (*cuts, top)[table.at])
    before, after = rng.choice((("", ""), ("", " kg"), ("", " pieces"), ("", " days"), ("no ", "")))
    lines = table.told([f"{before}{span}{after}" for span in _spans(cuts, top)])
    if rng.random() < 0.3:
        rng.shuffle(lines)
    fact = rng.choice(("The box has {}.", "It is about {}.", "Look up {}.", "A case of {}."))
    return table.drill(fact.format(f"{before}{number}{after}"), lines)


def _log(rng: Random, table: _Table, kind: Literal["extreme", "latest", "dropped"]) -> _Drill:
    """Numbered entries, each for one field; of a field's entries that count, the highest or lowest decides."""
    labels = table.labels[:3]
    shares = [1] * len(labels)
    for _ in range(rng.randint(1, 3)):
        shares[rng.randrange(len(labels))] += 1
    total = sum(shares)
    numbers = list(range(1, total + 1)) if kind == "dropped" else rng.sample(range(1, 60), total)
    rng.shuffle(numbers)
    own = [sorted(numbers.pop() for _ in range(share)) for share in shares]
    said = {
        n: (x, v)
        for x, ns in zip(labels, own, strict=True)
        for n, v in zip(ns, rng.sample(_pool(rng), len(ns)), strict=True)
    }
    rights, word = [len(ns) - 1 for ns in own], rng.choice(("rev", "day", "entry"))
    lines = {n: f"{'' if kind == 'dropped' else f'{word} '}{n}: {x} {v}" for n, (x, v) in said.items()}
    if kind == "extreme":
        most = rng.random() < 0.5
        rights = rights if most else [0] * len(own)
        fact = f"Go to the {'highest' if most else 'lowest'} {word}."
    elif kind == "latest":
        # No field's first entry may be after today.
        today = rng.randint(max(ns[0] for ns in own), 60)
        rights = [sum(n <= today for n in ns) - 1 for ns in own]
        fact = f"Today is {word} {today}. Take the newest value up to today."
    else:
        rights = [rng.randrange(len(ns)) for ns in own]
        dropped = [n for ns, right in zip(own, rights, strict=True) for i, n in enumerate(ns) if i > right]
        dropped += [n for ns, right in zip(own, rights, strict=True) for n in ns[:right] if rng.random() < 0.3]
        rng.shuffle(dropped)
        if dropped:
            lines[total + 1] = f"{total + 1}: drop {' and '.join(map(str, dropped))}"
        fact = "Take the last entry that is not dropped."
    told = [lines[n] for n in sorted(lines, reverse=rng.random() < 0.5)]
    if kind != "dropped" or rng.random() < 0.4:
        rng.shuffle(told)
    wanted = {x: said[ns[right]][1] for x, ns, right in zip(labels, own, rights, strict=True)}
    return _Drill(fact, told, wanted, [v for _, v in said.values()])


def _extreme(rng: Random, table: _Table) -> _Drill:
    return _log(rng, table, "extreme")


def _latest(rng: Random, table: _Table) -> _Drill:
    return _log(rng, table, "latest")


def _dropped(rng: Random, table: _Table) -> _Drill:
    return _log(rng, table, "dropped")


def _named(rng: Random, made: _Drill, names: Sequence[str], at: int) -> _Drill:
    """Half of the time the row's name is asked for as well."""
    if rng.random() < 0.5:
        return made
    label = rng.choice(("Which", "Model", "Supplier"))
    return made._replace(wanted={label: names[at], **made.wanted}, others=[*made.others, *names])


def _traits(rng: Random, table: _Table) -> _Drill:
    first, second = rng.sample(_TRAITS, 2)
    a, b = rng.choice(first), rng.choice(second)
    wrong = ((a, rng.choice([x for x in second if x != b])), (rng.choice([x for x in first if x != a]), b))
    told = [(a, b) if i == table.at else rng.choice(wrong) for i in range(len(table.rows))]
    names = rng.sample(_NAMES, len(told))
    lines = table.told([f"{name}: {x}, {y}" for name, (x, y) in zip(names, told, strict=True)], ", ")
    return _named(rng, table.drill(f"Take the {b} {a} one.", lines), names, table.at)


def _cheapest(rng: Random, table: _Table) -> _Drill:
    places = rng.sample(rng.choice((("north", "south", "coast"), words.SHORT_PLACES)), 2)
    prices = rng.sample(range(1, 99), len(table.rows))
    region = [places[0] if rng.random() < 0.6 else places[1] for _ in prices]
    region[table.at] = places[0]
    at = min((i for i, x in enumerate(region) if x == places[0]), key=prices.__getitem__)
    table = table._replace(at=at)
    names = rng.sample(_NAMES, len(prices))
    early = rng.random() < 0.7
    lines = [
        f"{name}: {place}, {f'Price {price}, {rest}' if early else f'{rest}, Price {price}'}"
        for name, place, price, rest in zip(
            names, region, prices, [_list(table.labels, row) for row in table.rows], strict=True
        )
    ]
    return _named(rng, table.drill(f"Take the cheapest from the {places[0]}.", lines), names, at)


def _sums(rng: Random, table: _Table) -> _Drill:
    said, wanted = [], {}
    for label in table.labels:
        sign = rng.choice(("plus", "minus", "times"))
        x, y = (rng.randint(2, 16), rng.randint(1, 9)) if sign == "times" else (rng.randint(25, 60), rng.randint(1, 25))
        said.append(f"{label} {x} {sign} {y}")
        wanted[label] = str({"plus": x + y, "minus": x - y, "times": x * y}[sign])
    others = [v for row in table.rows for v in row]
    if rng.random() < 0.5:
        return _Drill("", [f"Sums: {', '.join(said)}"], wanted, others)
    return _Drill(f"Sums: {', '.join(said)}.", [], wanted, others)


class _Kind(NamedTuple):
    rule: Callable[[Random, _Table], _Drill]
    weight: int


DRILLS: Final[Mapping[str, _Kind]] = {
    "one": _Kind(_one, 6),
    "each": _Kind(_each, 8),
    "key": _Kind(_key, 16),
    "join": _Kind(_join, 8),
    "span": _Kind(_span, 12),
    "extreme": _Kind(_extreme, 10),
    "latest": _Kind(_latest, 10),
    "dropped": _Kind(_dropped, 10),
    "traits": _Kind(_traits, 12),
    "cheapest": _Kind(_cheapest, 12),
    "sums": _Kind(_sums, 4),
}
"""The drills' rules and how often each is drawn.

`one`: no choice of row; `each`: a row of its own for each value; `key`: the row that the goal names; `join`: the row
that another row names; `span`: the row whose range holds the goal's number; `extreme`, `latest`, `dropped`: the
highest, lowest, newest or last valid one of a field's entries; `traits`: by two properties; `cheapest`: by one
property and the lowest price; `sums`: plain arithmetic.
"""


def drill_task(rng: Random, kind: str = "", plain: bool = False) -> Task:
    """One to five values that all have to be found by one rule, on a page with little else.

    Args:
        rng: Decides everything.
        kind: The rule, of `DRILLS`; drawn if empty.
        plain: Three rows and two values at most, protected fields always.
    """
    kind = kind or rng.choices(list(DRILLS), [k.weight for k in DRILLS.values()])[0]
    most = (1, 1, 2) if plain else (2, 3, 4, 5) if kind in ("one", "each", "sums") else (1, 1, 2, 2, 3, 4)
    made = DRILLS[kind].rule(rng, _table(rng, rng.choice((2, 3) if plain else (2, 2, 3, 3, 3, 4)), rng.choice(most)))
    listed = list(made.wanted)
    goal = f"{rng.choice(('Set', 'Enter'))} {', '.join(listed[:-1])}{' and ' if listed[1:] else ''}{listed[-1]}."
    if rng.random() < 0.5:
        rng.shuffle(listed)
    controls = []
    for label in listed:
        wrong = [v for v in dict.fromkeys(made.others) if v != made.wanted[label]]
        others = [*rng.sample(wrong, min(2, len(wrong))), "none"]
        controls.append(field_of(rng, label, made.wanted[label], others[:2], (0.8, 0.15, 0.05)))
    kept: list[Control] = []
    never: list[Control] = []
    final = rng.choice((*words.SHORT_FINAL, *words.SHORT_COMMIT))
    goal = f"{made.fact} {goal} Press {final}.".strip()
    if plain or rng.random() < 0.4:
        kept = [Control(key=slug(x), label=x, kind="text", value=plain_value(rng)) for x in rng.sample(KEPT, 2)]
        never = [Control(key=slug(x), label=x, kind="button") for x in rng.sample(words.SHORT_FORBIDDEN, 2)]
        goal += f" {rng.choice(('Keep', 'Leave'))} {kept[0].label} and {kept[1].label}."
    for control in kept:
        controls.insert(rng.randint(0, len(controls)), control)
    buttons = [*never, Control(key=slug(final), label=final, kind="submit")]
    rng.shuffle(buttons)
    form = FormSpec(
        title=rng.choice(TITLES[rng.choice(curriculum.TOPICS)]),
        blocks=tuple(Text(text=x) for x in made.lines),
        controls=(*controls, *buttons),
    )
    expectation = Expectation(
        values={slug(x): made.wanted[x] for x in listed},
        final=slug(final),
        protected={c.key: c.value for c in kept},
        forbidden=tuple(c.key for c in never),
    )
    return Task(id="drill", goal=goal, form=form, expectation=expectation, family="drill")


class _Wide(Setting):
    """The small setting with more values to enter on a page, as far as the family has them."""

    most = 5

    def targets(self, rng: Random) -> int:
        """How many values to enter."""
        return rng.randint(2, self.most)

    @property
    def nodes(self) -> int:
        """Most lines that the first page may have."""
        return 24


def wide_task(rng: Random, family: str) -> Task:
    """A task of the family at its `small` setting, but with two to five values to enter where it has them."""
    info = families()[family]
    while True:
        try:
            made = info.draft(rng, _Wide("small", "small", False, False))
        except ValueError:  # fewer values than were asked for
            continue
        return Task(
            id="wide", goal=made.goal, form=made.form, expectation=made.expectation, family=family, stratum=info.stratum
        )
