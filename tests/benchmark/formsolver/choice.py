"""Solvers of the conjunctive stratum: filter, then rank."""

from __future__ import annotations

import re

from formsolver.seen import Found, Seen, decide, only, pairs, take
from formsolver.sums import cents

ARTICLE = ["colour", "material", "width", "weight", "warranty", "in stock"]
VENUE = ["district", "step-free", "kitchen", "seats", "floor area", "closing hour"]
VENUE += ["day rate", "walk in minutes", "stage width", "sockets"]
SUPPLIER = ["region", "certificate", "packaging", "lead days", "smallest order", "rating", "price", "freight"]
BOUND = r"(at least|no less than|at most|no more than) (\d+)"


def _rows(seen: Seen, caption: str, title: str, names: list[str]) -> list[dict[str, str]]:
    if caption in seen.tables:
        return seen.tables[caption]
    known = sorted([*names, *seen.names], key=len, reverse=True)
    rows = []
    for text in seen.texts:
        head, colon, rest = text.partition(": ")
        if colon and rest.endswith(".") and any(f"{n} " in rest for n in names) and head not in ("House rule",):
            rows.append({title: head, **pairs(rest, known)})
    return rows


def _meets(row: dict[str, str], names: list[str], wishes: str) -> bool:
    for name in names:
        if m := re.search(rf"\b{name} {BOUND}", wishes):
            least = m[1] in ("at least", "no less than")
            if not (int(row[name]) >= int(m[2]) if least else int(row[name]) <= int(m[2])):
                return False
        elif (m := re.search(rf"\b{name} (?!or\b)([\w ]+?)(?:,| and |\.|$)", wishes)) and row[name] != m[1]:
            return False
    return True


def _small(seen: Seen, title: str) -> list[dict[str, str]]:
    rows = []
    for text in seen.texts:
        head, _, rest = text.partition(": ")
        rows.append({title: head, "facts": rest, **pairs(rest, seen.names)})
    return rows


def catalogue_choice(seen: Seen, goal: str) -> Found:
    if m := re.match(r"Take the (\w+) (\w+) one\.", goal):
        rows = _small(seen, "model")
        fits = [i for i, r in enumerate(rows) if r["facts"].split(", ")[:2] == [m[2], m[1]]]
    else:
        rows = _rows(seen, "Catalogue", "model", ARTICLE)
        wishes = re.search(r"(?:model with|has) (.*?)(?:\. Enter|; fill in| and enter)", goal)
        assert wishes, goal
        fits = [i for i, r in enumerate(rows) if _meets(r, ARTICLE, wishes[1])]
    at = only(fits)
    out = Found(take(seen, rows[at]), [decide(rows, at)])
    for m in re.finditer(r"(Quantity|Deliver on) is ([\d-]+)\.", goal):
        out.values[m[1]] = m[2]
    return out


def venue_choice(seen: Seen, goal: str) -> Found:
    if m := re.match(r"Take the one on the (\w+) floor with at (least|most) (\d+) seats\.", goal):
        rows = _small(seen, "venue")
        fits = []
        for i, r in enumerate(rows):
            seats, floor = re.findall(r"^(\d+) seats, (\w+) floor", r["facts"])[0]
            enough = int(seats) >= int(m[3]) if m[2] == "least" else int(seats) <= int(m[3])
            if floor == m[1] and enough:
                fits.append(i)
        at = only(fits)
        return Found(take(seen, rows[at]), [decide(rows, at)])
    rows = _rows(seen, "Venues", "venue", VENUE)
    rules = [m[1] for t in seen.texts if (m := re.match(r"(?:House rule:|Our events need) (.*)\.$", t))]
    end = re.search(r"the (?:one with the )?(lowest|highest) ([a-z ]+?)(?: wins\.| and enter)", goal)
    assert end, goal
    wish = re.search(r"venues? with (.*?)(?: and the rules on the page|, take|\. Of)", goal)
    wishes = [*rules, *([wish[1]] if wish else [])]
    fits = [i for i, r in enumerate(rows) if all(_meets(r, VENUE, w) for w in wishes)]
    best = (min if end[1] == "lowest" else max)(int(rows[i][end[2]]) for i in fits)
    at = only([i for i in fits if int(rows[i][end[2]]) == best])
    return Found(take(seen, rows[at]), [decide(rows, at)])


def supplier_choice(seen: Seen, goal: str) -> Found:
    if m := re.match(r"Take the cheapest from the (\w+)\.", goal):
        rows = _small(seen, "supplier")
        fits = [i for i, r in enumerate(rows) if r["facts"].split(", ")[0] == m[1]]
        price = {i: int(re.findall(r"Price (\d+)", rows[i]["facts"])[0]) for i in fits}
        at = only([i for i in fits if price[i] == min(price.values())])
        return Found(take(seen, rows[at]), [decide(rows, at)])
    rows = _rows(seen, "Offers", "supplier", SUPPLIER)
    buyers = re.findall(r"(\w+) needs a supplier with (.*?)\.(?= )", goal)
    out = Found({})
    for who, wishes in buyers:
        fits = [i for i, r in enumerate(rows) if _meets(r, SUPPLIER, wishes)]
        cost = {i: cents(rows[i]["price"]) + cents(rows[i].get("freight", "0.00")) for i in fits}
        at = only([i for i in fits if cost[i] == min(cost.values())])
        out.values |= take(seen, rows[at], who if len(buyers) > 1 else "")
        out.decisions.append(decide(rows, at))
    return out
