"""Solvers of the derived stratum. Amounts are whole cents here, so that rounding is worked out another way."""

from __future__ import annotations

import re
from datetime import date, timedelta

from formsolver.seen import Found, Seen, decide, only


def cents(text: str) -> int:
    whole, _, rest = text.partition(".")
    return int(whole) * 100 + int((rest + "00")[:2])


def shown(amount: int) -> str:
    return f"{amount // 100}.{amount % 100:02d}"


def share(amount: int, rate: int) -> int:
    """`rate` per cent, half a cent upwards."""
    return (amount * rate + 50) // 100


def _pick(seen: Seen, known: dict[str, str]) -> dict[str, str]:
    return {label: seen.answer(label, known[label]) for label in seen.fields if label in known}


def whole_packs(seen: Seen, goal: str) -> Found:
    if m := re.match(r"Buy (\d+) (\w+) or just over", goal):
        rows = [{"goods": n, "size": s} for n, s in (re.findall(r"^(\w+): (\d+) in a pack$", t)[0] for t in seen.texts)]
        at = only([i for i, r in enumerate(rows) if r["goods"] == m[2]])
        size, need = int(rows[at]["size"]), int(m[1])
        packs = next(p for p in range(1, 200) if p * size >= need)
        known = {"Packs": str(packs), "Spare": str(packs * size - need), "Pack size": str(size)}
        return Found(_pick(seen, known), [decide(rows, at)])
    rows = seen.tables.get("Price list", [])
    limit = rate = free = fee = None
    for text in seen.texts:
        if m := re.match(r"(\w+): packs of (\d+) at ([\d.]+) a pack\.$", text):
            rows.append({"goods": m[1].lower(), "pieces in a pack": m[2], "price of a pack": m[3]})
        elif m := re.match(r"From (\d+) packs of the same goods, their cost is reduced by (\d+) %\.$", text):
            limit, rate = int(m[1]), int(m[2])
        elif m := re.match(r"Carriage is ([\d.]+), or 0.00 if the goods cost ([\d.]+) or more in all\.$", text):
            fee, free = cents(m[1]), cents(m[2])
        else:
            raise AssertionError(text)
    ordered = re.match(
        r"(?:Order at least|We need no fewer than|Get at least) (\d+) (\w+)(?: and (\d+) (\w+))?\.", goal
    )
    assert ordered, goal
    known: dict[str, str] = {}
    out = Found({})
    total = 0
    for need, goods in ((ordered[1], ordered[2]), (ordered[3], ordered[4])):
        if not goods:
            continue
        at = only([i for i, r in enumerate(rows) if r["goods"] == goods])
        out.decisions.append(decide(rows, at))
        size, price = int(rows[at]["pieces in a pack"]), cents(rows[at]["price of a pack"])
        packs = next(p for p in range(1, 9999) if p * size >= int(need))
        cost = packs * price
        if limit is not None and rate is not None and packs >= limit:
            cost -= share(cost, rate)
        total += cost
        known[f"Packs of {goods}"] = str(packs)
        known[f"Cost of {goods}"] = shown(cost)
        known[f"Left over {goods}"] = str(packs * size - int(need))
    known["Goods total"] = shown(total)
    if fee is not None and free is not None:
        carriage = 0 if total >= free else fee
        known |= {
            "Carriage": shown(carriage),
            "Amount due": shown(total + carriage),
            "Carriage free": "no" if carriage else "yes",
        }
    out.values = _pick(seen, known)
    return out


