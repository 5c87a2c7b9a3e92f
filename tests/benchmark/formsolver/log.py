"""Solvers of the repair stratum: replay the log."""

from __future__ import annotations

import re

from formsolver.seen import Found, Seen, only


def _field(seen: Seen, text: str) -> str:
    return next(n for n in sorted(seen.fields, key=len, reverse=True) if text.startswith(n + " "))


def _split(seen: Seen, text: str) -> tuple[str, str]:
    name = _field(seen, text)
    return name, text[len(name) + 1 :]


def _place(entries: list[tuple[str, float]], own: str, at: int) -> tuple[int, int, list[list[float]]]:
    """The deciding entry's place among the entries of its field, in page order, and their numbers."""
    places = [i for i, e in enumerate(entries) if e[0] == own]
    return places.index(at), len(places), [[entries[i][1] for i in places]]


def contact_override(seen: Seen, goal: str) -> Found:
    entries = [(r["field"], int(r["revision"]), r["value"], r["status"]) for r in seen.tables.get("Revisions", [])]
    for text in seen.texts:
        m = re.match(r"Revision (\d+) \((\w+)\): (.*)$", text) or re.match(r"rev (\d+)()?: (.*)$", text)
        assert m, text
        name, value = _split(seen, m[3])
        entries.append((name, int(m[1]), value, m[2] or "released"))
    out = Found({})
    for name in dict.fromkeys(e[0] for e in entries):
        end = min if goal.split(".")[0].endswith("lowest rev") else max
        top = end(e[1] for e in entries if e[0] == name and e[3] == "released")
        at = only([i for i, e in enumerate(entries) if e[1] == top])
        out.values[name] = seen.answer(name, entries[at][2])
        out.decisions.append(_place([(e[0], e[1]) for e in entries], name, at))
    return out


def dated_patches(seen: Seen, goal: str) -> Found:
    entries = []
    for r in seen.tables.get("Changes", []):
        entries.append((r["field"], r["date"], r["change"]))
    for text in seen.texts:
        if m := re.match(r"day (\d+): (.*)$", text):
            name, value = _split(seen, m[2])
            entries.append((name, f"{int(m[1]):04d}", f"set to {value}"))
        else:
            m = re.match(r"([\d-]+): (.*)\.$", text)
            assert m, text
            name, change = _split(seen, m[2])
            entries.append((name, m[1], change))
    if m := re.match(r"Today is day (\d+)\.", goal):
        today = f"{int(m[1]):04d}"
    else:
        m = re.search(r"\d{4}-\d\d-\d\d", goal)
        assert m, goal
        today = m[0]
    out = Found({})
    for name in dict.fromkeys(e[0] for e in entries):
        own = sorted((day, i, change) for i, (n, day, change) in enumerate(entries) if n == name and day <= today)
        value = seen.first[name]
        for _, _, change in own:
            verb, amount = re.findall(r"^(set to|raised by|lowered by) (.*)$", change)[0]
            if verb == "set to":
                value = amount
            else:
                value = str(int(value) + int(amount) * (1 if verb == "raised by" else -1))
        out.values[name] = seen.answer(name, value)
        days = [(n, float(day.replace("-", ""))) for n, day, _ in entries]
        out.decisions.append(_place(days, name, own[-1][1]))
    return out


def corrections_log(seen: Seen, goal: str) -> Found:
    entries = [(int(r["entry"]), r["correction"]) for r in seen.tables.get("Corrections", [])]
    for text in seen.texts:
        m = re.match(r"(?:Entry )?(\d+): (.*?)\.?$", text)
        assert m, text
        entries.append((int(m[1]), m[2]))
    withdrawn: set[int] = set()
    sets: list[tuple[str, int, str]] = []
    for _, said in sorted(entries):
        if re.match(r"(drop|entry|entries) \d", said):
            numbers = {int(n) for n in re.findall(r"\d+", said)}
            if said.endswith("holds again"):
                withdrawn -= numbers
            else:
                withdrawn |= numbers
    for number, said in entries:
        if not re.match(r"(drop|entry|entries) \d", said):
            name, value = _split(seen, said)
            sets.append((name, number, value.removeprefix("becomes ")))
    out = Found({})
    for name in dict.fromkeys(e[0] for e in sets):
        top = max(n for f, n, _ in sets if f == name and n not in withdrawn)
        at = only([i for i, e in enumerate(sets) if e[1] == top])
        out.values[name] = seen.answer(name, sets[at][2])
        out.decisions.append(_place([(e[0], float(e[1])) for e in sets], name, at))
    return out
