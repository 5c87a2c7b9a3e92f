"""The curriculum's prompt and the task that is read from its completion.

A proposal is a goal and a form, one line an element, in page order; quoted texts as on a page (`advsim.page.quote`):

    goal: Book the room for Ann Lee on the day that the note says.
    title: Room booking
    text: The room is free on 2026-03-12.
    table: Rooms | Room | Seats
    row: North | 12
    set: text 'Name' = '' -> 'Ann Lee'
    set: select 'Day' = '2026-03-10' -> '2026-03-12' of '2026-03-10' '2026-03-11' '2026-03-12'
    keep: readonly text 'Account' = 'AC-7'
    keep: checkbox 'Newsletter' = ''
    never: reset 'Clear'
    never: button 'Archive'
    final: 'Book'

`set` is a field with its first and its right value, `keep` one that must not change, `field` one that does not matter;
`never` is a button that must not be pressed, `button` one that does not matter, `final` the submit button, `review` a
plain button to be pressed before it. The answer is known because every right value must stand word for word in the
goal or in the page's text.
"""

from __future__ import annotations

import datetime
import random
import re
from collections.abc import Container
from dataclasses import dataclass, field
from typing import Final, get_args

from pydantic import ValidationError

from advsim.agents.proposal import ProposalError, keyed_lines, one_line
from advsim.form import BUTTON_KINDS, FIELD_KINDS, Control, FormSpec, Table, Text
from advsim.page import quote, scan_quoted
from advsim.task import Expectation, Strata, Task

KEYS: Final = (
    *("goal", "title", "text", "table", "row"),
    *("set", "keep", "field"),
    *("never", "button", "review", "final"),
)
PROTECTED: Final = 2
FORBIDDEN: Final = 2
MAX_LINES: Final = 60
MAX_CHARACTERS: Final = 8000

# Subjects that the prompt asks for, so that a round's proposals differ even when the policy is sure of itself.
TOPICS: Final = (
    "order", "booking", "invoice", "delivery", "returns", "payroll", "library", "clinic", "garage", "school",
    "travel", "insurance", "warehouse", "energy", "club", "hotel", "repair", "claims", "grants", "support",
)  # fmt: skip
STRATA: Final[tuple[str, ...]] = get_args(Strata)

_RULES: Final = """\
You write practice tasks for a web agent: a goal in a user's words and a page with one form. Write one task in the \
format of this example, one element a line, in page order, and nothing else:

goal: Book the room for Ann Lee on the day that the note says.
title: Room booking
text: The room is free on 2026-03-12.
table: Rooms | Room | Seats
row: North | 12
set: text 'Name' = '' -> 'Ann Lee'
set: select 'Day' = '2026-03-10' -> '2026-03-12' of '2026-03-10' '2026-03-11' '2026-03-12'
keep: text 'Account' = 'AC-7'
keep: checkbox 'Newsletter' = ''
never: reset 'Clear'
never: button 'Archive'
final: 'Book'

`set` is a field with its first value and, after ->, the right one; `keep` one that must not change; `field` one that \
does not matter. Kinds: {kinds}; a checkbox holds 'on' or ''; select and radio list their options after `of`. `never` \
is a button ({buttons}) that must not be pressed; `final` the submit button; `review: 'Label'` a button that has to be \
pressed before it. Needed: one goal, one title, at least one set, exactly {keep} keep, exactly {never} never, one \
final. Every right value must differ from the first one and stand word for word in the goal or in a text or table (the \
agent has to find it there by reading); labels must be unique. Aim at tasks that the agent solves about half of the \
time.

"""


@dataclass(frozen=True, slots=True)
class Hint:
    """What a prompt asks a proposal to be about.

    Attributes:
        topic: One of `TOPICS`, or a word of one's own.
        stratum: One of the benchmark's strata, or "" to leave it open.
    """

    topic: str
    stratum: str = ""


def hint(seed: int) -> Hint:
    """A hint drawn evenly from `TOPICS` and the strata; the same for the same seed."""
    rng = random.Random(f"curriculum/{seed}")
    return Hint(rng.choice(TOPICS), rng.choice(STRATA))


