"""Conjunctive selection: several conditions at once leave one record, or one that is best of those left."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from advsim.form import Table, Text
from benchmark_forms import words
from benchmark_forms.amounts import draw_date
from benchmark_forms.assemble import Draft, assemble, names, records_block, stated
from benchmark_forms.families import candidates
from benchmark_forms.families.asking import tick
from benchmark_forms.families.candidates import YES_NO, Candidates, Condition, Feature
from benchmark_forms.fields import Attribute, Column, Wanted, draw_column, wanted
from benchmark_forms.setting import Setting


def pick_columns(
    rng: Random, label: str, pool: Sequence[str], attributes: Sequence[Attribute], count: int, winners: Sequence[int]
) -> list[Column]:
    """The records' names, under `label`, and their other attributes."""
    titles = tuple(rng.sample(pool, count))
    first = Column(Attribute(label, "choice", titles), titles, titles)
    return [first, *(draw_column(rng, a, count, winners) for a in attributes)]


def record_lines(found: Candidates, columns: Sequence[Column], caption: str, *, table: bool) -> list[Text | Table]:
    """The records as a table, or as a sentence each."""
    header = [columns[0].attribute.name, *found.columns, *(c.attribute.name for c in columns[1:])]
    rows = [
        [columns[0].values[i], *(v[i] for v in found.columns.values()), *(c.values[i] for c in columns[1:])]
        for i in range(len(columns[0].values))
    ]
    if table:
        return [records_block(caption, [h[0].upper() + h[1:] for h in header], rows)]
    return [
        Text(text=f"{row[0]}: {', '.join(f'{h} {v}' for h, v in zip(header[1:], row[1:], strict=True))}.")
        for row in rows
    ]


def told(rng: Random, condition: Condition) -> str:
    """A condition in words, such as `width at least 40`."""
    name = condition.feature.name
    if condition.direction is None:
        return f"{name} {condition.bound}"
    least = ("at least", "no less than") if condition.direction == "least" else ("at most", "no more than")
    return f"{name} {rng.choice(least)} {condition.bound}"


def all_told(rng: Random, conditions: Sequence[Condition]) -> str:
    """Conditions in words, as a list."""
    shown = [told(rng, c) for c in conditions]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def condition_shape(conditions: Sequence[Condition]) -> str:
    """Which features are bound, and in which direction."""
    return "+".join(sorted(f"{c.feature.name}:{c.direction or 'is'}" for c in conditions))


def draw_features(rng: Random, features: Sequence[Feature], count: int) -> list[Feature]:
    """`count` features, a word among them."""
    first = rng.choice([f for f in features if f.pool])
    chosen = [first, *rng.sample([f for f in features if f is not first], count - 1)]
    rng.shuffle(chosen)
    return chosen


# ------------------------------------------------------------------------------------------------- catalogue

_MODELS = ("Arbor", "Bellis", "Corvo", "Dorada", "Elmo", "Fjord", "Grano", "Hazel", "Isola", "Juno", "Kelp", "Linden")
_SHORT_MODELS = ("oak", "elm", "fir", "ash", "bay", "fig", "yew")
_CATALOGUE = (
    Feature("colour", words.COLOURS),
    Feature("material", ("steel", "glass", "oak", "linen", "cork")),
    Feature("width", low=20, high=180),
    Feature("weight", low=1, high=40),
    Feature("warranty", low=1, high=60),
    Feature("in stock", YES_NO),
)
_ARTICLE = (
    Attribute("Order code", "code", prefix="A"),
    Attribute("List price", "money", low=10, high=400),
    Attribute("Shelf", "choice", ("aisle 1", "aisle 2", "aisle 3", "aisle 4", "aisle 5")),
    Attribute("Ships on", "date"),
    Attribute("Gift box", "flag"),
    Attribute("Care note", "phrase", words.PHRASES),
    Attribute("Pieces left", "int", low=1, high=90),
)
_ARTICLE_SMALL = (
    Attribute("Price", "int", low=1, high=60),
    Attribute("Shelf", "int", low=1, high=30),
    Attribute("Gift", "flag"),
)


