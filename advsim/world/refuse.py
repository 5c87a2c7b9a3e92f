"""Refusals: what no world does, in the same words in every world.

The check reads only the page, so the symbolic world, a learned world and the browser cannot disagree about it
(`docs/semantics.md`). A refused action changes nothing and its line becomes `last_action_error`.
"""

from __future__ import annotations

import datetime
import re

from advsim.action import Action
from advsim.page import Node, Page

_NO_LAYOUT = frozenset({"mouse_move", "mouse_click", "mouse_down", "mouse_up"})
_OUTSIDE = frozenset({"goto", "go_back", "go_forward", "tab_new", "tab_close", "tab_focus"})
_ON_ELEMENT = frozenset({"click", "fill", "select_option", "hover"})
TEXT_ROLES = frozenset({"textbox", "searchbox", "spinbutton", "Date", "InputTime"})
_IN_PARTS = {"Date": "YYYY-MM-DD", "InputTime": "HH:MM"}
KEYS = frozenset(
    {"Tab", "Shift+Tab", "Enter", "Space", "Escape", "Backspace", "Delete", "Home", "End", "Control+a"}
    | {"ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"}
)
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?\Z")
_TIME = re.compile("(?:[01][0-9]|2[0-3]):[0-5][0-9]")
_EDITING = frozenset({"Backspace", "Delete"})
_BY_CHARACTER = _EDITING | {"ArrowLeft", "ArrowRight"}
# What no keyboard types and no field keeps as it is.
_UNTYPABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
# Left to right, and one code point for each character that a reader sees: there the caret's place is plain.
_PLAIN = re.compile(
    "[\n\x20-\x7e\xa0-\xac\xae-\u024f\u0370-\u0482\u048a-\u052f\u1e00-\u1eff\u2010-\u2027\u2030-\u205e"
    "\u20a0-\u20bf\u3001-\u3029\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3]*"
)


def refusal(page: Page, action: Action) -> str | None:
    """The line with which every world refuses this action on this page, or None when it is to be carried out."""
    name = action.name
    if name in _ON_ELEMENT:
        return _on_element(page, action)
    if name in _NO_LAYOUT:
        return f"{name}: refused, positions are not observed here; use an element's bid"
    if name in _OUTSIDE:
        return f"{name}: refused, the task stays on its own page and tab"
    if name == "keyboard_press":
        return _press(page, str(action.args["key"]))
    if name == "keyboard_type":
        return _type(page, str(action.args["text"]))
    return None


def focused(page: Page) -> Node | None:
    """The node that has the focus; None when it is the page itself or nothing."""
    for node in page.nodes:
        if node.bid is not None and node.flag("focused"):
            return node
    return None


def options_of(page: Page, bid: int) -> list[Node]:
    """The option nodes below the element with this bid, in page order."""
    found: list[Node] = []
    depth: int | None = None
    for node in page.nodes:
        if depth is not None:
            if node.depth <= depth:
                break
            if node.role == "option":
                found.append(node)
        elif node.bid == bid:
            depth = node.depth
    return found


def owner_of_option(page: Page, bid: int) -> Node | None:
    """The drop-down or list that holds the option with this bid."""
    stack: list[Node] = []
    for node in page.nodes:
        while stack and stack[-1].depth >= node.depth:
            stack.pop()
        if node.bid == bid:
            return next((n for n in reversed(stack) if n.role in ("combobox", "listbox")), None)
        stack.append(node)
    return None


def _on_element(page: Page, action: Action) -> str | None:
    name, bid = action.name, action.bid
    assert bid is not None
    node = page.by_bid(bid)
    if node is None:
        return f"{name}: no element [{bid}] on the page"
    if name == "hover":
        return None
    what = f"[{bid}] {node.role} {node.name!r}"
    holder = node
    if name == "click" and node.role == "option":
        holder = owner_of_option(page, bid) or node
    if node.flag("disabled") or holder.flag("disabled"):
        return f"{name}: {what} is disabled"
    if name == "click":
        if action.args["button"] != "left" or action.args["modifiers"]:
            return "click: refused, only the left button without modifiers stays on the page"
        return None
    if name == "fill":
        return _fill(node, what, str(action.args["text"]))
    return _select(page, node, what, action)


