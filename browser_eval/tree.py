"""From Chromium's accessibility data to a `Page`: a pure function of the CDP answer.

The rules are those of `docs/semantics.md`, written so that they also say something sensible about a page that nobody
here made: what carries no name of its own is lifted away, what is said once is not said twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from advsim.page import Node, Page, Props, Token, Value

AXNode = Mapping[str, Any]
"""One entry of `nodes` in the answer to `Accessibility.getFullAXTree`."""

DATE_ROLES = frozenset({"Date", "DateTime", "InputTime"})
# Fields: printed even without a name, and what lies inside them is their value, not further content.
_FIELDS = frozenset({"textbox", "searchbox", "spinbutton", "slider", "ColorWell", *DATE_ROLES})
# Controls whose text is their name; ARIA makes their children presentational.
_ATOMS = frozenset(
    "button checkbox radio switch option menuitem menuitemcheckbox menuitemradio tab treeitem "
    "image img progressbar meter DisclosureTriangle PopUpButton ToggleButton".split()
)
# Containers that matter even without a name.
_ALWAYS = frozenset({"combobox", "listbox", "radiogroup", "dialog", "alertdialog", "alert", "link", "table", "Iframe"})
# A single line when all that is below is text: "Hello <b>you</b>!" is one sentence.
_TEXT_BLOCKS = frozenset(
    "paragraph heading listitem cell gridcell columnheader rowheader status LabelText Legend caption "
    "blockquote term definition generic link note time log".split()
)
_INLINE = frozenset(
    "none StaticText strong emphasis code mark subscript superscript time insertion deletion "
    "Abbr LineBreak ListMarker InlineTextBox LayoutTableCell".split()
)
# Wrappers that are printed only when they listen to clicks.
_LIFTED = frozenset("generic paragraph listitem cell gridcell strong emphasis LabelText".split())
_SILENT = frozenset({"InlineTextBox", "LineBreak", "ListMarker", "MathMLMath"})
_ROWS = frozenset({"row"})
_CELLS = frozenset({"cell", "gridcell", "columnheader", "rowheader"})
_VALUE_ALWAYS = frozenset({"textbox", "searchbox", "spinbutton", "combobox", *DATE_ROLES})
_SELECTABLE = frozenset({"option", "tab", "treeitem", "gridcell", "row"})


def fold(text: str) -> str:
    """Runs of white space become one space; none at the ends."""
    return " ".join(text.split())


@dataclass(slots=True)
class _Line:
    """A printed line before it has its depth and bid."""

    role: str
    name: str
    props: Props = ()
    backend: int | None = None
    children: list[_Line] = field(default_factory=list)

    @property
    def is_text(self) -> bool:
        return self.role == "StaticText"


def readonly_candidates(nodes: Sequence[AXNode]) -> list[int]:
    """Backend ids of fields about whose `readonly` Chromium's tree is silent; the caller asks the DOM."""
    found = []
    for node in nodes:
        if not node.get("ignored") and _role(node) in {"spinbutton", *DATE_ROLES}:
            backend = node.get("backendDOMNodeId")
            if backend is not None:
                found.append(int(backend))
    return found


def build(
    nodes: Sequence[AXNode],
    bid_of: Callable[[int], int],
    readonly: frozenset[int] = frozenset(),
    clickable: frozenset[int] = frozenset(),
) -> Page:
    """Make the page.

    Args:
        nodes: All nodes of the main frame, the root first, as `Accessibility.getFullAXTree` gives them.
        bid_of: The bid of an element by its backend node id; asked in document order, so that the
            caller can number what it has not seen before.
        readonly: Backend ids known to be read-only fields (`readonly_candidates`).
        clickable: Backend ids of elements that listen to clicks; those that are no controls are printed too.

    Returns:
        The page as `docs/semantics.md` describes it.
    """
    return _Builder(nodes, readonly, clickable).page(bid_of)


