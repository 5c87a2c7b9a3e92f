"""Derived values: what to enter has to be worked out from prices, quantities and rates."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from random import Random

from advsim.form import Table, Text
from benchmark_forms import words
from benchmark_forms.amounts import days_after, draw_date, draw_money, percent, round_money, show
from benchmark_forms.assemble import Draft, assemble, names, records_block, stated
from benchmark_forms.families.conditional import bands, tick
from benchmark_forms.fields import Attribute, Wanted, draw_column, wanted
from benchmark_forms.setting import Setting


def decimals(items: Sequence[Wanted]) -> str:
    """How to write amounts, where there are any."""
    money_asked = any(i.type == "money" for i in items)
    return " Amounts have two decimals; half a cent is rounded up." if money_asked else ""


def near(rng: Random, amount: Decimal) -> tuple[str, ...]:
    """Amounts that a field might hold at first, none of them `amount`."""
    return tuple(show(amount + Decimal(rng.randint(1, 900)) / 100) for _ in range(2))


def money(rng: Random, label: str, amount: Decimal) -> Wanted:
    """An amount to enter."""
    return Wanted(label, "money", show(amount), stale=near(rng, amount))


def number(rng: Random, label: str, count: int) -> Wanted:
    """A whole number to enter."""
    return Wanted(label, "int", str(count), stale=(str(count + rng.randint(1, 9)),))


def tiny_numbers(rng: Random, setting: Setting, title: str, labels: Sequence[str]) -> Draft:
    """The `tiny` task of this stratum: numbers that only have to be copied."""
    items = [number(rng, x, rng.randint(1, 99)) for x in rng.sample(labels, setting.targets(rng))]
    return stated(rng, setting, title, items)


# ----------------------------------------------------------------------------------------------- whole packs


def whole_packs(rng: Random, setting: Setting) -> Draft:
    """Goods that come in packs: how many packs, what they cost, what is left over."""
    title = rng.choice(("Supply order", "Stock order", "Order sheet"))
    if setting.level == "tiny":
        return tiny_numbers(rng, setting, title, ("Packs", "Cost", "Spare"))
    if setting.small:
        return _packs_small(rng, setting, title)
    count = setting.records(rng)
    discount, freight = _pack_extras(rng, setting)
    count = min(count, 9 - bool(discount) - bool(freight))
    goods = rng.sample(words.SUPPLIES, count)
    sizes = [rng.randint(4, 40) for _ in goods]
    prices = [draw_money(rng, 2, 30) for _ in goods]
    bought = rng.sample(range(count), 2 if setting.long else rng.randint(1, 2))
    limit, rate = discount or (0, 0)

    items: list[Wanted] = []
    needs = []
    goods_cost = Decimal(0)
    for row in bought:
        need = rng.randint(sizes[row] + 1, sizes[row] * 9)
        packs = -(-need // sizes[row])
        cost = packs * prices[row]
        if discount and packs >= limit:
            cost -= percent(cost, rate)
        goods_cost += cost
        needs.append(f"{need} {goods[row]}")
        items += [
            number(rng, f"Packs of {goods[row]}", packs),
            money(rng, f"Cost of {goods[row]}", cost),
            number(rng, f"Left over {goods[row]}", packs * sizes[row] - need),
        ]
    if len(bought) > 1:
        items.append(money(rng, "Goods total", goods_cost))
    if freight:
        free_from, fee = freight
        carriage = Decimal(0) if goods_cost >= free_from else fee
        items += [
            money(rng, "Carriage", carriage),
            money(rng, "Amount due", goods_cost + carriage),
            Wanted("Carriage free", "flag", "yes" if not carriage else "no"),
        ]
    items = _some(rng, items, setting)

    table = rng.random() < 0.5
    blocks: list[Text | Table]
    if table:
        rows = [(g, str(s), show(p)) for g, s, p in zip(goods, sizes, prices, strict=True)]
        blocks = [records_block("Price list", ("Goods", "Pieces in a pack", "Price of a pack"), rows)]
    else:
        blocks = [
            Text(text=f"{g.capitalize()}: packs of {s} at {show(p)} a pack.")
            for g, s, p in zip(goods, sizes, prices, strict=True)
        ]
    if discount:
        blocks.append(Text(text=f"From {limit} packs of the same goods, their cost is reduced by {rate} %."))
    if freight:
        blocks.append(
            Text(text=f"Carriage is {show(freight[1])}, or 0.00 if the goods cost {show(freight[0])} or more in all.")
        )
    ask = rng.choice(("Order at least {}.", "We need no fewer than {}.", "Get at least {}."))
    rule = rng.choice(("Only whole packs are sold, so take as few as will do.", "Take the fewest whole packs."))
    listed = names(rng, [i.label for i in items], setting)
    goal = f"{ask.format(' and '.join(needs))} {rule} Enter {listed}.{decimals(items)}{tick(items)}"
    shape = ("table" if table else "lines", count, len(bought), bool(discount), bool(freight), _labels(items, goods))
    return assemble(rng, setting, title=title, blocks=blocks, items=items, goal=goal, shape=shape)


def _pack_extras(rng: Random, setting: Setting) -> tuple[tuple[int, int] | None, tuple[Decimal, Decimal] | None]:
    """A discount (from packs, per cent) and carriage (free from, else fee), where the setting has them."""
    discount = (rng.randint(3, 7), rng.choice((3, 5, 8, 12, 15))) if setting.hard else None
    if setting.long or (setting.hard and rng.random() < 0.5):
        return discount, (Decimal(rng.randint(8, 30) * 10), draw_money(rng, 4, 15))
    return discount, None


def _some(rng: Random, items: Sequence[Wanted], setting: Setting) -> list[Wanted]:
    """As many of the possible values as the setting asks for, in their order."""
    count = min(len(items), setting.targets(rng))
    chosen = sorted(rng.sample(range(len(items)), count))
    return [items[i] for i in chosen]


def _labels(items: Sequence[Wanted], named: Sequence[str]) -> str:
    """The labels without the records' own names: which values the task asks for."""
    text = "+".join(i.label for i in items)
    for name in named:
        text = text.replace(f" {name}", "")
    return text


def _packs_small(rng: Random, setting: Setting, title: str) -> Draft:
    goods = rng.sample(words.SHORT_SUPPLIES, 3)
    sizes = rng.sample(range(2, 11), 3)
    winner = rng.randrange(3)
    packs = rng.randint(2, 9)
    need = sizes[winner] * packs - rng.randint(0, sizes[winner] - 1)
    blocks = [Text(text=f"{g}: {s} in a pack") for g, s in zip(goods, sizes, strict=True)]
    items = [
        number(rng, "Packs", packs),
        number(rng, "Spare", sizes[winner] * packs - need),
        number(rng, "Pack size", sizes[winner]),
    ]
    items = _some(rng, items, setting)
    listed = names(rng, [i.label for i in items], setting)
    goal = f"Buy {need} {goods[winner]} or just over, in full packs. Set {listed}."
    shape = (_labels(items, ()),)
    return assemble(rng, setting, title=title, blocks=blocks, items=items, goal=goal, shape=shape)
