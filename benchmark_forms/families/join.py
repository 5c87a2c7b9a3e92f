"""Relational join: what is asked stands in another table, one or two hops from what the goal names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from random import Random

from advsim.form import Table, Text
from benchmark_forms import words
from benchmark_forms.amounts import draw_date
from benchmark_forms.assemble import Draft, assemble, names, records_block, stated
from benchmark_forms.families.asking import case_count, for_person, output_count, span, tick
from benchmark_forms.fields import Attribute, Column, Wanted, draw_column, wanted
from benchmark_forms.setting import Setting


def lead_to(rng: Random, rows: int, ends: int, fixed: Mapping[int, int], rivals: Sequence[int] = ()) -> list[int]:
    """For each row of a table the row of the next that it leads to, where `fixed` says what some must lead to.

    At least one of the `rivals` (by default of all other rows) leads elsewhere than the first fixed one, or the
    answer would not depend on which row is read.
    """
    first, end = next(iter(fixed.items()))
    free = [i for i in range(rows) if i not in fixed]
    # Every end is led to while there are rows enough, so that being named says nothing about being asked for.
    spare = [e for e in range(ends) if e not in fixed.values()]
    rng.shuffle(spare)
    spare = (spare + [rng.randrange(ends) for _ in free])[: len(free)]
    rng.shuffle(spare)
    found = [0] * rows
    for row, target in (*fixed.items(), *zip(free, spare, strict=True)):
        found[row] = target
    others = [i for i in (rivals or range(rows)) if i != first]
    own = [i for i in others if i not in fixed]
    if own and all(found[i] == end for i in others):
        swap = [i for i in free if i not in own and found[i] != end]
        if swap:
            here, there = rng.choice(own), rng.choice(swap)
            found[here], found[there] = found[there], found[here]
        else:
            found[rng.choice(own)] = rng.choice([e for e in range(ends) if e != end])
    return found


def own_table(
    rng: Random, caption: str, key: str, titles: Sequence[str], columns: Sequence[Column], *, table: bool
) -> list[Text | Table]:
    """The table that holds the answers, its rows in any order, or a sentence a row."""
    order = list(range(len(titles)))
    rng.shuffle(order)
    header = [key, *(c.attribute.name for c in columns)]
    if table:
        return [records_block(caption, header, [[titles[i], *(c.values[i] for c in columns)] for i in order])]
    return [
        Text(text=f"{key} {titles[i]}: {', '.join(f'{c.attribute.name} {c.values[i]}' for c in columns)}.")
        for i in order
    ]


def split_records(rng: Random, setting: Setting, parts: int, most: int = 9) -> list[int]:
    """How many rows each of `parts` tables has, at most `most` in all; the last holds the answers, three at least."""
    sizes = [2] * (parts - 1) + [3]
    total = min(most, rng.randint(7, 9) if setting.hard else rng.randint(5, 6))
    for _ in range(total - sum(sizes)):
        sizes[rng.randrange(parts)] += 1
    return sizes


# ----------------------------------------------------------------------------------------------- asset owner

_OWNER = (
    Attribute("Lead", "choice", words.PEOPLE[:18]),
    Attribute("Phone", "int", low=200_100, high=899_900),
    Attribute("Office", "code", prefix="F"),
    Attribute("On leave", "flag"),
    Attribute("In charge since", "date"),
    Attribute("Handover note", "phrase", words.PHRASES),
    Attribute("Budget", "money", low=100, high=900),
)
_OWNER_SMALL = (
    Attribute("Lead", "choice", words.SHORT_PEOPLE),
    Attribute("Desk", "int", low=1, high=60),
    Attribute("Floor", "int", low=1, high=30),
    Attribute("Away", "flag"),
)
_ASSETS = ("scanner", "forklift", "projector", "van", "lathe", "server", "drone", "freezer", "crane", "plotter")
_SHORT_TEAMS = ("red", "blue", "green", "black", "white")


def asset_owner(rng: Random, setting: Setting) -> Draft:
    """An asset belongs to a team, and the team has a lead: two hops, or three by way of a site."""
    title = rng.choice(("Asset register", "Asset handover", "Equipment owner"))
    if setting.small:
        return _asset_small(rng, setting, title)
    cases = case_count(rng, setting)
    by_site = setting.hard and rng.random() < 0.5
    moved = setting.hard and not by_site
    sizes = split_records(rng, setting, 3 if by_site else 2, 9 - moved)
    assets = [f"{a} {rng.randint(2, 99)}" for a in rng.sample(_ASSETS, sizes[0])]
    teams = rng.sample(words.TEAMS, sizes[-1])
    sites = rng.sample(words.PLACES, sizes[1]) if by_site else []
    chosen = rng.sample(range(len(assets)), cases)
    goals = rng.sample(range(len(teams)), cases)

    to_team = lead_to(rng, len(assets), len(teams), dict(zip(chosen, goals, strict=True)))
    lines: list[list[str]]
    blocks: list[Text | Table]
    table = rng.random() < 0.6
    if by_site:
        stops = rng.sample(range(len(sites)), cases)
        to_site = lead_to(rng, len(assets), len(sites), dict(zip(chosen, stops, strict=True)))
        site_team = lead_to(rng, len(sites), len(teams), dict(zip(stops, goals, strict=True)))
        lines = [[a, sites[s]] for a, s in zip(assets, to_site, strict=True)]
        second = [[s, teams[t]] for s, t in zip(sites, site_team, strict=True)]
        rng.shuffle(second)
        if table:
            blocks = [
                records_block("Assets", ("Asset", "Kept at"), lines),
                records_block("Sites", ("Site", "Run by team"), second),
            ]
        else:
            blocks = [Text(text=f"The {a} is kept at {s}.") for a, s in lines]
            blocks += [Text(text=f"Site {s} is run by team {t}.") for s, t in second]
    else:
        old = list(to_team)
        mover = rng.randrange(len(assets))
        if moved:
            old[mover] = rng.choice([t for t in range(len(teams)) if t != to_team[mover]])
        lines = [[a, teams[t]] for a, t in zip(assets, old, strict=True)]
        if table:
            blocks = [records_block("Assets", ("Asset", "Team"), lines)]
        else:
            blocks = [Text(text=f"The {a} belongs to team {t}.") for a, t in lines]
        if moved:
            blocks.append(Text(text=f"Moved since then: the {assets[mover]} is now with team {teams[to_team[mover]]}."))
    width = output_count(rng, setting, cases, 6)
    columns = [draw_column(rng, a, len(teams), goals) for a in rng.sample(_OWNER, width)]
    blocks += own_table(rng, "Teams", "Team", teams, columns, table=table)
    items = [
        wanted(c, team, for_person(c.attribute.name, assets[asset], cases))
        for asset, team in zip(chosen, goals, strict=True)
        for c in columns
    ]
    which = " and ".join(f"the {assets[a]}" for a in chosen)
    goal = rng.choice(
        (
            "We need to know who answers for {w}. Enter {f} of the team concerned.",
            "Look up the team that is responsible for {w} and fill in {f}.",
            "Register {w}: {f} are those of the team it falls to.",
        )
    ).format(w=which, f=names(rng, [i.label for i in items], setting))
    shape = ("table" if table else "lines", "+".join(map(str, sizes)), cases, "site" if by_site else "", moved)
    return assemble(rng, setting, title=title, blocks=blocks, items=items, goal=f"{goal}{tick(items)}", shape=shape)


def _asset_small(rng: Random, setting: Setting, title: str) -> Draft:
    count = setting.targets(rng)
    winner, team = rng.randrange(2), rng.randrange(3)
    goods, teams = rng.sample(words.SHORT_GOODS, 2), rng.sample(_SHORT_TEAMS, 3)
    columns = [draw_column(rng, a, 3, [team]) for a in rng.sample(_OWNER_SMALL, count)]
    items = [wanted(c, team) for c in columns]
    if setting.level == "tiny":
        return stated(rng, setting, title, items)
    to_team = lead_to(rng, 2, 3, {winner: team})
    blocks = [Text(text=f"{g}: {teams[t]}") for g, t in zip(goods, to_team, strict=True)]
    blocks += [
        Text(text=f"{t}: {', '.join(f'{c.attribute.name} {c.values[i]}' for c in columns)}")
        for i, t in enumerate(teams)
    ]
    goal = f"Who has the {goods[winner]}? Set {names(rng, [i.label for i in items], setting)} of that team."
    return assemble(rng, setting, title=title, blocks=blocks, items=items, goal=goal, shape=(count,))


# ------------------------------------------------------------------------------------------- billing account

_ACCOUNT = (
    Attribute("Cost code", "code", prefix="C"),
    Attribute("Approved by", "choice", words.PEOPLE[6:24]),
    Attribute("Credit limit", "money", low=100, high=900),
    Attribute("Currency", "choice", ("EUR", "GBP", "CHF", "SEK", "USD")),
    Attribute("Paper copy", "flag"),
    Attribute("Reviewed on", "date"),
    Attribute("Payment days", "int", low=5, high=90),
    Attribute("Payment note", "phrase", words.PHRASES),
)
_ACCOUNT_SMALL = (
    Attribute("Code", "int", low=10, high=99),
    Attribute("Payer", "choice", words.SHORT_PEOPLE),
    Attribute("Days", "int", low=1, high=60),
    Attribute("Paper", "flag"),
)


def billing_account(rng: Random, setting: Setting) -> Draft:
    """An invoice is booked on the account that the client had on its date, with that account's particulars."""
    title = rng.choice(("Billing desk", "Invoice booking", "Client billing"))
    if setting.small:
        return _billing_small(rng, setting, title)
    cases = case_count(rng, setting)
    more = rng.randint(1, 3) if setting.hard else 0
    sizes = [3 + more - (more > 1), 3 + (more > 1)] if rng.random() < 0.5 else [3 + more, 3]
    periods, accounts = sizes[0], [str(n) for n in rng.sample(range(3000, 9000), sizes[1])]
    clients = rng.sample(words.COMPANIES, 1 if periods < 4 and cases == 1 else 2)
    rows = _periods(rng, clients, periods)
    chosen = rng.sample(range(periods), cases)
    goals = rng.sample(range(len(accounts)), cases)
    same_client = [i for i, row in enumerate(rows) if row[0] == rows[chosen[0]][0]]
    to_account = lead_to(rng, periods, len(accounts), dict(zip(chosen, goals, strict=True)), same_client)
    table = rng.random() < 0.6
    agreements = [[c, a, b, accounts[t]] for (c, a, b), t in zip(rows, to_account, strict=True)]
    blocks: list[Text | Table]
    if table:
        blocks = [records_block("Agreements", ("Client", "From", "To", "Account"), agreements)]
    else:
        blocks = [Text(text=f"{c} uses account {t} from {a} to {b}.") for c, a, b, t in agreements]
    named = rng.random() < 0.5  # the account itself is one of the values
    width = output_count(rng, setting, cases, 6)
    columns = [draw_column(rng, a, len(accounts), goals) for a in rng.sample(_ACCOUNT, width - named)]
    shown = own_table(rng, "Accounts", "Account", accounts, columns, table=table)
    blocks = [*shown, *blocks] if rng.random() < 0.3 else [*blocks, *shown]
    if named:
        columns.insert(0, Column(Attribute("Account", "choice"), tuple(accounts), tuple(accounts)))
    marks = [f"N{n}" for n in rng.sample(range(100, 1000), cases)]
    facts = []
    for row, mark in zip(chosen, marks, strict=True):
        client, start, end = rows[row]
        facts.append(f"invoice {mark} of {_between(rng, start, end)} for {client}")
    items = []
    for account, mark in zip(goals, marks, strict=True):
        for c in columns:
            items.append(_account_item(c, account, for_person(c.attribute.name, mark, cases)))
    goal = rng.choice(
        (
            "Book {i} on the account that the client used on that day. Enter {f}.",
            "Find the account for {i}, going by the invoice's date, and fill in {f}.",
        )
    ).format(i=" and ".join(facts), f=names(rng, [i.label for i in items], setting))
    shape = ("table" if table else "lines", "+".join(map(str, sizes)), cases, len(clients), named)
    return assemble(rng, setting, title=title, blocks=blocks, items=items, goal=f"{goal}{tick(items)}", shape=shape)


