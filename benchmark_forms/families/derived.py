"""Derived values: what to enter has to be worked out from prices, quantities and rates."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from random import Random

from advsim.form import Table, Text
from benchmark_forms import words
from benchmark_forms.amounts import days_after, draw_date, draw_money, percent, show
from benchmark_forms.assemble import Draft, assemble, names, records_block, stated
from benchmark_forms.families.asking import decimals, label_shape, some, tick
from benchmark_forms.fields import Wanted
from benchmark_forms.setting import Setting


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
    discount = (rng.randint(3, 7), rng.choice((3, 5, 8, 12, 15))) if setting.hard else None
    freight = setting.long or (setting.hard and rng.random() < 0.5)
    fee, free_from = draw_money(rng, 4, 15), Decimal(0)
    count = min(count, 9 - bool(discount) - freight)
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
        # On either side of what the goods cost, as often free as not.
        margin = rng.randint(5, 10 + int(goods_cost) // 4)
        free_from = Decimal(max(1, int(goods_cost) + rng.choice((-margin, margin))))
        carriage = Decimal(0) if goods_cost >= free_from else fee
        items += [
            money(rng, "Carriage", carriage),
            money(rng, "Amount due", goods_cost + carriage),
            Wanted("Carriage free", "flag", "yes" if not carriage else "no"),
        ]
    items = some(rng, items, setting)

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
            Text(text=f"Carriage is {show(fee)}, or 0.00 if the goods cost {show(free_from)} or more in all.")
        )
    ask = rng.choice(("Order at least {}.", "We need no fewer than {}.", "Get at least {}."))
    rule = rng.choice(("Only whole packs are sold, so take as few as will do.", "Take the fewest whole packs."))
    listed = names(rng, [i.label for i in items], setting)
    goal = f"{ask.format(' and '.join(needs))} {rule} Enter {listed}.{decimals(items)}{tick(items)}"
    shape = (
        "table" if table else "lines",
        count,
        len(bought),
        bool(discount),
        freight,
        label_shape(items, goods),
    )
    return assemble(rng, setting, title=title, blocks=blocks, items=items, goal=goal, shape=shape)


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
    items = some(rng, items, setting)
    listed = names(rng, [i.label for i in items], setting)
    goal = f"Buy {need} {goods[winner]} or just over, in full packs. Set {listed}."
    shape = (label_shape(items, ()),)
    return assemble(rng, setting, title=title, blocks=blocks, items=items, goal=goal, shape=shape)


# --------------------------------------------------------------------------------------------------- invoice


def invoice_total(rng: Random, setting: Setting) -> Draft:
    """An invoice: subtotal, discount, tax, total and due date from its lines and terms."""
    title = rng.choice(("Invoice entry", "Invoice", "Accounts desk"))
    if setting.level == "tiny":
        return tiny_numbers(rng, setting, title, ("Total", "Tax", "Net"))
    if setting.small:
        return _invoice_small(rng, setting, title)
    special = rng.choice(("cancelled", "credit")) if setting.hard else ""
    threshold = setting.hard and rng.random() < 0.5
    count = min(setting.records(rng), 9 - 3 - bool(special))
    goods = rng.sample(words.SUPPLIES, count)
    quantities = [rng.randint(1, 24) for _ in goods]
    prices = [draw_money(rng, 1, 25) for _ in goods]
    amounts = [q * p for q, p in zip(quantities, prices, strict=True)]
    marked = set(rng.sample(range(count), rng.randint(1, 2))) if special else set()
    counted = sum((a for i, a in enumerate(amounts) if i not in marked), Decimal(0))
    taken = sum((amounts[i] for i in marked), Decimal(0))
    if special == "credit" and taken >= counted:
        marked = {min(range(count), key=amounts.__getitem__)}  # a credit larger than the rest would be no invoice
        taken = amounts[min(marked)]
        counted = sum(amounts, Decimal(0)) - taken
    subtotal = counted - taken if special == "credit" else counted

    rate, tax_rate = rng.choice((3, 4, 5, 8, 10, 15)), rng.choice((5, 7, 9, 19, 21, 23))
    least = Decimal(int(subtotal)) + rng.choice((-30, -10, 10, 30))
    discount = percent(subtotal, rate) if not threshold or subtotal >= least else Decimal(0)
    net = subtotal - discount
    tax = percent(net, tax_rate)
    issued, days = draw_date(rng), rng.choice((10, 14, 21, 30, 45, 60))
    due = days_after(issued, days)
    limit = Decimal(int(net + tax)) + rng.choice((-40, -15, 15, 40))
    stale_due = (days_after(due, rng.randint(1, 20)).isoformat(), issued.isoformat())
    items = [
        money(rng, "Subtotal", subtotal),
        money(rng, "Discount", discount),
        money(rng, "Net amount", net),
        money(rng, "Tax", tax),
        money(rng, "Invoice total", net + tax),
        Wanted("Due date", "date", due.isoformat(), stale=stale_due),
        Wanted("Needs approval", "flag", "yes" if net + tax > limit else "no"),
    ]
    items = some(rng, items, setting)

    table = rng.random() < 0.5
    marks = [special if i in marked else "" for i in range(count)]
    blocks: list[Text | Table]
    if table:
        header = ("Goods", "Quantity", "Unit price", *(["Mark"] if special else []))
        rows = [
            (g, str(q), show(p), *([m or "none"] if special else []))
            for g, q, p, m in zip(goods, quantities, prices, marks, strict=True)
        ]
        blocks = [records_block("Invoice lines", header, rows)]
    else:
        blocks = [
            Text(text=f"{q} {g} at {show(p)} each{f' ({m})' if m else ''}.")
            for g, q, p, m in zip(goods, quantities, prices, marks, strict=True)
        ]
    condition = f", if the subtotal is {show(least)} or more; else none is given" if threshold else ""
    blocks += [
        Text(text=f"The discount is {rate} % of the subtotal{condition}."),
        Text(text=f"Tax is {tax_rate} % of the net amount, which is the subtotal less the discount."),
        Text(text=f"Payment is due {days} days after the invoice date."),
    ]
    if special == "cancelled":
        blocks.append(Text(text="Lines marked cancelled do not count."))
    elif special == "credit":
        blocks.append(Text(text="Lines marked credit are taken off the subtotal."))
    listed = names(rng, [i.label for i in items], setting)
    start = rng.choice(("An invoice dated {} has to be entered.", "Enter the invoice of {}.")).format(issued)
    approval = ""
    if any(i.type == "flag" for i in items):
        approval = f" It needs approval if the total is above {show(limit)}; a ticked box means yes."
    ask = rng.choice(("Work out {}.", "Fill in {}.", "Find and enter {}.")).format(listed)
    goal = f"{start} {ask}{approval}{decimals(items)}"
    shape = ("table" if table else "lines", count, special, threshold, label_shape(items, ()))
    return assemble(rng, setting, title=title, blocks=blocks, items=items, goal=goal, shape=shape)


def _invoice_small(rng: Random, setting: Setting, title: str) -> Draft:
    count = rng.randint(2, 3)
    goods = rng.sample(words.SHORT_SUPPLIES, count)
    prices = rng.sample(range(3, 29), count)
    extra = rng.choice(("Post", "Rebate"))
    change = rng.randint(1, 9) if extra == "Post" else rng.randint(1, min(9, sum(prices) - 1))
    blocks = [Text(text=f"{g}: {p}") for g, p in zip(goods, prices, strict=True)]
    blocks.append(Text(text=f"{extra}: {change}"))
    total = sum(prices)
    sign = 1 if extra == "Post" else -1
    items = [number(rng, "Goods", total), number(rng, extra, change), number(rng, "To pay", total + sign * change)]
    items = some(rng, items, setting)
    rule = (
        "Goods is the sum; To pay adds the post."
        if extra == "Post"
        else "Goods is the sum; To pay takes off the rebate."
    )
    goal = f"Set {names(rng, [i.label for i in items], setting)}. {rule}"
    shape = (count, extra, label_shape(items, ()))
    return assemble(rng, setting, title=title, blocks=blocks, items=items, goal=goal, shape=shape)
