"""What the imitated executor writes before each action: where a value is found, then the value, in few words.

A model of a few million parameters cannot go from a goal to a row to a field to a value in one step. Written out, every
step copies something that stands near the last thing written: `<think>worn: Fee 14⏎Fee 14</think>⏎fill(6, '14')`.
Thoughts are made from the goal and the page's text alone, and the answer that an example has anyway.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from advsim.action import Action
from advsim.form import Control, FormSpec, Text
from advsim.page import Page
from advsim.task import Expectation, Task
from advsim.training.imitation.evidence import Asked, Evidence, evidence
from benchmark_forms.oracle import DONE, edit


class Move(NamedTuple):
    """An action and the thought before it (may be empty)."""

    thought: str
    action: Action

    @property
    def text(self) -> str:
        """The completion."""
        return f"<think>{self.thought}</think>\n{self.action.text}" if self.thought else self.action.text


def button(page: Page, label: str) -> int | None:
    """Bid of the first enabled button of this name."""
    for node in page.nodes:
        if node.role == "button" and node.name == label and not node.flag("disabled"):
            return node.bid
    return None


class Guide:
    """Does one task right, whatever was done before: values in the goal's order, then Review, then the final button.

    Steps that it has said already it does not say again, but the row at their end it does: each value is copied from
    near by.
    """

    def __init__(self, task: Task) -> None:
        """Raises ValueError if the task has no form or no expectation."""
        if task.form is None or task.expectation is None:
            raise ValueError(f"task {task.id!r} has no known answer to imitate")
        self.form: FormSpec = task.form
        self.expectation: Expectation = task.expectation
        self.goal = task.goal
        self.lines = [b.text for b in task.form.blocks if isinstance(b, Text)]
        asked = _asked(task.goal, [c for c in task.form.fields if c.key in task.expectation.values])
        self._order = [c.key for c in asked]
        self._said: set[str] = set()
        self._told: set[str] = set()
        self._before: tuple[frozenset[str], frozenset[str]] = frozenset(), frozenset()

    def expect(self, values: Sequence[tuple[str, str]]) -> None:
        """From now on these fields, by key, have to have these values, and nothing on the page says why."""
        self.expectation = self.expectation.model_copy(update={"values": {**self.expectation.values, **dict(values)}})
        self._told.update(key for key, _ in values)

    def forget(self) -> None:
        """The last move was not made, so what it said was not said."""
        self._said, self._told = set(self._before[0]), set(self._before[1])

    def move(self, page: Page, first: str = "") -> Move:
        """What to do on this page; the field of the key `first` before all others."""
        self._before = frozenset(self._said), frozenset(self._told)
        if page.nodes[0].name == "Received":
            return Move("", Action.of("send_msg_to_user", DONE))
        values, protected = self.expectation.values, self.expectation.protected
        lines: list[str] = []
        order = self._order + [k for k in values if k not in self._order]
        kept = [c.key for c in self.form.fields if c.key in protected and self._can_be_restored(c, protected[c.key])]
        for key in (*([first] if first in values else []), *kept, *order):
            control = self.form.control(key)
            wanted = values.get(key, protected.get(key, ""))
            action = edit(page, control, wanted)
            if key in values and (action is not None or (key not in self._said and key != first)):
                steps, row = self._evidence(key)
                lines += [line for line in steps if line not in self._told]
                self._told.update(steps)
                if row and row not in lines:
                    lines.append(row)
                self._said.add(key)
                lines.append(f"{control.label} {shown(control, wanted)}{_state(control, wanted, action)}")
            elif action is not None:
                lines.append(f"{control.label} {shown(control, wanted)}{_state(control, wanted, action)}")
            if action is not None:
                return Move("\n".join(lines), action)
        label = self.form.control(self.expectation.final).label
        bid = button(page, label)
        if bid is None and self.expectation.review is not None:
            label = self.form.control(self.expectation.review).label
            bid = button(page, label)
        if bid is None:
            return Move(label, Action.of("infeasible", "The button is disabled."))
        return Move("\n".join([*lines, label]), Action.of("click", bid))

    @staticmethod
    def _can_be_restored(control: Control, wanted: str) -> bool:
        """An unchosen radio group cannot be restored; everything else can be put right again."""
        return not control.readonly and not (control.kind == "radio" and not wanted)

    def _evidence(self, key: str) -> Evidence:
        """How the right value of a field is found; nothing where a notice told it."""
        if key in self._told:
            return Evidence()
        control, wanted = self.form.control(key), self.expectation.values[key]
        values = {
            self.form.control(k).label: shown(self.form.control(k), v) for k, v in self.expectation.values.items()
        }
        return evidence(Asked(self.goal, self.lines, control.label, shown(control, wanted), values))


def shown(control: Control, value: str) -> str:
    """A field's value as pages say it: a checkbox has yes and no."""
    return ("yes" if value == "on" else "no") if control.kind == "checkbox" else value


def _state(control: Control, wanted: str, action: Action | None) -> str:
    """How a checkbox stands, which decides whether to press it; nothing for other fields."""
    if control.kind != "checkbox":
        return ""
    ticked = (wanted == "on") == (action is None)
    return f", is {'yes' if ticked else 'no'}"


def _asked(goal: str, controls: Sequence[Control]) -> list[Control]:
    """The fields in the order in which the goal asks for them; those that it does not name come last."""
    begin = re.search(r"\b(?:Set|Enter)\b", goal)
    start = begin.start() if begin else 0

    def place(control: Control) -> int:
        found = re.compile(rf"\b{re.escape(control.label)}\b").search(goal, start)
        return found.start() if found else len(goal)

    return sorted(controls, key=place)