def prompt(round_index: int, wanted: Hint, verbose: bool = False) -> str:
    """The user message that asks for a proposal.

    Args:
        round_index: The round of stage 1, from 1.
        wanted: What it is to be about; see `hint`.
        verbose: Explain the format in words, for a model that was not trained on it.
    """
    rules = ""
    if verbose:
        kinds, buttons = ", ".join(FIELD_KINDS), " or ".join(k for k in BUTTON_KINDS if k != "submit")
        rules = _RULES.format(kinds=kinds, buttons=buttons, keep=PROTECTED, never=FORBIDDEN)
    kind = f" Kind: {wanted.stratum}." if wanted.stratum else ""
    return f"{rules}Propose\nRound: {round_index}. Topic: {wanted.topic}.{kind}"


# --- writing -----------------------------------------------------------------------------------------------------


def format_proposal(goal: str, form: FormSpec, expectation: Expectation) -> str:
    """The proposal that `parse` reads as this task; up to keys (which become slugs) and runs of white space.

    Raises:
        ValueError: A cell holds `|`, which the format has no way to write.
    """
    lines = [f"goal: {one_line(goal)}", f"title: {one_line(form.title)}"]
    for block in form.blocks:
        if isinstance(block, Text):
            lines.append(f"text: {one_line(block.text)}")
            continue
        lines.append(f"table: {_cells((block.caption, *block.header))}")
        lines += [f"row: {_cells(row)}" for row in block.rows]
    for control in form.controls:
        label = quote(control.label)
        if control.is_field:
            lines.append(_field_line(control, label, expectation))
        elif control.key == expectation.final:
            lines.append(f"final: {label}")
        elif control.key == form.review:
            lines.append(f"review: {label}")
        else:
            word = "never" if control.key in expectation.forbidden else "button"
            lines.append(f"{word}: {'disabled ' if control.disabled else ''}{control.kind} {label}")
    return "\n".join(lines)


def _cells(cells: tuple[str, ...]) -> str:
    if any("|" in cell for cell in cells):
        raise ValueError("expected table cells without '|', which separates cells in a proposal")
    return " | ".join(one_line(cell) for cell in cells)


def _field_line(control: Control, label: str, expectation: Expectation) -> str:
    flags = ("readonly " if control.readonly else "") + ("disabled " if control.disabled else "")
    options = " of " + " ".join(map(quote, control.options)) if control.options else ""
    first = f"{flags}{control.kind} {label} = {quote(control.value)}"
    if control.key in expectation.values:
        return f"set: {first} -> {quote(expectation.values[control.key])}{options}"
    word = "keep" if control.key in expectation.protected else "field"
    return f"{word}: {first}{options}"


# --- reading -----------------------------------------------------------------------------------------------------


class _Reject(Exception):
    """Why a completion is no proposal; inside this module only, becomes a `ProposalError`."""


@dataclass(slots=True)
class _Draft:
    """A proposal while its lines are read."""

    goal: str = ""
    title: str = ""
    blocks: list[Text | Table] = field(default_factory=list)
    controls: list[Control] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    protected: dict[str, str] = field(default_factory=dict)
    forbidden: list[str] = field(default_factory=list)
    final: str = ""
    review: str | None = None


def parse(completion: str, excluded: Container[str] = frozenset()) -> Task | ProposalError:
    """The task in a completion, or why there is none. Total.

    Args:
        completion: What the curriculum wrote.
        excluded: Hashes (`problem_hash`) of problems that must not be proposed: the benchmarks' instances.
    """
    lines = keyed_lines(completion, "goal", KEYS)
    if isinstance(lines, ProposalError):
        return lines
    try:
        task = _task(lines)
    except _Reject as reject:
        return ProposalError(str(reject))
    except ValidationError as invalid:
        first = invalid.errors()[0]
        return ProposalError(one_line(f"{'.'.join(map(str, first['loc']))} {first['msg']}".strip()))
    if problem_hash(task) in excluded:
        return ProposalError("expected a new task, got one of a benchmark")
    return task


def problem_hash(task: Task) -> str:
    """SHA-256 (hex) of goal, page and expectation alone: equal for the same problem under any name and family."""
    bare = Task(
        id="-", goal=one_line(task.goal), form=task.form, page=task.page, html=task.html, expectation=task.expectation
    )
    return bare.content_hash