def _fill(node: Node, what: str, text: str) -> str | None:
    if node.role in ("combobox", "listbox") and not node.flag("editable"):
        return f"fill: {what} takes no typing; use select_option"
    if node.role not in TEXT_ROLES and not (node.role == "combobox" and node.flag("editable")):
        return f"fill: {what} is not a text field"
    if node.get("readonly") == "True":
        return f"fill: {what} is read-only"
    if node.role == "spinbutton" and text and (len(text) > 15 or not _NUMBER.match(text)):
        return f"fill: {what} takes a number of at most 15 characters, like 12 or 12.50"
    if node.role == "Date" and text and not _is_date(text):
        return f"fill: {what} takes a date written YYYY-MM-DD"
    if node.role == "InputTime" and text and not _TIME.fullmatch(text):
        return f"fill: {what} takes a time written HH:MM"
    if node.role == "textbox" and node.get("multiline") != "True" and ("\n" in text or "\r" in text):
        return f"fill: {what} takes one line"
    if _UNTYPABLE.search(text):
        return f"fill: {what} takes no control characters"
    return None


def _is_date(text: str) -> bool:
    try:
        return datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _select(page: Page, node: Node, what: str, action: Action) -> str | None:
    options = options_of(page, node.bid) if node.bid is not None else []
    if node.role not in ("combobox", "listbox") or not options:
        return f"select_option: {what} has no options to choose from"
    wanted = action.args["options"]
    if not isinstance(wanted, tuple) or len(wanted) != 1:
        return f"select_option: {what} takes exactly one option"
    chosen = next((o for o in options if o.name == wanted[0]), None)
    if chosen is None:
        return f"select_option: {what} has no option {wanted[0]!r}"
    if chosen.flag("disabled"):
        return f"select_option: option {wanted[0]!r} of {what} is disabled"
    return None


def _press(page: Page, key: str) -> str | None:
    if key not in KEYS and not (len(key) == 1 and key.isprintable()):
        return f"keyboard_press: {key!r} is not supported; use one character or one of {', '.join(sorted(KEYS))}"
    if key in ("Tab", "Shift+Tab"):
        return None
    node = focused(page)
    if node is None:
        return None
    what = f"[{node.bid}] {node.role} {node.name!r}"
    if node.role in _IN_PARTS:
        return f"keyboard_press: {what} takes no single keys; use fill with {_IN_PARTS[node.role]}"
    if node.role == "spinbutton":
        if key in ("ArrowUp", "ArrowDown"):
            return f"keyboard_press: {what} is not stepped; use fill"
        if key in _EDITING and not _whole(node):
            return f"keyboard_press: {what} holds no plain whole number; use fill"
    if node.get("multiline") == "True" and key in ("ArrowUp", "ArrowDown"):
        return f"keyboard_press: {what}: how its lines are laid out is not observed; use fill"
    if node.role in TEXT_ROLES and key in _BY_CHARACTER and not _PLAIN.fullmatch(node.get("value") or ""):
        return f"keyboard_press: {what} holds signs of several characters or from right to left; use fill"
    if len(key) == 1 or key == "Space":
        return _characters("keyboard_press", node, " " if key == "Space" else key)
    return None


def _type(page: Page, text: str) -> str | None:
    if _UNTYPABLE.search(text) or "\t" in text:
        return "keyboard_type: types no control characters; use keyboard_press for keys such as 'Tab'"
    node = focused(page)
    if node is None:
        return None
    what = f"[{node.bid}] {node.role} {node.name!r}"
    if node.role in _IN_PARTS:
        return f"keyboard_type: {what} takes no single keys; use fill with {_IN_PARTS[node.role]}"
    if ("\n" in text or "\r" in text) and node.get("multiline") != "True":
        return f"keyboard_type: {what} takes no line break; use keyboard_press('Enter')"
    return _characters("keyboard_type", node, text)


def _characters(name: str, node: Node, text: str) -> str | None:
    what = f"[{node.bid}] {node.role} {node.name!r}"
    if node.role in ("combobox", "listbox") and text != " ":
        return f"{name}: {what} takes no typing; use select_option"
    if node.role == "spinbutton" and node.get("readonly") != "True":
        value = node.get("value") or ""
        digits = text.isascii() and text.isdigit()
        if not digits or not _whole(node) or len(value) + len(text) > 15:
            return f"{name}: {what} takes digits only, 15 at most; use fill for other numbers"
    return None


def _whole(node: Node) -> bool:
    value = node.get("value") or ""
    return not value or (value.isascii() and value.isdigit())
