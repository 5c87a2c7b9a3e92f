"""Small tasks of our own: a few values, stated in the goal or in one line of the page."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from advsim.agents import curriculum
from advsim.form import Control, FormSpec, Text
from advsim.task import Expectation, Task
from benchmark_forms import words
from benchmark_forms.fields import slug

LABELS: Final = (
    *("Name", "Code", "Room", "Colour", "Size", "Count", "City", "Team", "Item", "Price", "Phone", "Desk", "Day"),
    *("Fee", "Floor", "Grade", "Model", "Place", "Note", "Seat", "Shelf", "Gate", "Total", "Weight", "Rate", "Zone"),
)
MORE_LABELS: Final = (
    *("Outcome", "Carrier", "Dock", "Door", "Key", "Lead", "Payer", "Paper", "Host", "Hall", "Seats", "Rent", "Street"),
    *("Away", "Cost", "Spare", "Goods", "Venue", "Supplier", "Days", "Deputy"),
)
KEPT: Final = ("Ref", "Clerk", "Site", "Batch", "File", "Owner", "Agent", "Branch", "Account", "Order")
BUTTONS: Final = (
    *words.SHORT_FORBIDDEN, *words.SHORT_REVIEW, "Refresh", "Continue", "Help", "Reset all", "Check in", "Accept",
)  # fmt: skip
TITLES: Final = {topic: (topic.capitalize(), f"{topic.capitalize()} form") for topic in curriculum.TOPICS}
_WORDS: Final = (
    *words.SHORT_PEOPLE, *words.PEOPLE, *words.SHORT_PLACES, *words.COLOURS, *words.SHORT_GOODS, *words.SHORT_SUPPLIES,
    *words.TEAMS,
)  # fmt: skip
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"


def value_of(rng: Random) -> str:
    """A value to copy; a third are strings of no meaning, so that copying and not guessing is learned."""
    kind = rng.random()
    if kind < 0.35:
        return rng.choice(_WORDS)
    if kind < 0.65:
        return str(rng.randint(1, 99) if rng.random() < 0.7 else rng.randint(100, 99_999))
    if kind < 0.75:
        return f"{rng.randint(1, 99)}.{rng.randint(0, 99):02d}"
    if kind < 0.82:
        return f"2026-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"
    if kind < 0.9:
        return f"{rng.choice('ABCDEFGHKLMNPRST')}-{rng.randint(100, 9999)}"
    return "".join(rng.choices(_LETTERS, k=rng.randint(2, 5)))


def plain_value(rng: Random) -> str:
    """A word or a small number."""
    return rng.choice(_WORDS) if rng.random() < 0.5 else str(rng.randint(1, 99))


def field_of(rng: Random, label: str, value: str, others: Sequence[str], weights: Sequence[float]) -> Control:
    """A text box, drop-down or radio group (by weight) in which `value` can be entered and is not there at first."""
    kind = rng.choices(("text", "select", "radio"), weights)[0]
    if kind == "text":
        return Control(key=slug(label), label=label, kind="text", value=rng.choice(("", others[0])))
    options = [value, *dict.fromkeys(o for o in others if o != value)]
    rng.shuffle(options)
    first = rng.choice([o for o in options if o != value]) if kind == "select" else ""
    return Control.model_validate(
        {"key": slug(label), "label": label, "kind": kind, "value": first, "options": tuple(options)}
    )


def micro_task(rng: Random, topic: str = "", plain: bool = False) -> Task:
    """One to three values stated in the goal or in a line of the page, on a page of few lines.

    Args:
        rng: Decides everything.
        topic: What its title says; drawn if empty.
        plain: Two values at most, only words and small numbers, and the protected fields always named.
    """
    topic = topic or rng.choice(curriculum.TOPICS)
    count = rng.choice((1, 1, 2) if plain else (1, 1, 2, 2, 3))
    labels = rng.sample(LABELS, count)
    draw = plain_value if plain else value_of
    values = [draw(rng) for _ in labels]
    fields = []
    for label, value in zip(labels, values, strict=True):
        others: list[str] = []
        while len(others) < 2:
            other = rng.choice(_WORDS) if not value[0].isdigit() else str(rng.randint(1, 999))
            if other != value and other not in others:
                others.append(other)
        fields.append(field_of(rng, label, value, others, (0.8, 0.2, 0.0) if plain else (0.7, 0.2, 0.1)))
    kept = [
        Control(key=slug(x), label=x, kind="text", value=draw(rng), readonly=rng.random() < 0.3)
        for x in rng.sample(KEPT, 2)
    ]
    final = rng.choice((*words.SHORT_FINAL, *words.SHORT_COMMIT))
    never = [Control(key=slug(x), label=x, kind="button") for x in rng.sample(BUTTONS, 2)]
    controls = [*fields, *kept]
    rng.shuffle(controls)
    buttons = [*never, Control(key=slug(final), label=final, kind="submit")]
    rng.shuffle(buttons)
    listed = ", ".join(
        rng.choice(("{} {}", "{} to {}") if i == 0 else ("{} {}",)).format(label, value)
        for i, (label, value) in enumerate(zip(labels, values, strict=True))
    )
    blocks: tuple[Text, ...] = ()
    if rng.random() < 0.6:
        goal = f"{rng.choice(('Set', 'Enter'))} {listed}."
    else:
        blocks = (Text(text=f"{rng.choice(('Values', 'Note', 'Request'))}: {listed.replace(' to ', ' ')}"),)
        goal = f"{rng.choice(('Set', 'Enter'))} {', '.join(labels)}{rng.choice(('', ' from the page'))}."
    end = rng.choice(("Press {}.", "Then press {}.")).format(final)
    keep = rng.choice((" Leave {} and {}." if plain else "", " Keep {} and {}.", " Leave {} and {}.")).format(
        *(c.label for c in kept)
    )
    form = FormSpec(title=rng.choice(TITLES.get(topic, (topic,))), blocks=blocks, controls=(*controls, *buttons))
    expectation = Expectation(
        values={c.key: v for c, v in zip(fields, values, strict=True)},
        final=slug(final),
        protected={c.key: c.value for c in kept},
        forbidden=tuple(c.key for c in never),
    )
    return Task(id="micro", goal=f"{goal} {end}{keep}", form=form, expectation=expectation, family="micro")
