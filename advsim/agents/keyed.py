"""Doing a task on a page that was not made here, by the keys that the browser tells of its controls (`Page.keys`)."""

from __future__ import annotations

from typing import Literal

from advsim.action import Action
from advsim.page import Node, Page
from advsim.task import Expectation
from advsim.world.refuse import TEXT_ROLES, options_of

TRIES = 2
"""How often a value is given to a control that does not show it afterwards: some show something else for good."""

_BOXES = frozenset({"checkbox", "switch", "menuitemcheckbox"})
Deed = tuple[Literal["edit", "press"], str]


class Deeds:
    """What was done, turn by turn: one page does not tell whether a button was pressed on it."""

    def __init__(self, log: tuple[tuple[int, Deed], ...] = ()) -> None:
        self._log = list(log)

    def add(self, turn: int, deed: Deed) -> None:
        """Note what is done at a turn."""
        self._log.append((turn, deed))

    def refused(self, turn: int) -> None:
        """The world did not do what was asked for at this turn: a button was not pressed then."""
        if self._log and self._log[-1][0] == turn and self._log[-1][1][0] == "press":
            self._log.pop()

    def edits(self, key: str) -> int:
        """How often this control was edited."""
        return sum(deed == ("edit", key) for _, deed in self._log)

    def pressed(self, key: str) -> bool:
        """Whether it was pressed since the last edit."""
        last = max((i for i, (_, (kind, _)) in enumerate(self._log) if kind == "edit"), default=-1)
        return any(deed == ("press", key) for _, deed in self._log[last + 1 :])

    def until(self, turns: int) -> Deeds:
        """Those of the first turns."""
        return Deeds(tuple(entry for entry in self._log if entry[0] <= turns))


def next_action(expectation: Expectation, page: Page, deeds: Deeds) -> tuple[Action, Deed | None]:
    """What to do on this page, and what to note about it: the edits, review, the final control, a message.

    Values of controls that the page does not show are left out.

    Raises:
        LookupError: The page does not show the final control, and it was not pressed.
    """
    if deeds.pressed(expectation.final):
        return Action.of("send_msg_to_user", "Done."), None
    for key, value in expectation.values.items():
        action = edit(page, key, value) if deeds.edits(key) < TRIES else None
        if action is not None:
            return action, ("edit", key)
    for button in (expectation.review, expectation.final):
        if button is not None and not deeds.pressed(button):
            nodes = by_key(page, button)
            if nodes:
                return Action.of("click", nodes[0].bid), ("press", button)
    raise LookupError(f"the page shows no control with the key {expectation.final}")


def by_key(page: Page, key: str) -> list[Node]:
    """The nodes of this key, in page order."""
    return [n for n in page.nodes if n.bid is not None and page.keys.get(n.bid) == key]


def edit(page: Page, key: str, value: str) -> Action | None:
    """The action that gives this control the value; None if it shows that it has it, or there is no way."""
    nodes = by_key(page, key)
    if not nodes:
        return None
    first = nodes[0]
    if first.role == "radio":
        return _pick(nodes, value, "checked")
    if first.role == "radiogroup":
        return _pick(_below(page, first), value, "checked")
    return give(page, first, value)


def give(page: Page, node: Node, value: str) -> Action | None:
    """`edit` for a control that is one node."""
    if node.role in _BOXES:
        return None if (node.get("checked") == "True") == (value == "on") else Action.of("click", node.bid)
    if node.role in TEXT_ROLES or (node.role == "combobox" and node.flag("editable")):
        return None if _shows(node, value) else Action.of("fill", node.bid, value)
    if node.role == "combobox":
        return None if node.get("value") == value else Action.of("select_option", node.bid, value)
    if node.role == "listbox" and node.bid is not None:
        return _pick(options_of(page, node.bid), value, "selected")
    return None


def _pick(choices: list[Node], name: str, state: str) -> Action | None:
    for node in choices:
        if node.name == name and node.bid is not None:
            chosen = node.flag(state) or node.get(state) == "True"
            return None if chosen else Action.of("click", node.bid)
    return None


def _below(page: Page, node: Node) -> list[Node]:
    found: list[Node] = []
    assert node.bid is not None
    at = page.index_of(node.bid)
    assert at is not None
    for other in page.nodes[at + 1 :]:
        if other.depth <= node.depth:
            break
        found.append(other)
    return found


def _shows(node: Node, value: str) -> bool:
    shown = node.get("value") or ""
    return shown == value or (bool(shown) and not shown.strip("•") and len(shown) == len(value))  # a password