def catalogue_choice(rng: Random, setting: Setting) -> Draft:
    """A catalogue: the one article that meets every wish."""
    title = rng.choice(("Catalogue order", "Order an article", "Showroom order"))
    if setting.small:
        return _catalogue_small(rng, setting, title)
    count = setting.records(rng)
    fields = setting.targets(rng)
    features = draw_features(rng, _CATALOGUE, rng.randint(3, 4) if setting.hard else rng.randint(2, 3))
    found = candidates.draw(rng, features, count)
    own = _own_values(rng) if setting.long and rng.random() < 0.6 else []
    asked = fields - 1 - len(own)
    attributes = rng.sample(_ARTICLE, asked + (setting.hard and asked < 5))  # hard ones list a thing nobody asks for
    columns = pick_columns(rng, "Model", _MODELS, attributes, count, [found.best])
    table = rng.random() < 0.6
    items = [*(wanted(c, found.best) for c in columns[: asked + 1]), *own]
    goal = rng.choice(
        (
            "Find the model with {c} and enter {f}.",
            "The customer wants a model with {c}. Enter {f}.",
            "Order the one model that has {c}; fill in {f}.",
        )
    ).format(c=all_told(rng, found.conditions), f=names(rng, [i.label for i in items], setting))
    given = "".join(f" {i.label} is {i.value}." for i in own)
    shape = ("table" if table else "lines", count, len(own), condition_shape(found.conditions))
    blocks = record_lines(found, columns, "Catalogue", table=table)
    return assemble(
        rng, setting, title=title, blocks=blocks, items=items, goal=f"{goal}{given}{tick(items)}", shape=shape
    )


def _own_values(rng: Random) -> list[Wanted]:
    """What the user says about the order, whatever the article."""
    quantity = rng.randint(2, 40)
    day = draw_date(rng).isoformat()
    return rng.sample(
        [
            Wanted("Quantity", "int", str(quantity), stale=("1",)),
            Wanted("Deliver on", "date", day, stale=(draw_date(rng).isoformat(),)),
        ],
        rng.randint(1, 2),
    )


def small_choice(
    rng: Random,
    setting: Setting,
    title: str,
    columns: Sequence[Column],
    facts: Sequence[str],
    best: int,
    request: str,
) -> Draft:
    """Three records, a line each: the name, what it is chosen by, its attributes. `columns` start with the name."""
    items = [wanted(c, best) for c in columns]
    if setting.level == "tiny":
        return stated(rng, setting, title, items)
    blocks = []
    for i, fact in enumerate(facts):
        extras = [f"{c.attribute.name} {c.values[i]}" for c in columns[1:]]
        blocks.append(Text(text=f"{columns[0].values[i]}: {', '.join([fact, *extras])}"))
    naming = len(items) == 3 or rng.random() < 0.7  # else the record has to be found, but is not itself asked for
    if not naming and len(items) > 1:
        items = items[1:]
    goal = f"{request} Set {names(rng, [i.label for i in items], setting)}."
    shape = (len(items), naming)
    return assemble(rng, setting, title=title, blocks=blocks, items=items, goal=goal, shape=shape)


def _catalogue_small(rng: Random, setting: Setting, title: str) -> Draft:
    colour, size = Feature("colour", words.COLOURS), Feature("size", ("big", "small", "flat"))
    found = candidates.draw(rng, (colour, size), 3)
    chosen = rng.sample(_ARTICLE_SMALL, setting.targets(rng) - 1)
    columns = pick_columns(rng, "Model", _SHORT_MODELS, chosen, 3, [found.best])
    facts = [f"{c}, {s}" for c, s in zip(found.columns["colour"], found.columns["size"], strict=True)]
    bounds = {c.feature.name: c.bound for c in found.conditions}
    request = f"Take the {bounds['size']} {bounds['colour']} one."
    return small_choice(rng, setting, title, columns, facts, found.best, request)


# ---------------------------------------------------------------------------------------------------- venues

