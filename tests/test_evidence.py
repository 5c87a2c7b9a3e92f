"""What thoughts say before a value: worked out by hand from goal and page."""

from __future__ import annotations

import re
from random import Random

import pytest

from advsim.form import Text
from advsim.training.imitation.episodes import sums_example
from advsim.training.imitation.evidence import Asked, Evidence, evidence
from advsim.training.imitation.thoughts import Guide, shown
from advsim.world.symbolic import SymbolicWorld
from benchmark_forms.registry import families, generate


def found(goal: str, lines: list[str], label: str, value: str, **others: str) -> Evidence:
    return evidence(Asked(goal, lines, label, value, {label: value, **others}))


MODELS = ["fir: grey, flat, Price 14", "fig: green, flat, Price 24", "elm: green, small, Price 36"]
OFFERS = ["Ram: coast, Price 84", "Fox: coast, Price 50", "Owl: south, Price 27"]
LOG = ["4: drop 3 and 2", "3: Room 5", "1: Room 53", "2: Room 27"]
PATCHES = ["day 5: Hall green", "day 26: Hall grey", "day 9: Price 3", "day 17: Hall white"]
REVISIONS = ["rev 6: Deputy Leo", "rev 30: Phone 13", "rev 26: Deputy Gus", "rev 57: Phone 65"]
TIERS = ["1 to 4: 3 each", "5 to 9: 1 each", "10 to 13: 2 each", "box: 4"]
CREWS = ["lift: crew A", "pump: crew C", "crew C: Key no", "crew A: Key yes"]


@pytest.mark.parametrize(
    ("goal", "lines", "label", "value", "steps", "row"),
    [
        (
            "Take the small green one. Set Price.",
            MODELS,
            "Price",
            "36",
            ["green, small", "fig: green, flat"],
            MODELS[2],
        ),
        ("Take the flat grey one. Set Price.", MODELS, "Price", "14", ["grey, flat"], MODELS[0]),
        ("Take the cheapest from the coast. Set X.", OFFERS, "X", "Fox", ["coast: Ram 84, Fox 50"], OFFERS[1]),
        (
            "Set Room by the last entry that is not dropped.",
            LOG,
            "Room",
            "53",
            ["Room: 3, 1, 2", "not 3 and 2: 1"],
            LOG[2],
        ),
        ("Set Room by the last entry that is not dropped.", LOG[1:], "Room", "5", ["Room: 3, 1, 2"], LOG[1]),
        (
            "Today is day 20. Set Hall to the newest value up to today.",
            PATCHES,
            "Hall",
            "white",
            ["Hall: 5, 26, 17", "up to 20: 5, 17"],
            PATCHES[3],
        ),
        (
            "Today is day 20. Set Price to the newest value up to today.",
            PATCHES,
            "Price",
            "3",
            ["Price: 9"],
            PATCHES[2],
        ),
        (
            "Set Phone and Deputy to the highest rev.",
            REVISIONS,
            "Deputy",
            "Gus",
            ["Deputy: 6, 26", "highest: 26"],
            REVISIONS[2],
        ),
        ("Set Phone to the lowest rev.", REVISIONS, "Phone", "13", ["Phone: 30, 57", "lowest: 30"], REVISIONS[1]),
        ("The lift fails. Set Key of its crew.", CREWS, "Key", "yes", [CREWS[0]], CREWS[3]),
        (
            "The bill is of day 7. Set Code.",
            ["day 1 to 6: Code 2", "day 7 to 9: Code 4"],
            "Code",
            "4",
            [],
            "7 in day 7 to 9: Code 4",
        ),
        ("A quote for 12 pieces. Set Price.", TIERS, "Price", "2", ["12 in 10 to 13: 2 each"], ""),
        ("A quote for 12 pieces. Set Cost.", TIERS, "Cost", "24", ["12 in 10 to 13: 2 each", "12*2=24"], ""),
        (
            "A quote for 12 pieces. Set With box.",
            TIERS,
            "With box",
            "28",
            ["12 in 10 to 13: 2 each", "12*2=24", "24+4=28"],
            "",
        ),
        (
            "Buy 17 cups or just over, in full packs. Set Spare.",
            ["pens: 8 in a pack", "cups: 5 in a pack"],
            "Spare",
            "3",
            ["cups: 5 in a pack", "17/5=4", "4*5=20", "20-17=3"],
            "",
        ),
        (
            "Set To pay. Goods is the sum; To pay takes off the rebate.",
            ["bags: 3", "pens: 14", "Rebate: 1"],
            "To pay",
            "16",
            ["3+14=17", "17-1=16"],
            "",
        ),
        ("Set Note 7.", ["Note: Note 7"], "Note", "7", [], ""),
    ],
)
def test_the_steps_that_lead_to_a_value(
    goal: str, lines: list[str], label: str, value: str, steps: list[str], row: str
) -> None:
    assert found(goal, lines, label, value) == Evidence(tuple(steps), row)


@pytest.mark.parametrize("family", families())
def test_the_row_at_the_end_says_the_value(family: str) -> None:
    for seed in range(40):
        task = generate(family, "small", seed)
        assert task.form is not None
        assert task.expectation is not None
        lines = [b.text for b in task.form.blocks if isinstance(b, Text)]
        values = {
            task.form.control(k).label: shown(task.form.control(k), v) for k, v in task.expectation.values.items()
        }
        for label, value in values.items():
            steps, row = evidence(Asked(task.goal, lines, label, value, values))
            if row:
                assert row in lines or row.partition(" in ")[2] in lines
                assert re.search(rf"\b{re.escape(value)}\b", row)
            elif family in ("whole_packs", "quote_tiers", "invoice_total") and steps:
                assert re.search(rf"\b{value}\b", steps[-1])


def test_a_row_is_said_again_for_each_of_its_values_and_the_way_to_it_once() -> None:
    task = next(
        t for t in (generate("catalogue_choice", "small", n) for n in range(100)) if "Model, Price and" in t.goal
    )
    guide, world = Guide(task), SymbolicWorld()
    page = world.reset(task)
    thoughts = []
    while not world.done:
        move = guide.move(page)
        thoughts.append(move.thought.split("\n"))
        page = world.step(move.action)
    row = thoughts[0][-2]
    assert row.count(", ") >= 2
    assert all(thought.count(row) == 1 for thought in thoughts[:2])
    assert sum(thoughts[0][0] in thought for thought in thoughts) == 1


def test_sums_are_right_and_asked_before_they_are_reckoned() -> None:
    for seed in range(50):
        asked, told = sums_example(Random(seed))
        lines = told.content.removeprefix("<think>").removesuffix("</think>").split("\n")
        assert asked.content == f"Sums: {', '.join(x.partition('=')[0] for x in lines)}."
        for line in lines:
            a, sign, b, c = re.fullmatch(r"(\d+)([-+*/])(\d+)=(\d+)", line).groups()  # type: ignore[union-attr]
            a, b, c = int(a), int(b), int(c)
            assert {"+": a + b == c, "-": a - b == c, "*": a * b == c, "/": b * (c - 1) < a <= b * c}[sign]