def _account_item(column: Column, account: int, label: str) -> Wanted:
    item = wanted(column, account, label)
    return item._replace(type="code") if item.type == "choice" and len(item.options) < 3 else item


def _periods(rng: Random, clients: Sequence[str], count: int) -> list[tuple[str, str, str]]:
    """Periods (client, first day, last day): each client's follow one another; the rows are mixed."""
    rows = []
    for place, client in enumerate(clients):
        day = draw_date(rng, 2023)
        for _ in range(count // len(clients) + (place < count % len(clients))):
            end = day + timedelta(days=rng.randint(60, 400))
            rows.append((client, day.isoformat(), end.isoformat()))
            day = end + timedelta(days=1)
    rng.shuffle(rows)
    return rows


def _between(rng: Random, start: str, end: str) -> str:
    first, last = (draw_date(rng).fromisoformat(x) for x in (start, end))
    return (first + timedelta(days=rng.randint(0, (last - first).days))).isoformat()


def _billing_small(rng: Random, setting: Setting, title: str) -> Draft:
    winner = rng.randrange(3)
    columns = [draw_column(rng, a, 3, [winner]) for a in rng.sample(_ACCOUNT_SMALL, setting.targets(rng))]
    items = [wanted(c, winner) for c in columns]
    if setting.level == "tiny":
        return stated(rng, setting, title, items)
    low, rows = rng.randint(1, 3), []
    for _ in range(3):
        high = low + rng.randint(2, 9)
        rows.append((low, high))
        low = high + 1
    rng.shuffle(rows)
    blocks = [
        Text(text=f"day {span(a, b)}: {', '.join(f'{c.attribute.name} {c.values[i]}' for c in columns)}")
        for i, (a, b) in enumerate(rows)
    ]
    goal = f"The bill is of day {rng.randint(*rows[winner])}. Set {names(rng, [i.label for i in items], setting)}."
    return assemble(rng, setting, title=title, blocks=blocks, items=items, goal=goal, shape=(len(items),))
