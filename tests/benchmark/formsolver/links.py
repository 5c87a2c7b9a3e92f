"""Solvers of the join stratum: follow names from table to table."""

from __future__ import annotations

import re

from formsolver.seen import Found, Seen, decide, only, pairs, take, within


def _named(rows: list[dict[str, str]], key: str, value: str) -> int:
    return only([i for i, r in enumerate(rows) if r[key] == value])


def _own(seen: Seen, caption: str, key: str) -> list[dict[str, str]]:
    if caption in seen.tables:
        return seen.tables[caption]
    found = (re.match(rf"{key} ([\w ]+?): (.*)\.$", t) for t in seen.texts)
    return [{key.lower(): m[1], **pairs(m[2], seen.names)} for m in found if m]


def asset_owner(seen: Seen, goal: str) -> Found:
    if m := re.match(r"Who has the (\w+)\?", goal):
        links = [t.split(": ") for t in seen.texts]
        teams = [{"team": a, **pairs(b, seen.names)} for a, b in links if any(f"{n} " in b for n in seen.names)]
        goods = [{"asset": a, "team": b} for a, b in links if not any(f"{n} " in b for n in seen.names)]
        first = _named(goods, "asset", m[1])
        at = _named(teams, "team", goods[first]["team"])
        return Found(take(seen, teams[at]), [decide(goods, first), decide(teams, at)])
    assets = list(seen.tables.get("Assets", []))
    sites = list(seen.tables.get("Sites", []))
    moved: dict[str, str] = {}
    for text in seen.texts:
        if m := re.match(r"The ([\w ]+) belongs to team (\w+)\.$", text):
            assets.append({"asset": m[1], "team": m[2]})
        elif m := re.match(r"The ([\w ]+) is kept at ([\w ]+)\.$", text):
            assets.append({"asset": m[1], "kept at": m[2]})
        elif m := re.match(r"Site ([\w ]+) is run by team (\w+)\.$", text):
            sites.append({"site": m[1], "run by team": m[2]})
        elif m := re.match(r"Moved since then: the ([\w ]+) is now with team (\w+)\.$", text):
            moved[m[1]] = m[2]
        else:
            assert text.startswith("Team "), text
    teams = _own(seen, "Teams", "Team")
    asked = re.search(r"(?:for|Register) (the \w+ \d+(?: and the \w+ \d+)?)(?:\.| and fill|:)", goal)
    assert asked, goal
    which = [a.removeprefix("the ") for a in asked[1].split(" and ")]
    out = Found({})
    for asset in which:
        first = _named(assets, "asset", asset)
        out.decisions.append(decide(assets, first))
        row = assets[first]
        if "kept at" in row:
            stop = _named(sites, "site", row["kept at"])
            out.decisions.append(decide(sites, stop))
            team = sites[stop]["run by team"]
        else:
            team = moved.get(asset, row["team"])
        at = _named(teams, "team", team)
        out.decisions.append(decide(teams, at))
        out.values |= take(seen, teams[at], asset if len(which) > 1 else "")
    return out


def billing_account(seen: Seen, goal: str) -> Found:
    if m := re.match(r"The bill is of day (\d+)\.", goal):
        rows = []
        for text in seen.texts:
            days, rest = re.findall(r"^day ([\d to]+): (.*)$", text)[0]
            rows.append({"span": days, **pairs(rest, seen.names)})
        at = only([i for i, r in enumerate(rows) if within(int(m[1]), r["span"])])
        return Found(take(seen, rows[at]), [decide(rows, at)])
    agreements = list(seen.tables.get("Agreements", []))
    for text in seen.texts:
        if m := re.match(r"([\w& ]+) uses account (\d+) from ([\d-]+) to ([\d-]+)\.$", text):
            agreements.append({"client": m[1], "account": m[2], "from": m[3], "to": m[4]})
    accounts = _own(seen, "Accounts", "Account")
    bills = re.findall(r"invoice (N\d+) of ([\d-]+) for ([\w& ]+?)(?= and invoice|,| on the account)", goal)
    assert bills, goal
    out = Found({})
    for mark, day, client in bills:
        first = only([i for i, r in enumerate(agreements) if r["client"] == client and r["from"] <= day <= r["to"]])
        at = _named(accounts, "account", agreements[first]["account"])
        out.decisions += [decide(agreements, first), decide(accounts, at)]
        out.values |= take(seen, accounts[at], mark if len(bills) > 1 else "")
    return out


def oncall_contact(seen: Seen, goal: str) -> Found:
    if m := re.match(r"The (\w+) fails\.", goal):
        links = [t.split(": ") for t in seen.texts]
        crews = [{"crew": a, **pairs(b, seen.names)} for a, b in links if a.startswith("crew ")]
        services = [{"service": a, "crew": b} for a, b in links if not a.startswith("crew ")]
        first = _named(services, "service", m[1])
        at = _named(crews, "crew", services[first]["crew"])
        return Found(take(seen, crews[at]), [decide(services, first), decide(crews, at)])
    services = list(seen.tables.get("Services", []))
    rota = list(seen.tables.get("Rota", []))
    for text in seen.texts:
        if m := re.match(r"The ([\w ]+) is looked after by team (\w+)\.$", text):
            services.append({"service": m[1], "team": m[2]})
        elif m := re.match(r"Team (\w+), (\w+) shift: (\w+) is on call(?:, )?(.*)\.$", text):
            rota.append({"team": m[1], "shift": m[2], "on call": m[3], **pairs(m[4], seen.names)})
        else:
            assert text.startswith("Person "), text
    people = _own(seen, "People", "Person")
    failures = re.findall(r"that the ([\w ]+?) fails in the (\w+) shift", goal)
    assert failures, goal
    out = Found({})
    for service, shift in failures:
        first = _named(services, "service", service)
        team = services[first]["team"]
        slot = only([i for i, r in enumerate(rota) if r["team"] == team and r["shift"] == shift])
        out.decisions += [decide(services, first), decide(rota, slot)]
        row = dict(rota[slot])
        if people:
            at = _named(people, "person", row["on call"])
            out.decisions.append(decide(people, at))
            row |= people[at]
        out.values |= take(seen, row, service if len(failures) > 1 else "")
    return out