def _task(lines: list[tuple[str, str]]) -> Task:
    size = sum(len(value) for _, value in lines)
    if len(lines) > MAX_LINES or size > MAX_CHARACTERS:
        raise _Reject(
            f"expected at most {MAX_LINES} lines of {MAX_CHARACTERS} characters together, got {len(lines)} of {size}"
        )
    draft = _Draft()
    for key, value in lines:
        _read(draft, key, value)
    _check_counts(draft)
    form = FormSpec(title=draft.title, blocks=tuple(draft.blocks), controls=tuple(draft.controls), review=draft.review)
    _check_answers(draft, form)
    expectation = Expectation(
        values=draft.values,
        final=draft.final,
        protected=draft.protected,
        forbidden=tuple(draft.forbidden),
        review=draft.review,
    )
    task = Task(id="-", goal=draft.goal, form=form, expectation=expectation, family="proposal", split="train")
    return task.model_copy(update={"id": f"proposal/{task.content_hash[:16]}"})


def _read(draft: _Draft, key: str, value: str) -> None:
    """Adds one line to the draft."""
    if key in ("goal", "title"):
        if getattr(draft, key):
            raise _Reject(f"expected one {key}, got another")
        if not value:
            raise _Reject(f"expected a text after '{key}:', got nothing")
        setattr(draft, key, one_line(value))
    elif key == "text":
        draft.blocks.append(Text(text=one_line(value)))
    elif key == "table":
        caption, *header = _split_cells(value)
        draft.blocks.append(Table(caption=caption, header=tuple(header), rows=()))
    elif key == "row":
        table = draft.blocks[-1] if draft.blocks else None
        if not isinstance(table, Table):
            raise _Reject("expected a row under a table, got one elsewhere")
        draft.blocks[-1] = Table(
            caption=table.caption, header=table.header, rows=(*table.rows, tuple(_split_cells(value)))
        )
    elif key in ("set", "keep", "field"):
        _read_field(draft, key, value)
    else:
        _read_button(draft, key, value)


def _split_cells(value: str) -> list[str]:
    return [one_line(cell) for cell in value.strip("|").split("|")]


def _key(draft: _Draft, label: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "_", label.lower()).strip("_")
    stem = slug if slug[:1].isalpha() else f"c_{slug}".rstrip("_")
    taken = {control.key for control in draft.controls}
    return next(k for k in (stem, *(f"{stem}_{n}" for n in range(2, MAX_LINES + 3))) if k not in taken)


_WORD: Final = re.compile(r"\s*([a-z]++)\s*+")


def _word(text: str, position: int) -> tuple[str, int]:
    match = _WORD.match(text, position)
    return (match[1], match.end()) if match else ("", position)


def _quoted(text: str, position: int, what: str) -> tuple[str, int]:
    while text[position : position + 1] in (" ", ",", "\t"):
        position += 1
    read = scan_quoted(text, position) if text[position : position + 1] in ("'", '"') else None
    if read is None:
        raise _Reject(f"expected {what} in quotes, got {text[position : position + 40]!r}")
    return read


def _mark(text: str, position: int, mark: str) -> int:
    rest = text[position:]
    if not rest.lstrip().startswith(mark):
        raise _Reject(f"expected {mark!r}, got {rest[:40]!r}")
    return position + rest.index(mark) + len(mark)


def _read_field(draft: _Draft, role: str, text: str) -> None:
    """Reads `[readonly|disabled] kind 'Label' = 'first' [-> 'right'] [of 'option' …]`."""
    flags: set[str] = set()
    kind, position = _word(text, 0)
    while kind in ("readonly", "disabled"):
        flags.add(kind)
        kind, position = _word(text, position)
    if kind not in FIELD_KINDS:
        raise _Reject(f"expected a kind of field ({', '.join(FIELD_KINDS)}), got {kind[:20]!r}")
    label, position = _quoted(text, position, "a label")
    first, position = _quoted(text, _mark(text, position, "="), "a first value")
    right: str | None = None
    if role == "set":
        right, position = _quoted(text, _mark(text, position, "->"), "a right value")
    options: list[str] = []
    if text[position:].strip():
        position = _mark(text, position, "of")
        while text[position:].strip():
            option, position = _quoted(text, position, "an option")
            options.append(option)
    if any(not one_line(name) or one_line(name) != name for name in (label, *options)):
        raise _Reject("expected labels and options without outer or double white space")
    control = Control.model_validate(
        {"key": _key(draft, label), "label": label, "kind": kind, "value": first, "options": tuple(options)}
        | dict.fromkeys(flags, True)
    )
    _check_value(control, first)
    draft.controls.append(control)
    if right is not None:
        if flags:
            raise _Reject(f"expected a field that can be changed after 'set:', got a {' '.join(flags)} one")
        if right == first:
            raise _Reject(f"expected a right value of {label[:40]!r} that differs from the first, got the same")
        _check_value(control, right)
        draft.values[control.key] = right
    elif role == "keep":
        draft.protected[control.key] = first