class _Builder:
    def __init__(self, nodes: Sequence[AXNode], readonly: frozenset[int], clickable: frozenset[int]) -> None:
        self.by_id = {str(n["nodeId"]): n for n in nodes}
        self.root = nodes[0]
        self.readonly = readonly
        self.clickable = clickable
        self.labels = set(_labelling(nodes))

    def page(self, bid_of: Callable[[int], int]) -> Page:
        top: list[_Line] = []
        for child in self.children(self.root):
            top += self.lines(child)
        printed: list[Node] = []

        def emit(line: _Line, depth: int) -> None:
            bid = None if line.is_text or line.backend is None else bid_of(line.backend)
            printed.append(Node(depth, bid, line.role, line.name, line.props))
            for child in line.children:
                emit(child, depth + 1)

        for line in top:
            emit(line, 1)
        somewhere = any(n.flag("focused") for n in printed)
        props: Props = () if somewhere else (("focused", None),)
        return Page((Node(0, None, "RootWebArea", fold(_text(self.root, "name")), props), *printed))

    def children(self, node: AXNode) -> Iterator[AXNode]:
        for child in node.get("childIds", ()):
            found = self.by_id.get(str(child))
            if found is not None:
                yield found

    def lines(self, node: AXNode) -> list[_Line]:
        """What this node and all below it print."""
        role = _role(node)
        if node.get("ignored"):
            return self.below(node)
        if role in _LIFTED and _backend(node) in self.clickable:
            return [self.clickable_line(node)]
        if role in _SILENT:
            return []
        if role == "StaticText":
            text = fold(_text(node, "name"))
            return [_Line("StaticText", text)] if text else []
        if role == "table" or role == "grid":
            return self.table(node)
        backend = _backend(node)
        if backend in self.labels and role not in _FIELDS and role not in _ATOMS and role not in _ALWAYS:
            # Its text is some control's name already; what else stands in it (an input in its label) stays.
            return [line for line in self.below(node) if not line.is_text]
        if role in _FIELDS:
            return [self.line(node)]
        if role == "combobox" or role == "listbox":
            return [self.choice(node)]
        name = fold(_text(node, "name"))
        if role in _ATOMS:
            if role in ("image", "img") and not name:
                return []
            return [self.line(node, [c for c in self.below(node) if not c.is_text])]
        if role == "Iframe":
            return [self.line(node)]
        below = self.below(node)
        if role in _TEXT_BLOCKS and below and self.flat(node):
            below = [_Line("StaticText", fold(self.all_text(node)))]
        if not name and role not in _ALWAYS:
            return below
        if role in ("heading", "link") or (len(below) == 1 and below[0].is_text and below[0].name == name):
            # The name is the content.
            below = [c for c in below if not (c.is_text and c.name in name)]
        elif role in _CELLS or role in _ROWS or role in ("listitem", "generic", "none", "paragraph"):
            return below
        return [self.line(node, below)]

    def clickable_line(self, node: AXNode) -> _Line:
        """Something without a role that listens to clicks: its text is its name if it holds nothing else."""
        below = self.below(node)
        if all(line.is_text for line in below):
            name, below = " ".join(line.name for line in below), []
        else:
            name = ""
        props: Props = (*self.props(node), ("clickable", None))
        return _Line("generic", fold(_text(node, "name")) or name, props, _backend(node), below)

    def below(self, node: AXNode) -> list[_Line]:
        found: list[_Line] = []
        for child in self.children(node):
            found += self.lines(child)
        return found

    def flat(self, node: AXNode) -> bool:
        """Whether all below is text and inline wrappers of text."""
        return all(
            (child.get("ignored") or _role(child) in _INLINE)
            and _backend(child) not in self.labels
            and self.flat(child)
            for child in self.children(node)
            if _role(child) != "InlineTextBox"
        )

    def all_text(self, node: AXNode) -> str:
        role = _role(node)
        if role == "StaticText" and not node.get("ignored"):
            return _text(node, "name")
        if role == "LineBreak":
            return " "
        if role in _SILENT:
            return ""
        return "".join(self.all_text(child) for child in self.children(node))

    def line(self, node: AXNode, children: list[_Line] | None = None) -> _Line:
        return _Line(_role(node), fold(_text(node, "name")), self.props(node), _backend(node), children or [])

    def choice(self, node: AXNode) -> _Line:
        """A drop-down or list with its options; a chosen option of a disabled drop-down is told by its value."""
        line = self.line(node)
        line.children = [c for c in self.below(node) if not c.is_text]
        if _flag(node, "disabled"):
            # The tree is silent about the chosen option of a disabled drop-down.
            value = fold(_value(node))
            chosen = next((o for o in line.children if o.role == "option" and o.name == value), None)
            if chosen is not None and ("selected", None) not in chosen.props:
                chosen.props = (*chosen.props, ("selected", None))
        return line

    def table(self, node: AXNode) -> list[_Line]:
        rows: list[_Line] = []
        rest: list[_Line] = []

        def walk(at: AXNode) -> None:
            for child in self.children(at):
                role = _role(child)
                if role in _ROWS and not child.get("ignored"):
                    rows.append(self.row(child))
                elif child.get("ignored") or role in ("rowgroup", "none", "generic"):
                    walk(child)
                else:
                    rest.extend(self.lines(child))

        walk(node)
        name = fold(_text(node, "name"))
        return [_Line("table", name, self.props(node), _backend(node), rest + rows)]

    def row(self, node: AXNode) -> _Line:
        """`row 'a | b'` where all cells are text; else `row ''` with what its cells hold, in order, below it."""
        texts: list[str] = []
        lines: list[_Line] = []

        def walk(at: AXNode) -> None:
            for child in self.children(at):
                if _role(child) in _CELLS and not child.get("ignored"):
                    inside = self.below(child)
                    lines.extend(inside)
                    texts.append(fold(self.all_text(child)) if self.flat(child) else " ".join(c.name for c in inside))
                elif child.get("ignored"):
                    walk(child)

        walk(node)
        if all(line.is_text for line in lines):
            return _Line("row", " | ".join(texts), self.props(node), _backend(node))
        return _Line("row", "", self.props(node), _backend(node), lines)

    def props(self, node: AXNode) -> Props:
        role = _role(node)
        found: list[tuple[str, Value]] = []
        if self.has_focus(node):
            found.append(("focused", None))
        if _flag(node, "disabled"):
            found.append(("disabled", None))
        if _flag(node, "required"):
            found.append(("required", None))
        if role in _SELECTABLE and _flag(node, "selected"):
            found.append(("selected", None))
        # Of a disabled field Chromium does not say that it is read-only too.
        if _flag(node, "readonly") or (_backend(node) in self.readonly and not _flag(node, "disabled")):
            found.append(("readonly", True))
        if _flag(node, "multiline"):
            found.append(("multiline", True))
        if role == "combobox" and _prop(node, "editable"):
            found.append(("editable", None))
        if _flag(node, "multiselectable"):
            found.append(("multiselectable", True))
        if (expanded := _prop(node, "expanded")) is not None:
            found.append(("expanded", bool(expanded)))
        for key in ("checked", "pressed"):
            if (state := _prop(node, key)) is not None:
                found.append((key, Token("mixed") if state == "mixed" else state in ("true", True)))
        value = _value(node)
        if role in _VALUE_ALWAYS or (value and role in ("slider", "progressbar", "meter", "ColorWell")):
            found.append(("value", fold(value) if role == "combobox" and not _prop(node, "editable") else value))
        return tuple(found)

    def has_focus(self, node: AXNode) -> bool:
        if _flag(node, "focused"):
            return True
        # The parts of a date are not printed; the date is what has the focus.
        return _role(node) in DATE_ROLES and any(self.has_focus_within(c) for c in self.children(node))

    def has_focus_within(self, node: AXNode) -> bool:
        return _flag(node, "focused") or any(self.has_focus_within(c) for c in self.children(node))


