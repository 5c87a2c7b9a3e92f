"""What the imitated executor writes before each action: where a value is found, then the value, in few words.

A model of a few million parameters cannot go from a goal to a row to a field to a value in one step. Written out, every
step copies something that stands near the last thing written: `<think>worn: Fee 14⏎Fee 14</think>⏎fill(6, '14')`.
Thoughts are made from the goal and the page's text alone, and the answer that an example has anyway.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from advsim.action import Action
from advsim.form import Control, FormSpec, Text
from advsim.page import Page
from advsim.task import Expectation, Task
from benchmark_forms.oracle import DONE, edit

_RANGE: Final = re.compile(r"\d+ to \d+")
_NUMBER: Final = re.compile(r"\d+")


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

    It keeps what it has said already, so as not to say it again.
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
                lines += [line for line in self._evidence(key) if line not in self._told]
                self._told.update(lines)
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

    def _evidence(self, key: str) -> list[str]:
        """The lines that lead to the right value of a field, shortest first thing first; none where it is stated."""
        control, wanted = self.form.control(key), self.expectation.values[key]
        if key in self._told:
            return []
        if sums := self._arithmetic(control, wanted):
            return sums
        line = self._line(control, shown(control, wanted))
        if line is None or len(self.lines) == 1:
            return []
        condition, _, rest = line.partition(": ")
        found = [line]
        numbers = _NUMBER.findall(self.goal)
        if any(_RANGE.search(other) for other in self.lines) and numbers:
            found = [f"{numbers[0]} in {line}"]
        if re.search(r"\b(?:highest|lowest|newest|last entry)\b", self.goal):
            # Each field has rows of its own, or may have: which field is meant decides which row.
            found = [*[x for x in self.lines if ": drop " in x], f"{control.label} in {line}"]
        for other in self.lines:  # the row that names this row
            asked, _, named = other.partition(": ")
            if named == condition and rest and re.search(rf"\b{re.escape(asked)}\b", self.goal):
                found = [other, *found]
        return found

    def _line(self, control: Control, value: str) -> str | None:
        """The page's line that says this value: of those that do, the one that says most of the other values."""
        if by := re.search(rf"\b{re.escape(control.label)} by (\w+)", self.goal):
            return next((x for x in self.lines if x.startswith(f"{by[1]}: ")), None)
        best, most = None, 0.0
        for line in self.lines:
            items = re.split(r": |, ", line)
            if f"{control.label} {value}" not in items and items[0] != value:
                continue
            score = 1.0 + sum(f"{c.label} {shown(c, v)}" in items for c, v in self._values())
            score += any(re.search(rf"\b{re.escape(x)}\b", self.goal) is not None for x in items) * 0.5
            if score > most:
                best, most = line, score
        return best

    def _values(self) -> list[tuple[Control, str]]:
        return [(self.form.control(k), v) for k, v in self.expectation.values.items()]

    def _arithmetic(self, control: Control, wanted: str) -> list[str]:
        """The sums of the families and drills whose values are reckoned; nothing for any other field."""
        label, values = control.label, {c.label: v for c, v in self._values()}
        if match := re.search(r"Buy (\d+) (\w+) or", self.goal):
            row = next(x for x in self.lines if x.startswith(f"{match[2]}: "))
            size, need = int(_NUMBER.findall(row)[0]), int(match[1])
            packs = -(-need // size)
            steps = [row]
            if label != "Pack size":
                steps.append(f"{need} / {size} = {packs}")
            if label == "Spare":
                steps += [f"{packs} * {size} = {packs * size}", f"{packs * size} - {need} = {packs * size - need}"]
            return steps
        if "Goods is the sum" in self.goal:
            *items, last = [int(_NUMBER.findall(x)[0]) for x in self.lines]
            extra = self.lines[-1].split(": ")[0]
            if label == extra:
                return []
            total, steps = items[0], []
            for n in items[1:]:
                steps.append(f"{total} + {n} = {total + n}")
                total += n
            if label != "Goods":
                sign = "-" if extra == "Rebate" else "+"
                steps.append(f"{total} {sign} {last} = {total - last if sign == '-' else total + last}")
            return steps
        if match := re.search(r"A quote for (\d+) pieces", self.goal):
            return self._quote(label, int(match[1]), values)
        said = self.goal + "\n" + "\n".join(self.lines)
        if match := re.search(rf"\b{re.escape(label)} (\d+) (plus|minus|times) (\d+)", said):
            sign = {"plus": "+", "minus": "-", "times": "*"}[match[2]]
            return [f"{match[1]} {sign} {match[3]} = {wanted}"]
        return []

    def _quote(self, label: str, count: int, values: dict[str, str]) -> list[str]:
        steps: list[str] = []
        price = 0
        for line in self.lines:
            spans, _, rest = line.partition(": ")
            numbers = [int(n) for n in _NUMBER.findall(spans)]
            if numbers and numbers[0] <= count <= numbers[-1] and rest.endswith("each"):
                price = int(_NUMBER.findall(rest)[0])
                steps.append(f"{count} in {line}")
        if label != "Price":
            steps.append(f"{count} * {price} = {count * price}")
        if label not in ("Price", "Cost"):
            box = int(_NUMBER.findall(self.lines[-1])[0])
            steps.append(f"{count * price} + {box} = {count * price + box}")
        return steps


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