def _read_button(draft: _Draft, role: str, text: str) -> None:
    """Reads `[disabled] [kind] 'Label'`; the kind is `submit` for `final`, and `button` where it is left out."""
    word, position = _word(text, 0)
    disabled = word == "disabled"
    if disabled:
        word, position = _word(text, position)
    kind = "submit" if role == "final" else word or "button"
    if (word and word != kind) or kind not in BUTTON_KINDS or (kind == "submit") != (role == "final"):
        raise _Reject(f"expected 'button' or 'reset' and a label after '{role}:', got {text[:40]!r}")
    if disabled and role in ("final", "review"):
        raise _Reject(f"expected a {role} button that can be pressed, got a disabled one")
    label, position = _quoted(text, position, "a label")
    if text[position:].strip() or one_line(label) != label:
        raise _Reject(f"expected nothing after the label, got {text[position:][:40]!r}")
    key = _key(draft, label)
    draft.controls.append(Control.model_validate({"key": key, "label": label, "kind": kind, "disabled": disabled}))
    if role == "never":
        draft.forbidden.append(key)
    elif role == "final":
        if draft.final:
            raise _Reject("expected one final button, got another")
        draft.final = key
    elif role == "review":
        if draft.review:
            raise _Reject("expected at most one review button, got another")
        draft.review = key


# --- checks ------------------------------------------------------------------------------------------------------

_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?\Z")


def _check_value(control: Control, value: str) -> None:
    """Whether a user could give the field this value (`docs/semantics.md`), so that a right answer can be entered."""
    if control.kind == "number":
        good = value == "" or (len(value) <= 15 and _NUMBER.match(value) is not None)
    elif control.kind == "date":
        good = value == "" or _is_date(value)
    elif control.kind in ("select", "radio"):
        good = value in control.options or (control.kind == "radio" and value == "")
    elif control.kind == "checkbox":
        good = value in ("", "on")
    else:
        good = control.kind == "textarea" or not ("\n" in value or "\r" in value)
    if not good:
        raise _Reject(f"expected a value that {control.kind} {control.label[:40]!r} can hold, got {value[:40]!r}")


def _is_date(value: str) -> bool:
    try:
        return datetime.date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def _check_counts(draft: _Draft) -> None:
    for what, count, wanted in (
        ("title", bool(draft.title), 1),
        ("final", bool(draft.final), 1),
        ("keep", len(draft.protected), PROTECTED),
        ("never", len(draft.forbidden), FORBIDDEN),
    ):
        if count != wanted:
            raise _Reject(f"expected {wanted} '{what}:', got {int(count)}")
    if not draft.values:
        raise _Reject("expected at least one 'set:', got none")


def _check_answers(draft: _Draft, form: FormSpec) -> None:
    """Whether each right value (for a checkbox its label) stands in the goal, a text or a table, to be read off."""
    parts = [draft.goal]
    for block in form.blocks:
        if isinstance(block, Text):
            parts.append(block.text)
        else:
            parts += [block.caption, *block.header, *(cell for row in block.rows for cell in row)]
    seen = "\n".join(parts)
    for key, value in draft.values.items():
        control = form.control(key)
        if control.kind == "radio" and value == "":
            raise _Reject(f"expected a choice for radio {control.label[:40]!r}, got none (a choice cannot be undone)")
        wanted = control.label if control.kind == "checkbox" else one_line(value)
        if not wanted or re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", seen) is None:
            raise _Reject(f"expected {wanted[:60]!r} word for word in the goal, a text or a table, got it nowhere")
