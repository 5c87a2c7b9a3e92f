"""The audit of a predicted page: what is wrong with it, by name and count, against exact semantics.

Nodes are matched by number, role and name, then by role and name alone (a learned world may number anew), then by
number and role (a changed name). Of one control at most one fault of value and one of state is counted; options
and radios belong to their control.

====================  ==============================================================================================
fault                 when
====================  ==============================================================================================
`structure`           no root line; an opaque line; a number used twice
`stale`               the page before, unchanged, though more should have changed than one value or a notice
`lost_value`          the action's change of a value is not there, or a value that was there is gone
`echoed_value`        a field shows a value of the goal or the expectation that nobody gave it
`wrong_value`         a field shows another value that nobody gave it
`vanished_control`    a control, option or radio is missing
`invented_control`    there is one more than there should be
`wrong_state`         disabled, read-only, required, expanded, or the chosen option beside another value; the focus
`missing_notice`      nothing of a notice is shown
`softened_notice`     a notice lacks part of its text or its control
`text_changed`        any other line is missing, added or different; a label is different
====================  ==============================================================================================
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from advsim.action import Action
from advsim.form import FormSpec
from advsim.page import Node, Page
from advsim.task import Expectation
from advsim.world.feasible import feasible
from advsim.world.render import CONTROL_ROLES, fold_space

FaultKind = Literal[
    "structure",
    "stale",
    "lost_value",
    "echoed_value",
    "wrong_value",
    "vanished_control",
    "invented_control",
    "wrong_state",
    "missing_notice",
    "softened_notice",
    "text_changed",
]
FAULT_KINDS: Final[tuple[FaultKind, ...]] = (
    "structure",
    "stale",
    "lost_value",
    "echoed_value",
    "wrong_value",
    "vanished_control",
    "invented_control",
    "wrong_state",
    "missing_notice",
    "softened_notice",
    "text_changed",
)

_NOTICES: Final = frozenset({"banner", "alert", "dialog"})
_CHOICES: Final = frozenset({"option", "radio"})
_OWNERS: Final = {"option": ("combobox", "listbox"), "radio": ("radiogroup",)}
_MAY_CHANGE_NOTHING: Final = frozenset({"lost_value", "missing_notice"})
_STATES: Final = ("disabled", "required", "readonly", "multiline", "expanded", "editable")


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Attributes:
        kind: Its name.
        where: The control or line, as `role 'name'`; empty for the whole page.
        expected, shown: What exact semantics gives and what the page shows, in short.
    """

    kind: FaultKind
    where: str = ""
    expected: str = ""
    shown: str = ""


@dataclass(slots=True)
class _Entry:
    """A line with what belongs to it."""

    node: Node
    owner: str = ""  # of an option or radio: its control, as `role 'name'`
    value: str | None = None  # None: it holds none
    chosen: tuple[str, ...] = ()  # names of its options or radios that are marked as chosen


@dataclass(slots=True)
class _Notice:
    node: Node
    text: str = ""
    control: str | None = None


@dataclass(slots=True)
class _Read:
    """A page, sorted."""

    entries: list[_Entry]
    notices: list[_Notice]
    focus: str  # `role 'name'` of the focused line, "" if none
    all_text: str


def audit(
    before: Page,
    action: Action,
    predicted: Page,
    exact: Page,
    *,
    goal_values: Collection[str] | Mapping[str, str] = (),
) -> tuple[Fault, ...]:
    """Name the faults of a predicted page. Total: any page may be given.

    Args:
        before: The page on which the action was done.
        action: What was done; a value that it gave is never an echo.
        predicted: The page to judge.
        exact: The page that exact semantics gives from the same state, with the same instruction.
        goal_values: Values that stand in the goal or the expectation, or a mapping from labels to them. Without it
            no fault is an echo.

    Returns:
        The faults, those of the page as a whole first; empty for an exact page.
    """
    if predicted == exact:
        return ()
    structure = _structure(predicted)
    was, want, got = _read(before), _read(exact), _read(predicted)
    faults = [*_notices(want, got), *_entries(was, want, got, action, goal_values)]
    # Without a focused line the root has the focus; where the line is missing, that is counted already.
    if want.focus != got.focus and (not want.focus or _has(got, want.focus)):
        faults.append(Fault("wrong_state", want.focus, "focused", got.focus))
    if predicted == before and not structure and not {f.kind for f in faults} <= _MAY_CHANGE_NOTHING:
        return (Fault("stale"),)
    return (*structure, *faults)


