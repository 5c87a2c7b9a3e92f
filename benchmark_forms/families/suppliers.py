"""Conjunctive selection, third family: suppliers by requirements and price."""

from __future__ import annotations

from decimal import Decimal
from random import Random

from advsim.form import Text
from benchmark_forms import words
from benchmark_forms.amounts import draw_money, show
from benchmark_forms.assemble import Draft, assemble, names
from benchmark_forms.families import candidates
from benchmark_forms.families.asking import asked, case_count, output_count, tick
from benchmark_forms.families.candidates import Candidates, Feature
from benchmark_forms.families.conjunctive import all_told, condition_shape, pick_columns, record_lines, small_choice
from benchmark_forms.fields import Attribute, Column, draw_column
from benchmark_forms.setting import Setting

_WORDS = (
    Feature("region", ("north", "coast", "inland", "island")),
    Feature("certificate", ("class A", "class B", "class C", "none")),
    Feature("packaging", ("crate", "pallet", "carton", "bulk bag")),
)
_NUMBERS = (
    Feature("lead days", low=2, high=60),
    Feature("smallest order", low=5, high=400),
    Feature("rating", low=10, high=100),
)
_FIELDS = (
    Attribute("Account manager", "choice", words.PEOPLE[8:22]),
    Attribute("Offer code", "code", prefix="Q"),
    Attribute("Offer ends", "date"),
    Attribute("Pays by card", "flag"),
    Attribute("Delivery note", "phrase", words.PHRASES),
    Attribute("Credit days", "int", low=5, high=90),
)
_SHORT_SUPPLIERS = ("Fox", "Owl", "Elk", "Bee", "Cod", "Ram")
_FIELDS_SMALL = (Attribute("Code", "int", low=10, high=99), Attribute("Card", "flag"))


def supplier_choice(rng: Random, setting: Setting) -> Draft:
    """A supplier: of those that meet the requirements, the cheapest (with freight, where it is charged)."""
    title = rng.choice(("Purchase request", "Supplier choice", "Buying desk"))
    if setting.small:
        return _supplier_small(rng, setting, title)
    cases = case_count(rng, setting)
    freight = setting.hard
    count = min(setting.records(rng), 8 if freight else 9)
    prices, freights, totals = _prices(rng, count, freight=freight)
    # Each buyer's requirements are about other properties, so that one choice says nothing about the other.
    kinds, figures = rng.sample(_WORDS, len(_WORDS)), rng.sample(_NUMBERS, len(_NUMBERS))
    found: list[Candidates] = []
    for case in range(cases):
        own = [kinds[case], *figures[case : case + 1]]
        if setting.hard and cases == 1:
            own.append(rng.choice((kinds[1], figures[1])))
        found.append(candidates.draw(rng, own, count, ranked=totals))
    winners = [f.best for f in found]
    width = output_count(rng, setting, cases, 6)
    columns = pick_columns(rng, "Supplier", words.COMPANIES, rng.sample(_FIELDS, width - 1), count, winners)
    listed = found[0]._replace(columns={k: v for f in found for k, v in f.columns.items()})
    listed.columns["price"] = tuple(map(show, prices))
    if freight:
        listed.columns["freight"] = tuple(map(show, freights))
    table = rng.random() < 0.6
    blocks = record_lines(listed, columns, "Offers", table=table)
    if freight:
        blocks.append(Text(text="What an offer costs is its price and its freight together."))
    people = rng.sample(words.PEOPLE, cases)
    wishes = [
        f"{person} needs a supplier with {all_told(rng, f.conditions)}."
        for person, f in zip(people, found, strict=True)
    ]
    items = asked(columns, winners, people)
    each = " each time" if cases > 1 else ""
    goal = rng.choice(
        (
            "{w} Of the offers that fit, the cheapest is to be taken{e}. Enter {f}.",
            "{w} Choose the cheapest offer that fits{e}, and fill in {f}.",
        )
    ).format(w=" ".join(wishes), e=each, f=names(rng, [i.label for i in items], setting))
    bound = "/".join(condition_shape(f.conditions) for f in found)
    shape = ("table" if table else "lines", count, cases, freight, bound)
    return assemble(rng, setting, title=title, blocks=blocks, items=items, goal=f"{goal}{tick(items)}", shape=shape)


def _prices(rng: Random, count: int, *, freight: bool) -> tuple[list[Decimal], list[Decimal], list[int]]:
    """Prices, freight charges, and what an offer costs in cents: all different."""
    while True:
        prices = [draw_money(rng, 40, 400) for _ in range(count)]
        freights = [draw_money(rng, 2, 90) if freight else Decimal(0) for _ in range(count)]
        totals = [int((p + f) * 100) for p, f in zip(prices, freights, strict=True)]
        if len(set(totals)) == count:
            return prices, freights, totals


def _supplier_small(rng: Random, setting: Setting, title: str) -> Draft:
    prices = draw_column(rng, Attribute("Price", "int", low=5, high=90), 3)
    region = Feature("region", ("north", "south", "coast"))
    found = candidates.draw(rng, [region], 3, ranked=[int(v) for v in prices.values])
    others: list[Column] = [prices, *(draw_column(rng, a, 3, [found.best]) for a in _FIELDS_SMALL)]
    facts = list(found.columns["region"])
    chosen = rng.sample(others, setting.targets(rng) - 1)
    if prices not in chosen:
        facts = [f"{fact}, Price {price}" for fact, price in zip(facts, prices.values, strict=True)]
    columns = [*pick_columns(rng, "Supplier", _SHORT_SUPPLIERS, (), 3, [found.best]), *chosen]
    request = f"Take the cheapest from the {found.conditions[0].bound}."
    return small_choice(rng, setting, title, columns, facts, found.best, request)