_VENUES = (
    "Aurora", "Bastion", "Cloister", "Domus", "Estrade", "Foundry", "Granary", "Hangar", "Icehouse", "Kiln", "Lantern",
)  # fmt: skip
_SHORT_VENUES = ("nook", "barn", "hall", "loft", "den", "dome")
_VENUE = (
    Feature("district", ("harbour", "centre", "hillside", "station")),
    Feature("step-free", YES_NO),
    Feature("kitchen", YES_NO),
    Feature("seats", low=20, high=300),
    Feature("floor area", low=40, high=600),
    Feature("closing hour", low=14, high=24),
)
_RANKED = (("day rate", "lowest"), ("walk in minutes", "lowest"), ("stage width", "highest"), ("sockets", "highest"))
_VENUE_FIELDS = (
    Attribute("Caretaker", "choice", words.PEOPLE[4:20]),
    Attribute("Key code", "code", prefix="V"),
    Attribute("Free on", "date"),
    Attribute("Deposit", "money", low=20, high=300),
    Attribute("Car park", "flag"),
    Attribute("Way in", "phrase", words.PHRASES),
    Attribute("Phone", "int", low=200_100, high=899_900),
)
_VENUE_SMALL = (
    Attribute("Key", "int", low=1, high=60),
    Attribute("Fee", "int", low=2, high=60),
    Attribute("Lift", "flag"),
)


def venue_choice(rng: Random, setting: Setting) -> Draft:
    """A venue: house rules on the page shut some out, the user's wishes others, and the best of the rest wins."""
    title = rng.choice(("Event venue", "Venue booking", "Hire a venue"))
    if setting.small:
        return _venue_small(rng, setting, title)
    features = draw_features(rng, _VENUE, rng.randint(3, 4) if setting.hard else 2)
    on_page = rng.randint(1, 2) if setting.hard else rng.randint(0, 1)
    count = min(setting.records(rng), 9 - on_page)
    rank, end = rng.choice(_RANKED)
    numbers = rng.sample(range(5, 95), count)
    found = candidates.draw(rng, features, count, ranked=numbers, lowest=end == "lowest")
    found.columns[rank] = tuple(map(str, numbers))
    asked = setting.targets(rng) - 1
    attributes = rng.sample(_VENUE_FIELDS, asked + setting.hard)  # hard ones list a thing that nobody asks for
    columns = pick_columns(rng, "Venue", _VENUES, attributes, count, [found.best])
    table = rng.random() < 0.6
    items = [wanted(c, found.best) for c in columns[: asked + 1]]
    by_rule, by_wish = found.conditions[:on_page], found.conditions[on_page:]
    rules = [Text(text=rng.choice(("House rule: {}.", "Our events need {}.")).format(told(rng, c))) for c in by_rule]
    listing = record_lines(found, columns, "Venues", table=table)
    blocks = [*rules, *listing] if rng.random() < 0.5 else [*listing, *rules]
    needs = f" with {all_told(rng, by_wish)}" if by_wish else ""
    obey = " and the rules on the page" if by_wish and rules else " by the rules on the page" if rules else ""
    goal = rng.choice(
        (
            "Of the venues{n}{o}, take the one with the {e} {r} and enter {f}.",
            "We look for a venue{n}{o}. Of those that fit, the {e} {r} wins. Enter {f}.",
        )
    ).format(n=needs, o=obey, e=end, r=rank, f=names(rng, [i.label for i in items], setting))
    shape = ("table" if table else "lines", count, on_page, rank, condition_shape(found.conditions))
    return assemble(rng, setting, title=title, blocks=blocks, items=items, goal=f"{goal}{tick(items)}", shape=shape)


def _venue_small(rng: Random, setting: Setting, title: str) -> Draft:
    seats, floor = Feature("seats", low=4, high=60), Feature("floor", ("low", "top", "mid"))
    found = candidates.draw(rng, (seats, floor), 3)
    chosen = rng.sample(_VENUE_SMALL, setting.targets(rng) - 1)
    columns = pick_columns(rng, "Venue", _SHORT_VENUES, chosen, 3, [found.best])
    facts = [f"{n} seats, {f} floor" for n, f in zip(found.columns["seats"], found.columns["floor"], strict=True)]
    by_name = {c.feature.name: c for c in found.conditions}
    least = "at least" if by_name["seats"].direction == "least" else "at most"
    request = f"Take the one on the {by_name['floor'].bound} floor with {least} {by_name['seats'].bound} seats."
    return small_choice(rng, setting, title, columns, facts, found.best, request)
