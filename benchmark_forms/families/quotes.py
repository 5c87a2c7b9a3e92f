"""Derived values, third family: quotes by tiers of quantity."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from random import Random
from typing import NamedTuple

from advsim.form import Table, Text
from benchmark_forms import words
from benchmark_forms.amounts import days_after, draw_date, draw_money, percent, show
from benchmark_forms.assemble import Draft, assemble, names, records_block
from benchmark_forms.families.asking import bands, case_count, decimals, for_person, label_shape, some
from benchmark_forms.families.derived import money, number, tiny_numbers
from benchmark_forms.fields import Wanted
from benchmark_forms.setting import Setting

_TIERS = ("Basic", "Plus", "Bulk", "Prime", "Major", "Core", "Flex", "Grand", "Solo", "Trade")


class Tier(NamedTuple):
    """A range of quantities and its price for one piece."""

    name: str
    low: int
    high: int
    price: Decimal


class Terms(NamedTuple):
    """What is the same for all quotes on a page.

    Attributes:
        graduated: Every piece is priced in its own tier, else all pieces at the tier of the whole quantity.
        setup: Added to every quote.
        rebate: From which amount, and how many per cent; or None.
        issued, valid: Date of the quotes (ISO) and until when they hold.
    """

    graduated: bool
    setup: Decimal
    rebate: tuple[Decimal, int] | None
    issued: str
    valid: str


def quote_tiers(rng: Random, setting: Setting) -> Draft:
    """A quote: the quantity picks the tier, and the tier the price; with set-up, rebate and validity."""
    title = rng.choice(("Quote form", "Price quote", "Offer sheet"))
    if setting.level == "tiny":
        return tiny_numbers(rng, setting, title, ("Price", "Cost", "Total"))
    if setting.small:
        return _quote_small(rng, setting, title)
    cases = case_count(rng, setting)
    extra = rng.choice(("graduated", "rebate")) if setting.hard else ""
    rules = 3 if extra else 2
    count = min(setting.records(rng), 9 - rules)
    tiers = _tiers(rng, count)
    winners = rng.sample(range(count), cases)
    people = rng.sample(words.PEOPLE, cases)
    quantities = [rng.randint(tiers[w].low, tiers[w].high) for w in winners]
    issued, days = draw_date(rng), rng.choice((7, 14, 20, 30, 45))
    amounts = [_amount(tiers, w, q, graduated=extra == "graduated") for w, q in zip(winners, quantities, strict=True)]
    least = Decimal(int(amounts[0])) + rng.choice((-20, -5, 5, 20))
    rate = rng.choice((2, 3, 4, 6, 7))
    terms = Terms(
        extra == "graduated",
        draw_money(rng, 5, 40),
        (least, rate) if extra == "rebate" else None,
        issued.isoformat(),
        days_after(issued, days).isoformat(),
    )
    items: list[Wanted] = []
    for i, person in enumerate(people):
        items += _values(rng, tiers, winners[i], amounts[i], terms, person, cases)
    if cases == 1:
        items.append(Wanted("Valid until", "date", terms.valid, stale=(terms.issued,)))
    items = some(rng, items, setting)

    table = rng.random() < 0.5
    shown = list(tiers)
    if rng.random() < 0.5:
        rng.shuffle(shown)
    blocks: list[Text | Table]
    if table:
        header = ("Tier", "From", "To", "Price of a piece")
        blocks = [records_block("Tiers", header, [(t.name, str(t.low), str(t.high), show(t.price)) for t in shown])]
    else:
        blocks = [Text(text=f"{t.name} tier: {t.low} to {t.high} pieces at {show(t.price)} each.") for t in shown]
    blocks.append(Text(text=f"Every quote bears {show(terms.setup)} for set-up on top of its amount."))
    blocks.append(Text(text=f"Quotes hold for {days} days from their date."))
    if terms.graduated:
        blocks.append(Text(text="Each piece is priced in the tier that its own number falls in, counted from 1."))
    if terms.rebate:
        blocks.append(Text(text=f"An amount of {show(least)} or more is reduced by {rate} % before set-up is added."))
    wants = " and ".join(f"{q} pieces for {p}" for q, p in zip(quantities, people, strict=True))
    start = rng.choice((f"Quote {wants}, dated {issued}.", f"On {issued} a quote is wanted: {wants}."))
    ask = rng.choice(("Enter {}.", "Fill in {}.", "Work out {}.")).format(names(rng, [i.label for i in items], setting))
    note = " The tier is that of the whole quantity." if any(i.label.startswith("Tier") for i in items) else ""
    given = " Tick the rebate's box if one is given." if any(i.type == "flag" for i in items) else ""
    goal = f"{start} {ask}{note}{given}{decimals(items)}"
    shape = ("table" if table else "lines", count, cases, extra, label_shape(items, [f"for {p}" for p in people]))
    return assemble(rng, setting, title=title, blocks=blocks, items=items, goal=goal, shape=shape)


def _tiers(rng: Random, count: int) -> list[Tier]:
    prices = sorted((draw_money(rng, 1, 12) for _ in range(count)), reverse=True)
    titles = rng.sample(_TIERS, count)
    return [
        Tier(title, low, high, price)
        for title, (low, high), price in zip(titles, bands(rng, count, 40), prices, strict=True)
    ]


def _amount(tiers: Sequence[Tier], reached: int, quantity: int, *, graduated: bool) -> Decimal:
    if not graduated:
        return quantity * tiers[reached].price
    full = sum(((t.high - t.low + 1) * t.price for t in tiers[:reached]), Decimal(0))
    return full + (quantity - tiers[reached].low + 1) * tiers[reached].price


def _values(
    rng: Random, tiers: Sequence[Tier], reached: int, amount: Decimal, terms: Terms, person: str, cases: int
) -> list[Wanted]:
    """Everything that could be asked about one person's quote."""
    tier = tiers[reached]
    reduced = amount
    given = terms.rebate is not None and amount >= terms.rebate[0]
    if terms.rebate is not None and given:
        reduced = amount - percent(amount, terms.rebate[1])
    titles = tuple(t.name for t in tiers)
    found = [Wanted("Tier", "choice", tier.name, titles, tuple(x for x in titles if x != tier.name))]
    if not terms.graduated:
        found.append(money(rng, "Price of a piece", tier.price))
    found.append(money(rng, "Amount", amount))
    if terms.rebate is not None:
        found += [Wanted("Rebate given", "flag", "yes" if given else "no"), money(rng, "Reduced amount", reduced)]
    found.append(money(rng, "Amount with set-up", reduced + terms.setup))
    return [item._replace(label=for_person(item.label, person, cases)) for item in found]


def _quote_small(rng: Random, setting: Setting, title: str) -> Draft:
    tiers = bands(rng, 3, 6)
    prices = rng.sample(range(1, 6), 3)
    winner = rng.randrange(3)
    pieces = rng.randint(*tiers[winner])
    fee = rng.randint(1, 9)
    cost = pieces * prices[winner]
    blocks: list[Text | Table] = [
        Text(text=f"{low} to {high}: {p} each") for (low, high), p in zip(tiers, prices, strict=True)
    ]
    items = [number(rng, "Price", prices[winner]), number(rng, "Cost", cost)]
    with_fee = rng.random() < 0.5
    if with_fee:
        blocks.append(Text(text=f"box: {fee}"))
        items.append(number(rng, "With box", cost + fee))
    items = some(rng, items, setting)
    goal = f"A quote for {pieces} pieces. Set {names(rng, [i.label for i in items], setting)}."
    shape = (with_fee, label_shape(items, ()))
    return assemble(rng, setting, title=title, blocks=blocks, items=items, goal=goal, shape=shape)