def count(faults: Iterable[Fault]) -> dict[FaultKind, int]:
    """How many of each kind; kinds without any are left out."""
    counted = Counter(f.kind for f in faults)
    return {kind: counted[kind] for kind in FAULT_KINDS if counted[kind]}


def breaks_task(predicted: Page, exact: Page, expectation: Expectation, form: FormSpec) -> bool:
    """Whether the prediction made a task infeasible that is feasible on the exact page."""
    return feasible(exact, expectation, form) and not feasible(predicted, expectation, form)


def _where(node: Node) -> str:
    return f"{node.role} {node.name!r}"


def _has(read: _Read, where: str) -> bool:
    named = {_where(e.node) for e in read.entries}
    return where in named or where in {f"button {n.control!r}" for n in read.notices}


def _structure(page: Page) -> list[Fault]:
    faults: list[Fault] = []
    first = page.nodes[0] if page.nodes else None
    if first is None or first.role != "RootWebArea" or first.depth:
        faults.append(Fault("structure", "", "RootWebArea first", first.line[:60] if first else "an empty page"))
    faults += [Fault("structure", "", "a node", n.line[:60]) for n in page.nodes if n.opaque is not None]
    bids = Counter(n.bid for n in page.nodes if n.bid is not None)
    faults += [Fault("structure", "", f"[{bid}] once", f"{n} times") for bid, n in bids.items() if n > 1]
    return faults


def _read(page: Page) -> _Read:
    entries: list[_Entry] = []
    notices: list[_Notice] = []
    above: list[tuple[Node, _Entry | None]] = []
    notice: _Notice | None = None
    focus = ""
    for node in page.nodes:
        if node.opaque is not None:
            continue
        if node.flag("focused") and node.role != "RootWebArea":
            focus = _where(node)
        if notice is not None and node.depth > notice.node.depth:
            if node.role == "button" and notice.control is None:
                notice.control = node.name
            elif node.role == "StaticText":
                notice.text = f"{notice.text} {node.name}".strip()
            continue
        notice = None
        if node.role in _NOTICES:
            notice = _Notice(node)
            notices.append(notice)
            continue
        while above and above[-1][0].depth >= node.depth:
            above.pop()
        entry = _Entry(node)
        if node.role in _CHOICES:
            owner = next((e for n, e in reversed(above) if e is not None and n.role in _OWNERS[node.role]), None)
            if owner is not None:
                entry.owner = _where(owner.node)
                if node.flag("selected") or node.get("checked") == "True":
                    owner.chosen = (*owner.chosen, node.name)
        elif node.role == "checkbox" or node.role == "switch":
            entry.value = "on" if node.get("checked") == "True" else ""
        elif node.role != "radiogroup":
            entry.value = node.get("value")
        above.append((node, entry))
        entries.append(entry)
    for entry in entries:
        if entry.node.role == "radiogroup":
            entry.value = ", ".join(entry.chosen)
    text = fold_space(" ".join(n.opaque if n.opaque is not None else n.name for n in page.nodes)).casefold()
    return _Read(entries, notices, focus, text)


def _notices(want: _Read, got: _Read) -> list[Fault]:
    faults: list[Fault] = []
    left = list(got.notices)
    for notice in want.notices:
        where = f"{notice.node.role} {notice.text[:40]!r}"
        same = next((n for n in left if n.text == notice.text and n.control == notice.control), None)
        same = same or next((n for n in left if n.node.bid == notice.node.bid), None)
        if same is None and (fold_space(notice.text).casefold() in got.all_text):
            # Its text stands somewhere, in another shape.
            if notice.control is not None and not _has(got, f"button {notice.control!r}"):
                faults.append(Fault("softened_notice", where, notice.control, ""))
            continue
        if same is None:
            same = next((n for n in left if _part(n.text, notice.text)), None)
        if same is None:
            faults.append(Fault("missing_notice", where, notice.text))
            continue
        left.remove(same)
        if (same.text, same.control) != (notice.text, notice.control):
            kind: FaultKind = "softened_notice"
            if same.control is not None and same.control != notice.control and same.text == notice.text:
                kind = "invented_control"
            faults.append(Fault(kind, where, f"{notice.text} / {notice.control}", f"{same.text} / {same.control}"))
    for extra in left:
        kind = "invented_control" if extra.control is not None else "text_changed"
        faults.append(Fault(kind, f"{extra.node.role} {extra.text[:40]!r}", "", extra.text))
    return faults


def _part(short: str, whole: str) -> bool:
    words = set(short.casefold().split())
    return bool(words & set(whole.casefold().split()))