def _role(node: AXNode) -> str:
    return str(node.get("role", {}).get("value", ""))


def _text(node: AXNode, key: str) -> str:
    value = node.get(key, {}).get("value", "")
    return value if isinstance(value, str) else str(value)


def _value(node: AXNode) -> str:
    # A number's own text: the tree's value is a float ("12.50" reads 12.5 there).
    if _role(node) in ("spinbutton", "slider"):
        text = _prop(node, "valuetext")
        if text or (text is not None and _role(node) == "spinbutton"):
            return str(text)
    return _text(node, "value")


def _backend(node: AXNode) -> int | None:
    backend = node.get("backendDOMNodeId")
    return None if backend is None else int(backend)


def _prop(node: AXNode, key: str) -> Any:
    for prop in node.get("properties", ()):
        if prop["name"] == key:
            return prop["value"].get("value")
    return None


def _flag(node: AXNode, key: str) -> bool:
    return _prop(node, key) is True


def _labelling(nodes: Sequence[AXNode]) -> Iterator[int]:
    """Backend ids of the elements whose text is the name of something else: labels, legends, captions."""
    for node in nodes:
        if node.get("ignored"):
            continue
        for prop in node.get("properties", ()):
            if prop["name"] == "labelledby":
                for related in prop["value"].get("relatedNodes", ()):
                    if "backendDOMNodeId" in related:
                        yield int(related["backendDOMNodeId"])
