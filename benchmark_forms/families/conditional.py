"""Conditional policy: facts of a case pick the rule, and the rule says what to enter."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from advsim.form import Table, Text
from benchmark_forms import words
from benchmark_forms.assemble import Draft, assemble, names, records_block, stated
from benchmark_forms.families.asking import asked, bands, case_count, output_count, rule_line, tick
from benchmark_forms.fields import Attribute, draw_column, wanted
from benchmark_forms.setting import Setting

_RETURNS = (
    Attribute("Outcome", "choice", ("refund", "store credit", "exchange", "repair", "no return")),
    Attribute("Fee", "money", low=1, high=30),
    Attribute("Desk", "choice", ("blue desk", "back office", "front counter", "warehouse", "service point")),
    Attribute("Prepaid label", "flag"),
    Attribute("Reply by", "date"),
    Attribute("Packing note", "phrase", words.PHRASES),
    Attribute("Shelf days", "int", low=2, high=60),
)
_RETURNS_SMALL = (
    Attribute("Outcome", "choice", ("refund", "swap", "credit", "repair", "none")),
    Attribute("Fee", "int", low=1, high=60),
    Attribute("Desk", "choice", ("red", "blue", "green", "white")),
    Attribute("Label", "flag"),
)


def returns_policy(rng: Random, setting: Setting) -> Draft:
    """A shop's returns: the goods' condition and the days since purchase pick the rule."""
    title = rng.choice(("Return desk", "Returns", "Return request"))
    if setting.level == "tiny":
        chosen = rng.sample(_RETURNS_SMALL, setting.targets(rng))
        columns = [draw_column(rng, a, 3) for a in chosen]
        return stated(rng, setting, title, [wanted(c, 0) for c in columns])
    states = ("sealed", "opened", "worn", "faulty", "scratched")
    if setting.small:
        return _returns_small(rng, setting, title, states)
    cases = case_count(rng, setting)
    member_rule = setting.hard and rng.random() < 0.6
    count = setting.records(rng)
    if member_rule:
        count = min(count, 8)
    kinds = rng.sample(states, rng.randint(2, 3) if count <= 6 else rng.randint(3, 4))
    spans = bands(rng, -(-count // len(kinds)) + rng.randint(0, 1), 14)
    cells = rng.sample([(kind, span) for kind in kinds for span in spans], count)
    chosen = rng.sample(_RETURNS, output_count(rng, setting, cases, 6))
    winners = rng.sample(range(count), cases)
    columns = [draw_column(rng, a, count, winners) for a in chosen]

    table = rng.random() < 0.5
    if table:
        rows = [(k, f"{a} to {b}", *(c.values[i] for c in columns)) for i, (k, (a, b)) in enumerate(cells)]
        header = ("Condition", "Days since purchase", *(a.name for a in chosen))
        blocks: list[Text | Table] = [records_block("Returns policy", header, rows)]
    else:
        blocks = [
            rule_line(f"{k.capitalize()} goods, {a} to {b} days after purchase", columns, i, short=False)
            for i, (k, (a, b)) in enumerate(cells)
        ]
    grace = rng.randint(3, 9)
    if member_rule:
        blocks.append(Text(text=f"For members of the club, {grace} days are taken off before the policy is read."))
    people = rng.sample(words.PEOPLE, cases)
    facts = []
    for person, winner in zip(people, winners, strict=True):
        kind, (low, high) = cells[winner]
        member = member_rule and rng.random() < 0.5
        days = rng.randint(low, high) + (grace if member else 0)
        item = rng.choice(words.GOODS)
        club = (", a club member," if member else ", not a club member,") if member_rule else ""
        facts.append(f"{person}{club} brings back {words.article(item)} bought {days} days ago; it is {kind}.")
    items = asked(columns, winners, people)
    ask = rng.choice(("Fill in {} as the policy says.", "By the returns policy, enter {}.", "Settle it: enter {}."))
    goal = f"{' '.join(facts)} {ask.format(names(rng, [i.label for i in items], setting))}{tick(items)}"
    shape = ("table" if table else "lines", count, len(kinds), len(spans), cases, member_rule)
    return assemble(rng, setting, title=title, blocks=blocks, items=items, goal=goal, shape=shape)


def _returns_small(rng: Random, setting: Setting, title: str, states: Sequence[str]) -> Draft:
    chosen = rng.sample(_RETURNS_SMALL, output_count(rng, setting, 1, 3))
    winner = rng.randrange(3)
    columns = [draw_column(rng, a, 3, [winner]) for a in chosen]
    by_days = rng.random() < 0.5
    item = rng.choice(words.SHORT_GOODS)
    if by_days:
        spans = bands(rng, 3, 12)
        rng.shuffle(spans)
        conditions = [f"{a} to {b} days" for a, b in spans]
        fact = f"The {item} is {rng.randint(*spans[winner])} days old."
    else:
        kinds = rng.sample(states, 3)
        conditions = kinds
        fact = f"The {item} is {kinds[winner]}."
    blocks = [rule_line(condition, columns, i, short=True) for i, condition in enumerate(conditions)]
    items = [wanted(c, winner) for c in columns]
    goal = f"{fact} Set {names(rng, [i.label for i in items], setting)}."
    shape = ("days" if by_days else "state", len(items))
    return assemble(rng, setting, title=title, blocks=blocks, items=items, goal=goal, shape=shape)


_SHIPPING = (
    Attribute("Carrier", "choice", ("Heron", "Swift", "Badger", "Osprey", "Marten")),
    Attribute("Price", "money", low=3, high=60),
    Attribute("Counter", "choice", ("counter A", "counter B", "night hatch", "loading dock", "parcel box")),
    Attribute("Insured", "flag"),
    Attribute("Collected on", "date"),
    Attribute("Days under way", "int", low=1, high=30),
    Attribute("Handling note", "phrase", words.PHRASES),
)
_SHIPPING_SMALL = (
    Attribute("Carrier", "choice", ("van", "bike", "post", "ship", "rail")),
    Attribute("Price", "int", low=2, high=60),
    Attribute("Dock", "int", low=1, high=20),
    Attribute("Insured", "flag"),
)
_ANY = "any"


def shipping_rule(rng: Random, setting: Setting) -> Draft:
    """A list of shipping rules in order: the first (or the last) that fits a parcel's zone and weight applies."""
    title = rng.choice(("Parcel desk", "Dispatch", "Shipping form"))
    if setting.small:
        return _shipping_small(rng, setting, title)
    cases = case_count(rng, setting)
    long_rule = setting.hard and rng.random() < 0.5
    first = not setting.hard or rng.random() < 0.5
    count = min(setting.records(rng), 9 - long_rule)
    winners = rng.sample(range(count), cases)
    columns = [draw_column(rng, a, count, winners) for a in rng.sample(_SHIPPING, output_count(rng, setting, cases, 6))]
    # The limits are dealt blindly, then weights under the deciding ones; zones keep the earlier rules from fitting,
    # so that neither a rule's place nor its limit tells which one decides.
    limits = rng.sample(range(6, 60), count)
    weights = [rng.randint(1, limits[w]) for w in winners]
    zones = rng.sample("ABCDEF", 4)
    case_zones = rng.sample(zones, cases)
    parcels = list(zip(winners, weights, case_zones, strict=True))
    rules = [(_zone(rng, setting, i, limits[i], zones, parcels, first=first), limits[i]) for i in range(count)]
    said = [(f"Zone {z}" if z != _ANY else "Any zone", limit) for z, limit in rules]
    table = rng.random() < 0.5
    blocks: list[Text | Table]
    if table:
        rows = [(z, str(limit), *(c.values[i] for c in columns)) for i, (z, limit) in enumerate(said)]
        blocks = [records_block("Shipping rules", ("Zone", "Up to kg", *(c.attribute.name for c in columns)), rows)]
    else:
        blocks = [rule_line(f"{z}, up to {kg} kg", columns, i, short=False) for i, (z, kg) in enumerate(said)]
    extra = rng.randint(2, 6)
    if long_rule:
        blocks.append(Text(text=f"A parcel longer than one metre counts {extra} kg more than it weighs."))
    people = rng.sample(words.PEOPLE, cases)
    facts = []
    for person, weight, zone in zip(people, weights, case_zones, strict=True):
        bulky = long_rule and weight > extra and rng.random() < 0.5
        shown = weight - extra if bulky else weight
        told = f"goes to zone {zone} and weighs {shown} kg"
        if long_rule:
            told = f"{told}; it is {'longer' if bulky else 'shorter'} than one metre"
        facts.append(f"The parcel for {person} {told}.")
    order = "first" if first else "last"
    rule = rng.choice(
        (f"Of the rules that fit, the {order} one on the page applies.", f"The {order} rule that fits counts.")
    )
    items = asked(columns, winners, people)
    ask = rng.choice(("Enter {}.", "Complete {}.", "Put in {}.")).format(names(rng, [i.label for i in items], setting))
    goal = f"{' '.join(facts)} {rule} {ask}{tick(items)}"
    shape = ("table" if table else "lines", count, order, cases, long_rule, any(z == _ANY for z, _ in rules))
    return assemble(rng, setting, title=title, blocks=blocks, items=items, goal=goal, shape=shape)


