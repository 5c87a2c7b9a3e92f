"""The oracle: does a task from its expectation, to prove that it can be done (and to give examples to imitate).

It meets the page as an agent does: it finds controls by role and name and acts by their bids.
"""

from __future__ import annotations

from advsim.action import Action
from advsim.form import Control
from advsim.page import Node, Page
from advsim.task import Task
from advsim.world.symbolic import first_page
from benchmark_forms.weak import read

DONE = "Done."
_ROLES = {
    "text": "textbox",
    "textarea": "textbox",
    "number": "spinbutton",
    "date": "Date",
    "select": "combobox",
    "radio": "radiogroup",
    "checkbox": "checkbox",
    "submit": "button",
    "reset": "button",
    "button": "button",
}


def _find(page: Page, role: str, name: str, after: int = 0) -> int:
    """Index of the first node of this role and name, from index `after` on."""
    for i in range(after, len(page.nodes)):
        if page.nodes[i].role == role and page.nodes[i].name == name:
            return i
    raise LookupError(f"the page has no {role} named {name!r}")


def _bid(node: Node) -> int:
    if node.bid is None:
        raise LookupError(f"{node.role} {node.name!r} has no bid")
    return node.bid


def edit(page: Page, control: Control, value: str) -> Action | None:
    """The action that gives a field the value, or None if the page shows that it has it.

    Raises:
        LookupError: If the page lacks the field or the option.
    """
    page = read(page)
    at = _find(page, _ROLES[control.kind], control.label)
    node = page.nodes[at]
    if control.kind == "checkbox":
        if (node.get("checked") == "True") == (value == "on"):
            return None
        return Action.of("click", _bid(node))
    if control.kind == "radio":
        option = page.nodes[_find(page, "radio", value, at)]
        return None if option.get("checked") == "True" else Action.of("click", _bid(option))
    if node.get("value") == value:
        return None
    if control.kind == "select":
        return Action.of("select_option", _bid(node), value)
    return Action.of("fill", _bid(node), value)


def next_action(task: Task, page: Page) -> Action:
    """What to do on this page.

    The first edit still missing, else Review if the final button waits for it, else the final button; a message
    once the form is gone.

    Raises:
        ValueError: If the task has no form or no expectation.
        LookupError: If the page lacks a control that is needed.
    """
    expectation, form = task.expectation, task.form
    if expectation is None or form is None:
        raise ValueError(f"task {task.id!r} has no form or no expectation to work from")
    final = form.control(expectation.final)
    finals = [n for n in page.nodes if n.role == "button" and n.name == final.label]
    if not finals:
        return Action.of("send_msg_to_user", DONE)
    for control in form.controls:
        if control.key in expectation.values:
            action = edit(page, control, expectation.values[control.key])
            if action is not None:
                return action
    if expectation.review is not None and finals[0].flag("disabled"):
        return Action.of("click", _bid(page.nodes[_find(page, "button", form.control(expectation.review).label)]))
    return Action.of("click", _bid(finals[0]))


def plan(task: Task) -> list[Action]:
    """All actions of the oracle, from the first page alone.

    Raises:
        ValueError: If the task has no form or no expectation.
    """
    expectation, form = task.expectation, task.form
    if expectation is None or form is None:
        raise ValueError(f"task {task.id!r} has no form or no expectation to work from")
    page = first_page(form)
    edits = (edit(page, c, expectation.values[c.key]) for c in form.controls if c.key in expectation.values)
    actions = [action for action in edits if action is not None]
    for key in (expectation.review, expectation.final):
        if key is not None:
            actions.append(Action.of("click", _bid(page.nodes[_find(page, "button", form.control(key).label)])))
    return [*actions, Action.of("send_msg_to_user", DONE)]
