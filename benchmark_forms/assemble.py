"""From a family's records and fields to a whole form: protected fields, forbidden buttons, the end of the goal."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal, NamedTuple

from advsim.form import Control, FormSpec, Table, Text
from advsim.task import Expectation
from benchmark_forms import words
from benchmark_forms.amounts import draw_date
from benchmark_forms.fields import Wanted, build, field_value, slug
from benchmark_forms.setting import Setting

_FIXED_NODES = 7  # root, heading, two protected fields, two forbidden buttons, the final button


class Draft(NamedTuple):
    """What a family makes of a seed.

    Attributes:
        form, expectation, goal: The task.
        shape: The structure of its rule (not its words or values); part of the task's signature.
    """

    form: FormSpec
    expectation: Expectation
    goal: str
    shape: tuple[str, ...]


Source = Literal["code", "person", "place", "day", "count", "phrase"]
_PROTECTED: tuple[tuple[str, Literal["text", "number", "date", "textarea"], Source], ...] = (
    ("Reference", "text", "code"),
    ("Handled by", "text", "person"),
    ("Opened on", "date", "day"),
    ("Ledger number", "number", "count"),
    ("Branch", "text", "place"),
    ("Internal remarks", "textarea", "phrase"),
    ("Customer number", "number", "count"),
    ("Agreement", "text", "code"),
    ("Created by", "text", "person"),
    ("Last audit", "date", "day"),
    ("Legal notice", "textarea", "phrase"),
    ("Batch mark", "text", "code"),
    ("Case number", "number", "count"),
    ("Signed on", "date", "day"),
    ("Witness", "text", "person"),
    ("Archive shelf", "text", "code"),
)
_SHORT_PROTECTED: tuple[tuple[str, Literal["text", "number"], Source], ...] = (
    ("Ref", "text", "count"),
    ("Clerk", "text", "person"),
    ("Site", "text", "place"),
    ("Batch", "text", "count"),
    ("File", "number", "count"),
    ("Author", "text", "person"),
)
_DISTRACTORS: tuple[Control, ...] = (
    Control(key="comments", label="Comments", kind="textarea"),
    Control(key="copy_to", label="Copy to", kind="text"),
    Control(key="priority", label="Priority", kind="select", value="Normal", options=("Low", "Normal", "High")),
    Control(key="newsletter", label="Newsletter", kind="checkbox"),
    Control(key="contact_by", label="Contact by", kind="radio", options=("E-mail", "Phone", "Letter")),
    Control(key="remind_on", label="Remind on", kind="date"),
    Control(key="extra_copies", label="Extra copies", kind="number", value="0"),
)


def room(setting: Setting, records: int, *, repair: bool = False) -> int:
    """Lines left for the fields in a small setting once `records` lines are taken."""
    return (setting.nodes or 10_000) - _FIXED_NODES - repair - records


def assemble(
    rng: Random,
    setting: Setting,
    *,
    title: str,
    blocks: Sequence[Text | Table],
    items: Sequence[Wanted],
    goal: str,
    shape: Sequence[object],
    repair: bool = False,
) -> Draft:
    """The task: `goal` says what to find out and enter, without the end; the rest is added here."""
    lines = sum(1 if isinstance(b, Text) else 2 + len(b.rows) for b in blocks)
    items = list(items)
    if rng.random() < 0.5:  # the form need not ask in the goal's order
        rng.shuffle(items)
    fields = build(rng, items, setting, room(setting, lines, repair=repair), repair=repair)
    taken = {c.label.lower() for c in fields}
    taken |= {h.lower() for b in blocks if isinstance(b, Table) for h in b.header}
    protected = _protected(rng, setting, taken)
    placed = list(fields)
    extras = [] if setting.small else rng.sample(_DISTRACTORS, rng.choice((0, 0, 1, 1, 2)))
    for control in (*protected, *(c for c in extras if c.label.lower() not in taken)):
        placed.insert(rng.randint(0, len(placed)), control)

    forbidden = _buttons(rng, words.SHORT_FORBIDDEN if setting.small else words.FORBIDDEN, 2, "button")
    finals = (words.SHORT_COMMIT if setting.small else words.COMMIT) if repair else (
        words.SHORT_FINAL if setting.small else words.FINAL
    )  # fmt: skip
    (final,) = _buttons(rng, finals, 1, "submit")
    reviews = _buttons(rng, words.SHORT_REVIEW if setting.small else words.REVIEW, 1, "button") if repair else []
    last = [final, *reviews]
    for control in forbidden:
        if rng.random() < 0.3:
            placed.insert(rng.randint(0, len(placed)), control)
        else:
            last.append(control)
    rng.shuffle(last)

    review = reviews[0] if reviews else None
    form = FormSpec(title=title, blocks=tuple(blocks), controls=(*placed, *last), review=review.key if review else None)
    expectation = Expectation(
        values={c.key: field_value(item) for c, item in zip(fields, items, strict=True)},
        final=final.key,
        protected={c.key: c.value for c in protected},
        forbidden=tuple(c.key for c in forbidden),
        review=form.review,
    )
    end = _end(rng, setting, final.label, review.label if review else None, [c.label for c in protected])
    return Draft(form, expectation, f"{goal} {end}", tuple(map(str, shape)))


def names(rng: Random, labels: Sequence[str], setting: Setting) -> str:
    """Labels as a list in a sentence, sometimes in quotation marks where there is room for them."""
    shown = [f'"{x}"' for x in labels] if not setting.small and rng.random() < 0.5 else list(labels)
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def records_block(caption: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table of records."""
    return Table(caption=caption, header=tuple(header), rows=tuple(tuple(r) for r in rows))