def _zone(
    rng: Random,
    setting: Setting,
    place: int,
    limit: int,
    zones: Sequence[str],
    cases: Sequence[tuple[int, int, str]],
    *,
    first: bool,
) -> str:
    """A zone for the rule at `place` with which it decides its own case and takes no other case from its rule."""
    banned: set[str] = set()
    for winner, weight, zone in cases:
        if place == winner:
            return zone
        read_earlier = place < winner if first else place > winner
        if read_earlier and weight <= limit:
            banned |= {zone, _ANY}
    # A rule that shares a case's zone but fits too late, or not the weight, is the better distractor.
    pool = [z for z in (*zones, *([_ANY] if setting.hard else []), *(z for _, _, z in cases)) if z not in banned]
    return rng.choice(pool)


def _shipping_small(rng: Random, setting: Setting, title: str) -> Draft:
    chosen = rng.sample(_SHIPPING_SMALL, setting.targets(rng))
    winner = rng.randrange(3)
    columns = [draw_column(rng, a, 3, [winner]) for a in chosen]
    items = [wanted(c, winner) for c in columns]
    if setting.level == "tiny":
        return stated(rng, setting, title, items)
    by_zone = rng.random() < 0.4
    if by_zone:
        zones = rng.sample("ABCDE", 3)
        conditions = [f"zone {z}" for z in zones]
        fact = f"The box goes to zone {zones[winner]}."
    else:
        spans = bands(rng, 3, 9)
        conditions = [f"{a} to {b} kg" for a, b in spans]
        fact = f"The box has {rng.randint(*spans[winner])} kg."
    blocks = [rule_line(condition, columns, i, short=True) for i, condition in enumerate(conditions)]
    goal = f"{fact} Set {names(rng, [i.label for i in items], setting)}."
    shape = ("zone" if by_zone else "weight", len(items))
    return assemble(rng, setting, title=title, blocks=blocks, items=items, goal=goal, shape=shape)
