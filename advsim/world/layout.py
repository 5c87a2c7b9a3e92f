"""A form's lines: where everything stands on the page, which bid it has, and how it is drawn (`docs/semantics.md`)."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from advsim.form import Control, FormSpec, Text
from advsim.page import Node, Page, Props

ROLES = {
    "text": "textbox",
    "textarea": "textbox",
    "number": "spinbutton",
    "date": "Date",
    "select": "combobox",
    "checkbox": "checkbox",
}
NOTICE = -1  # control index of a notice's button


class Part(NamedTuple):
    """A thing that can be clicked or focused: a control, a radio, an option, a notice's button."""

    kind: str
    control: int  # index into the form's controls
    name: str  # its accessible name
    line: int  # index into the control lines (radios and options have their own)
    bid: int


class Layout(NamedTuple):
    """What never changes while a form is on the page."""

    form: FormSpec
    root: tuple[Node, Node]  # without and with the focus
    head: tuple[Node, ...]  # heading and blocks
    lines: tuple[Node, ...]  # the control lines of the first page
    parts: dict[int, Part]  # by bid
    of: tuple[tuple[Part, ...], ...]  # by control: the control itself, or its radios; a select, then its options
    submit: int
    review: int
    next_bid: int


def fold(text: str) -> str:
    """White space as a browser shows it: single spaces, none at the ends."""
    return " ".join(text.split())


def roots(title: str) -> tuple[Node, Node]:
    """The root line, without and with the focus."""
    name = fold(title)
    return Node(0, None, "RootWebArea", name), Node(0, None, "RootWebArea", name, (("focused", None),))


def _layout(form: FormSpec) -> Layout:
    bid = 1
    head = [Node(1, bid, "heading", fold(form.title))]
    for block in form.blocks:
        if isinstance(block, Text):
            head.append(Node(1, None, "StaticText", fold(block.text)))
            continue
        bid += 1
        head.append(Node(1, bid, "table", fold(block.caption)))
        for row in (block.header, *block.rows):
            bid += 1
            head.append(Node(2, bid, "row", " | ".join(map(fold, row))))
    lines: list[Node] = []
    parts: dict[int, Part] = {}
    of: list[tuple[Part, ...]] = []

    def part(kind: str, control: int, name: str) -> Part:
        nonlocal bid
        bid += 1
        made = parts[bid] = Part(kind, control, fold(name), len(lines), bid)
        lines.append(Node(0, bid, "", ""))  # drawn below, when everything has its number
        return made

    for i, control in enumerate(form.controls):
        if control.kind == "radio":
            bid += 1
            lines.append(Node(1, bid, "radiogroup", fold(control.label)))
            of.append(tuple(part("radio", i, option) for option in control.options))
        else:
            own = part(control.kind, i, control.label)
            of.append((own, *(part("option", i, option) for option in control.options)))
    for own_parts in of:
        for p in own_parts:
            control = form.controls[p.control]
            lines[p.line] = draw(form, p, control.value, False, first_disabled(form, control))
    keys = [c.key for c in form.controls]
    return Layout(
        form=form,
        root=roots(form.title),
        head=tuple(head),
        lines=tuple(lines),
        parts=parts,
        of=tuple(of),
        submit=keys.index(form.submit.key),
        review=keys.index(form.review) if form.review else NOTICE,
        next_bid=bid + 1,
    )


class _Same:
    """A form compared by identity, so that the cache below need not hash a whole form at every reset."""

    __slots__ = ("form",)

    def __init__(self, form: FormSpec) -> None:
        self.form = form

    def __hash__(self) -> int:
        return id(self.form)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.form is other.form


@lru_cache(maxsize=1024)
def _cached(form: _Same) -> Layout:
    return _layout(form.form)


def layout_of(form: FormSpec) -> Layout:
    """The form's layout, kept for forms met before."""
    return _cached(_Same(form))


def first_disabled(form: FormSpec, control: Control) -> bool:
    """Whether a control is disabled on the first page: as stated, or while a commit waits for its review."""
    return control.disabled or (form.review is not None and control.kind == "submit")


def draw(form: FormSpec, part: Part, value: str, focused: bool, disabled: bool) -> Node:
    """The line of a part whose control has this value."""
    kind = part.kind
    props: Props = (("focused", None),) if focused else ()
    if disabled:
        props = (*props, ("disabled", None))
    if kind == "option":
        if value == part.name:
            props = (*props, ("selected", None))
        return Node(2, part.bid, "option", part.name, props)
    if kind == "radio":
        return Node(2, part.bid, "radio", part.name, (*props, ("checked", value == part.name)))
    role = ROLES.get(kind)
    if role is None:
        return Node(1, part.bid, "button", part.name, props)
    if kind == "checkbox":
        return Node(1, part.bid, role, part.name, (*props, ("checked", value == "on")))
    if kind == "select":
        return Node(1, part.bid, role, part.name, (*props, ("expanded", False), ("value", value)))
    if form.controls[part.control].readonly and not disabled:
        props = (*props, ("readonly", True))
    if kind == "textarea":
        props = (*props, ("multiline", True))
    return Node(1, part.bid, role, part.name, (*props, ("value", value)))


def first_page(form: FormSpec) -> Page:
    """The page of a form before anything was done to it."""
    layout = layout_of(form)
    return Page((layout.root[1], *layout.head, *layout.lines))