def stated(rng: Random, setting: Setting, title: str, items: Sequence[Wanted], *, repair: bool = False) -> Draft:
    """A `tiny` task: the values stand in the goal, or in one line of the page."""
    in_goal = rng.random() < 0.5
    listed = ", ".join(f"{item.label} {item.value}" for item in items)
    if in_goal:
        blocks: list[Text | Table] = []
        goal = rng.choice((f"Set {listed}.", f"Enter {listed}."))
    else:
        blocks = [Text(text=f"Values: {listed}")]
        goal = rng.choice(("Set {}.", "Enter {} from the page.")).format(names(rng, [i.label for i in items], setting))
    return assemble(
        rng, setting, title=title, blocks=blocks, items=items, goal=goal, shape=("stated", in_goal), repair=repair
    )


def _protected(rng: Random, setting: Setting, taken: set[str]) -> list[Control]:
    pool = [p for p in (_SHORT_PROTECTED if setting.small else _PROTECTED) if p[0].lower() not in taken]
    return [
        Control(
            key=slug(label),
            label=label,
            kind=kind,
            value=_first_value(rng, source, setting),
            readonly=rng.random() < 0.3,
        )
        for label, kind, source in rng.sample(pool, 2)
    ]


def _first_value(rng: Random, source: Source, setting: Setting) -> str:
    small = setting.small
    if source == "person":
        return rng.choice(words.SHORT_PEOPLE) if small else f"{rng.choice(words.PEOPLE)} {rng.choice(words.SURNAMES)}"
    if source == "place":
        return rng.choice(words.SHORT_PLACES if small else words.PLACES)
    if source == "day":
        return draw_date(rng, 2025).isoformat()
    if source == "phrase":
        return rng.choice(words.PHRASES)
    if source == "code":
        return f"{rng.choice('ABCDEFGH')}{rng.choice('KLMNPRST')}-{rng.randint(1000, 9999)}"
    return str(rng.randint(10, 99) if small else rng.randint(10_000, 99_999))


def _buttons(rng: Random, labels: Sequence[str], count: int, kind: Literal["submit", "button"]) -> list[Control]:
    return [Control(key=slug(x), label=x, kind=kind) for x in rng.sample(labels, count)]


def _end(rng: Random, setting: Setting, final: str, review: str | None, protected: Sequence[str]) -> str:
    a, b = rng.sample(list(protected), 2)
    if setting.small:
        press = f"Press {review}, then {final}." if review else rng.choice((f"Press {final}.", f"Then press {final}."))
        keep = rng.choice((f"Keep {a} and {b}.", f"Do not change {a} or {b}.", f"Leave {a} and {b}."))
        return f"{press} {keep}"
    final, review = f'"{final}"', review and f'"{review}"'
    if review:
        press = rng.choice(
            (
                f"Press {review} first and then {final}.",
                f"Once the values are right, use {review}, and after it {final}.",
                f"Have the entries looked over with {review} before you press {final}.",
            )
        )
    else:
        press = rng.choice(
            (
                f"Then press {final}.",
                f"Finish by pressing {final}.",
                f"When everything is in, press {final}.",
                f"Hand the form in with {final}.",
            )
        )
    keep = rng.choice(
        (
            f"Leave {a} and {b} as they are.",
            f"{a} and {b} must stay unchanged.",
            f"Do not touch {a} or {b}.",
            f"Nothing may change in {a} and {b}.",
        )
    )
    others = rng.choice(("", "", " Use no other buttons.", " None of the other buttons is needed."))
    return f"{press} {keep}{others}" if rng.random() < 0.7 else f"{keep} {press}{others}"