def _entries(
    was: _Read, want: _Read, got: _Read, action: Action, goal_values: Collection[str] | Mapping[str, str]
) -> list[Fault]:
    faults: list[Fault] = []
    pairs, missing, extra = _match(want.entries, got.entries)
    old = {id(w): o for w, o in _match(want.entries, was.entries)[0]}
    for w, g in pairs:
        if w.node.name != g.node.name:
            faults.append(Fault("text_changed", _where(w.node), w.node.name, g.node.name))
        value = _value_fault(w, g, old.get(id(w)), action, goal_values)
        if value is not None:
            faults.append(value)
        state = _state_fault(w, g, value_differs=value is not None)
        if state is not None:
            faults.append(state)
    # Where a whole control is missing (or invented), its options are not counted again.
    gone = {_where(e.node) for e in missing if e.node.role in ("combobox", "listbox", "radiogroup")}
    new = {_where(e.node) for e in extra if e.node.role in ("combobox", "listbox", "radiogroup")}
    faults += [Fault("vanished_control", _where(e.node)) for e in missing if _is_control(e) and e.owner not in gone]
    faults += [Fault("invented_control", _where(e.node)) for e in extra if _is_control(e) and e.owner not in new]
    lines_gone = [e for e in missing if not _is_control(e)]
    lines_new = [e for e in extra if not _is_control(e)]
    for i in range(max(len(lines_gone), len(lines_new))):
        w_text = lines_gone[i].node.name if i < len(lines_gone) else ""
        g_text = lines_new[i].node.name if i < len(lines_new) else ""
        role = (lines_gone[i] if i < len(lines_gone) else lines_new[i]).node.role
        faults.append(Fault("text_changed", role, w_text, g_text))
    return faults


def _is_control(entry: _Entry) -> bool:
    return entry.node.role in CONTROL_ROLES


def _match(want: list[_Entry], got: list[_Entry]) -> tuple[list[tuple[_Entry, _Entry]], list[_Entry], list[_Entry]]:
    """Pairs, those of `want` without a partner, those of `got` without one; each in page order."""
    partner: dict[int, _Entry] = {}
    used: set[int] = set()
    # Root lines go together whatever their titles; then ever looser keys.
    for level in range(3):
        free: dict[object, list[_Entry]] = {}
        for g in got:
            if id(g) not in used:
                free.setdefault(_key(g, level), []).append(g)
        for w in want:
            if id(w) in partner:
                continue
            same = free.get(_key(w, level))
            if same:
                partner[id(w)] = same.pop(0)
                used.add(id(partner[id(w)]))
    pairs = [(w, partner[id(w)]) for w in want if id(w) in partner]
    return pairs, [w for w in want if id(w) not in partner], [g for g in got if id(g) not in used]


def _key(entry: _Entry, level: int) -> object:
    node = entry.node
    if node.role == "RootWebArea":
        return node.role
    if level == 0:
        return node.bid, node.role, node.name, entry.owner
    if level == 1:
        return node.role, node.name, entry.owner
    # A line without a number has nothing left to be known by.
    return (node.bid, node.role) if node.bid is not None else id(entry)


def _value_fault(
    want: _Entry,
    got: _Entry,
    old: _Entry | None,
    action: Action,
    goal_values: Collection[str] | Mapping[str, str],
) -> Fault | None:
    right, shown = want.value, got.value
    if right == shown or right is None:
        return None
    where = _where(want.node)
    before = old.value if old is not None else None
    if shown is None:
        return Fault("lost_value", where, right, "")
    given = action.bid == want.node.bid and (shown in action.args.values() or (shown,) in action.args.values())
    if right != before and shown == before:
        return Fault("lost_value", where, right, shown)
    if shown and not given and _is_goal_value(want.node.name, shown, goal_values):
        return Fault("echoed_value", where, right, shown)
    if not shown:
        return Fault("lost_value", where, right, "")
    return Fault("wrong_value", where, right, shown)


def _is_goal_value(label: str, value: str, goal_values: Collection[str] | Mapping[str, str]) -> bool:
    if isinstance(goal_values, Mapping):
        return goal_values.get(label) == value
    return value in goal_values


def _state_fault(want: _Entry, got: _Entry, *, value_differs: bool) -> Fault | None:
    where = _where(want.node)
    for key in _STATES:
        right, shown = _state(want.node, key), _state(got.node, key)
        if right != shown:
            return Fault("wrong_state", where, f"{key}={right}", f"{key}={shown}")
    if not value_differs and want.chosen != got.chosen:
        return Fault("wrong_state", where, ", ".join(want.chosen), ", ".join(got.chosen))
    return None


def _state(node: Node, key: str) -> bool:
    return node.flag(key) or node.get(key) == "True"
