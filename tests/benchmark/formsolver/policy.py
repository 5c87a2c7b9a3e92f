"""Solvers of the conditional stratum."""

from __future__ import annotations

import re

from formsolver.seen import Found, Seen, decide, only, pairs, take, within


def returns_policy(seen: Seen, goal: str) -> Found:
    small = re.search(r"^The \w+ is (?:(\d+) days old|(\w+))\.", goal)
    if small:
        rows = []
        for text in seen.texts:
            condition, _, rest = text.partition(": ")
            rows.append({"if": condition, **pairs(rest, seen.names)})
        if small[1]:
            fits = [i for i, r in enumerate(rows) if within(int(small[1]), r["if"].removesuffix(" days"))]
        else:
            fits = [i for i, r in enumerate(rows) if r["if"] == small[2]]
        at = only(fits)
        return Found(take(seen, rows[at]), [decide(rows, at)])

    rows = seen.tables.get("Returns policy", [])
    grace = 0
    for text in seen.texts:
        if m := re.match(r"(\w+) goods, (\d+ to \d+) days after purchase: (.*)\.$", text):
            rows.append({"condition": m[1].lower(), "days since purchase": m[2], **pairs(m[3], seen.names)})
        elif m := re.match(r"For members of the club, (\d+) days are taken off", text):
            grace = int(m[1])
        else:
            raise AssertionError(text)
    people = re.findall(
        r"(\w+)(, a club member,|, not a club member,|) brings back an? [\w ]+ bought (\d+) days ago; it is (\w+)\.",
        goal,
    )
    out = Found({})
    for name, club, days, state in people:
        age = int(days) - (grace if club.startswith(", a club") else 0)
        at = only([i for i, r in enumerate(rows) if r["condition"] == state and within(age, r["days since purchase"])])
        out.values |= take(seen, rows[at], name if len(people) > 1 else "")
        out.decisions.append(decide(rows, at))
    return out


def shipping_rule(seen: Seen, goal: str) -> Found:
    small = re.search(r"^The box (?:goes to zone (\w)|has (\d+) kg)\.", goal)
    if small:
        rows = []
        for text in seen.texts:
            condition, _, rest = text.partition(": ")
            rows.append({"if": condition, **pairs(rest, seen.names)})
        if small[1]:
            fits = [i for i, r in enumerate(rows) if r["if"] == f"zone {small[1]}"]
        else:
            fits = [i for i, r in enumerate(rows) if within(int(small[2]), r["if"].removesuffix(" kg"))]
        at = only(fits)
        return Found(take(seen, rows[at]), [decide(rows, at)])

    rows = seen.tables.get("Shipping rules", [])
    bulk = 0
    for text in seen.texts:
        if m := re.match(r"(Zone \w|Any zone), up to (\d+) kg: (.*)\.$", text):
            rows.append({"zone": m[1], "up to kg": m[2], **pairs(m[3], seen.names)})
        elif m := re.match(r"A parcel longer than one metre counts (\d+) kg more", text):
            bulk = int(m[1])
        else:
            raise AssertionError(text)
    parcels = re.findall(
        r"The parcel for (\w+) goes to zone (\w) and weighs (\d+) kg(?:; it is (longer|shorter) than one metre)?\.",
        goal,
    )
    end = re.search(r"[Tt]he (first|last) (?:rule that fits|one on the page)", goal)
    assert end, goal
    out = Found({})
    for name, zone, weight, size in parcels:
        kg = int(weight) + (bulk if size == "longer" else 0)
        fits = [i for i, r in enumerate(rows) if r["zone"] in (f"Zone {zone}", "Any zone") and kg <= int(r["up to kg"])]
        at = fits[0 if end[1] == "first" else -1]
        out.values |= take(seen, rows[at], name if len(parcels) > 1 else "")
        out.decisions.append(decide(rows, at))
    return out


def room_booking(seen: Seen, goal: str) -> Found:
    rules: list[tuple[str, str, str]] = [
        (r["entry"], r["goes by"], r["rule"]) for r in seen.tables.get("Booking rules", [])
    ]
    fixed: dict[str, str] = {}
    for text in seen.texts:
        if m := re.match(r"With outside guests, (.+) is always (.+)\.$", text):
            fixed[m[1]] = m[2]
        elif m := re.match(r"(.+?) (?:goes )?by (people|hours|time of day)\. (.+?)\.?$", text):
            rules.append((m[1], m[2], m[3]))
        else:
            raise AssertionError(text)
    if request := seen.tables.get("Request"):
        row = request[0]
        people, hours, part = int(row["people"]), int(row["hours"]), row["time of day"]
        guests = row["outside guests"] == "yes"
        assert row["booked by"] in goal
    elif m := re.match(r"Book for (\d+) people\.", goal):
        people, hours, part, guests = int(m[1]), 0, "", False
    else:
        m = re.search(r"books for (\d+) people and (\d+) hours in the (\w+)", goal)
        assert m, goal
        people, hours, part, guests = int(m[1]), int(m[2]), m[3], "with outside guests" in goal
    out = Found({})
    for entry, by, told in rules:
        if entry not in seen.fields:
            continue
        cases = [c.split(": ", 1) for c in told.split("; ")]
        if by == "time of day":
            at = only([i for i, (case, _) in enumerate(cases) if case == part])
        else:
            at = only([i for i, (case, _) in enumerate(cases) if within(people if by == "people" else hours, case)])
        value = fixed[entry] if guests and entry in fixed else cases[at][1]
        out.values[entry] = seen.answer(entry, value)
        out.decisions.append((at, len(cases), []))
    return out
