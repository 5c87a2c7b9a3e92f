"""Relational join, third family: from a service to its team, and from team and time to a person and the details."""

from __future__ import annotations

from random import Random

from advsim.form import Table, Text
from benchmark_forms import words
from benchmark_forms.assemble import Draft, assemble, names, records_block, stated
from benchmark_forms.families.asking import case_count, for_person, output_count, tick
from benchmark_forms.families.join import lead_to, own_table
from benchmark_forms.fields import Attribute, Column, draw_column, wanted
from benchmark_forms.setting import Setting

_DETAILS = (
    Attribute("Phone", "int", low=200_100, high=899_900),
    Attribute("Pager", "code", prefix="PG"),
    Attribute("Meets at", "choice", words.PLACES),
    Attribute("Has a key", "flag"),
    Attribute("On duty until", "date"),
    Attribute("Call note", "phrase", words.PHRASES),
    Attribute("Backup", "choice", words.SURNAMES),
)
_DETAILS_SMALL = (
    Attribute("Phone", "int", low=10, high=99),
    Attribute("Gate", "int", low=1, high=30),
    Attribute("Name", "choice", words.SHORT_PEOPLE),
    Attribute("Key", "flag"),
)
_SERVICES = ("payroll", "mail relay", "web shop", "badge system", "data store", "print queue", "archive", "intranet")
_SHORT_SERVICES = ("mail", "shop", "gate", "pump", "lift")
# Rows of the services, the rota and the list of people; everyone on the list has a shift.
_EASY_SIZES = ((2, 3, 0), (2, 4, 0), (3, 3, 0))
_HARD_SIZES = ((2, 3, 3), (2, 4, 3), (3, 3, 3))
_SHIFTS = ("morning", "afternoon", "night")


def oncall_contact(rng: Random, setting: Setting) -> Draft:
    """Who is on call for a service: its team, the team's rota at that time, and the person's details."""
    title = rng.choice(("Incident contact", "On-call desk", "Incident form"))
    if setting.small:
        return _oncall_small(rng, setting, title)
    cases = case_count(rng, setting)
    # Easy: the rota itself holds the details. Hard: they stand in a list of people.
    services_count, rota_count, people_count = rng.choice(_HARD_SIZES if setting.hard else _EASY_SIZES)
    teams = rng.sample(words.TEAMS, 2)
    slots = rng.sample([(t, s) for t in teams for s in _SHIFTS], rota_count)
    chosen = rng.sample(range(len(slots)), cases)
    on_call = rng.sample(words.PEOPLE, people_count or len(slots))
    goals = rng.sample(range(people_count), cases) if people_count else chosen
    who = list(range(len(slots)))
    if people_count:
        who = lead_to(rng, len(slots), people_count, dict(zip(chosen, goals, strict=True)))

    services = rng.sample(_SERVICES, services_count)
    asked_services = rng.sample(range(services_count), cases)
    owners = {s: teams.index(slots[slot][0]) for s, slot in zip(asked_services, chosen, strict=True)}
    to_team = [teams[t] for t in lead_to(rng, services_count, 2, owners)]
    table = rng.random() < 0.6
    blocks: list[Text | Table]
    if table:
        blocks = [records_block("Services", ("Service", "Team"), list(zip(services, to_team, strict=True)))]
    else:
        blocks = [Text(text=f"The {s} is looked after by team {t}.") for s, t in zip(services, to_team, strict=True)]

    named = rng.random() < 0.5
    width = output_count(rng, setting, cases, 6)
    rows = people_count or len(slots)
    columns = [draw_column(rng, a, rows, goals) for a in rng.sample(_DETAILS, width - named)]
    if people_count:
        rota = [[t, s, on_call[p]] for (t, s), p in zip(slots, who, strict=True)]
        if table:
            blocks.append(records_block("Rota", ("Team", "Shift", "On call"), rota))
        else:
            blocks += [Text(text=f"Team {t}, {s} shift: {p} is on call.") for t, s, p in rota]
        blocks += own_table(rng, "People", "Person", on_call, columns, table=table)
    elif table:
        header = ("Team", "Shift", "On call", *(c.attribute.name for c in columns))
        details = [[t, s, on_call[i], *(c.values[i] for c in columns)] for i, (t, s) in enumerate(slots)]
        blocks.append(records_block("Rota", header, details))
    else:
        for i, (t, s) in enumerate(slots):
            told = "".join(f", {c.attribute.name} {c.values[i]}" for c in columns)
            blocks.append(Text(text=f"Team {t}, {s} shift: {on_call[i]} is on call{told}."))
    if named:
        columns.insert(0, Column(Attribute("On call", "choice"), tuple(on_call), tuple(on_call)))
    items = []
    for service, person in zip(asked_services, goals, strict=True):
        for c in columns:
            item = wanted(c, person, for_person(c.attribute.name, services[service], cases))
            items.append(item._replace(type="code") if item.type == "choice" and len(item.options) < 3 else item)
    facts = [f"the {services[s]} fails in the {slots[w][1]} shift" for s, w in zip(asked_services, chosen, strict=True)]
    goal = rng.choice(
        (
            "Prepare for the case that {w}. Enter {f} of whoever is on call then.",
            "Suppose that {w}: who is called? Fill in {f}.",
        )
    ).format(w=" and that ".join(facts), f=names(rng, [i.label for i in items], setting))
    sizes = f"{services_count}+{len(slots)}+{people_count}"
    shape = ("table" if table else "lines", sizes, cases, named)
    return assemble(rng, setting, title=title, blocks=blocks, items=items, goal=f"{goal}{tick(items)}", shape=shape)


def _oncall_small(rng: Random, setting: Setting, title: str) -> Draft:
    count = setting.targets(rng)
    winner = rng.randrange(3)
    columns = [draw_column(rng, a, 3, [winner]) for a in rng.sample(_DETAILS_SMALL, count)]
    items = [wanted(c, winner) for c in columns]
    if setting.level == "tiny":
        return stated(rng, setting, title, items)
    services, codes = rng.sample(_SHORT_SERVICES, 2), rng.sample("ABCDE", 3)
    at = rng.randrange(2)
    to_crew = [codes[winner], codes[winner]]
    to_crew[1 - at] = rng.choice([c for c in codes if c != codes[winner]])
    blocks = [Text(text=f"{s}: crew {c}") for s, c in zip(services, to_crew, strict=True)]
    blocks += [
        Text(text=f"crew {code}: {', '.join(f'{c.attribute.name} {c.values[i]}' for c in columns)}")
        for i, code in enumerate(codes)
    ]
    goal = f"The {services[at]} fails. Set {names(rng, [i.label for i in items], setting)} of its crew."
    return assemble(rng, setting, title=title, blocks=blocks, items=items, goal=goal, shape=(count,))