def invoice_total(seen: Seen, goal: str) -> Found:
    if goal.startswith("Set "):
        amounts = {k: int(v) for k, v in (t.split(": ") for t in seen.texts)}
        post, rebate = amounts.pop("Post", 0), amounts.pop("Rebate", 0)
        goods = sum(amounts.values())
        known = {"Goods": goods, "To pay": goods + post - rebate, "Post": post, "Rebate": rebate}
        return Found(_pick(seen, {k: str(v) for k, v in known.items()}))
    lines = [
        (int(r["quantity"]), cents(r["unit price"]), r.get("mark", "")) for r in seen.tables.get("Invoice lines", [])
    ]
    rate = tax_rate = days = 0
    least = 0
    for text in seen.texts:
        if m := re.match(r"(\d+) \w+ at ([\d.]+) each(?: \((\w+)\))?\.$", text):
            lines.append((int(m[1]), cents(m[2]), m[3] or ""))
        elif m := re.match(r"The discount is (\d+) % of the subtotal(?:, if the subtotal is ([\d.]+) or more)?", text):
            rate, least = int(m[1]), cents(m[2]) if m[2] else 0
        elif m := re.match(r"Tax is (\d+) % of the net amount", text):
            tax_rate = int(m[1])
        elif m := re.match(r"Payment is due (\d+) days after", text):
            days = int(m[1])
        else:
            assert re.match(r"Lines marked (cancelled do not count|credit are taken off the subtotal)\.$", text), text
    sign = {"cancelled": 0, "credit": -1}
    subtotal = sum(q * p * sign.get(mark, 1) for q, p, mark in lines)
    assert subtotal > 0
    discount = share(subtotal, rate) if subtotal >= least else 0
    net = subtotal - discount
    tax = share(net, tax_rate)
    issued = re.search(r"\d{4}-\d\d-\d\d", goal)
    assert issued, goal
    known = {
        "Subtotal": shown(subtotal),
        "Discount": shown(discount),
        "Net amount": shown(net),
        "Tax": shown(tax),
        "Invoice total": shown(net + tax),
        "Due date": str(date.fromisoformat(issued[0]) + timedelta(days)),
    }
    if m := re.search(r"if the total is above ([\d.]+\d)", goal):
        known["Needs approval"] = "yes" if net + tax > cents(m[1]) else "no"
    return Found(_pick(seen, known))


def quote_tiers(seen: Seen, goal: str) -> Found:
    if m := re.match(r"A quote for (\d+) pieces\.", goal):
        n, fee, rows = int(m[1]), 0, []
        for text in seen.texts:
            if box := re.match(r"box: (\d+)$", text):
                fee = int(box[1])
            else:
                low, high, price = re.findall(r"^(\d+) to (\d+): (\d+) each$", text)[0]
                rows.append({"from": low, "to": high, "price": price})
        at = only([i for i, r in enumerate(rows) if int(r["from"]) <= n <= int(r["to"])])
        price = int(rows[at]["price"])
        known = {"Price": str(price), "Cost": str(n * price), "With box": str(n * price + fee)}
        return Found(_pick(seen, known), [decide(rows, at)])
    rows = seen.tables.get("Tiers", [])
    setup = days = 0
    graduated = False
    rebate: tuple[int, int] | None = None
    for text in seen.texts:
        if m := re.match(r"(\w+) tier: (\d+) to (\d+) pieces at ([\d.]+) each\.$", text):
            rows.append({"tier": m[1], "from": m[2], "to": m[3], "price of a piece": m[4]})
        elif m := re.match(r"Every quote bears ([\d.]+) for set-up", text):
            setup = cents(m[1])
        elif m := re.match(r"Quotes hold for (\d+) days", text):
            days = int(m[1])
        elif text.startswith("Each piece is priced in the tier"):
            graduated = True
        elif m := re.match(r"An amount of ([\d.]+) or more is reduced by (\d+) % before set-up is added\.$", text):
            rebate = cents(m[1]), int(m[2])
        else:
            raise AssertionError(text)
    issued = re.search(r"\d{4}-\d\d-\d\d", goal)
    assert issued, goal
    known = {"Valid until": str(date.fromisoformat(issued[0]) + timedelta(days))}
    wants = re.findall(r"(\d+) pieces for (\w+)", goal)
    out = Found({})
    for count, who in wants:
        n = int(count)
        at = only([i for i, r in enumerate(rows) if int(r["from"]) <= n <= int(r["to"])])
        out.decisions.append(decide(rows, at))
        price_of = {k: cents(r["price of a piece"]) for r in rows for k in range(int(r["from"]), int(r["to"]) + 1)}
        amount = sum(price_of[k] for k in range(1, n + 1)) if graduated else n * price_of[n]
        given = rebate is not None and amount >= rebate[0]
        reduced = amount - share(amount, rebate[1]) if rebate and given else amount
        case = f" for {who}" if len(wants) > 1 else ""
        known[f"Tier{case}"] = rows[at]["tier"]
        if not graduated:
            known[f"Price of a piece{case}"] = rows[at]["price of a piece"]
        known[f"Amount{case}"] = shown(amount)
        known[f"Rebate given{case}"] = "yes" if given else "no"
        known[f"Reduced amount{case}"] = shown(reduced)
        known[f"Amount with set-up{case}"] = shown(reduced + setup)
    out.values = _pick(seen, known)
    return out
