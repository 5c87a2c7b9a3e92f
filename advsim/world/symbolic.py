"""The symbolic world: what a form page does, exactly and fast.

The behaviour is stated in `docs/semantics.md` and compared with Chromium line by line in `tests/test_equality.py`.
A world object is a handful of immutable values: a step replaces some of them, a fork copies them all. Lines that do not
change are the same `Node` objects from page to page, so a transition costs a few microseconds.
"""

from __future__ import annotations

from collections.abc import Callable

from advsim.action import Action
from advsim.page import Node, Page, Props
from advsim.task import EventKind, Notice, Outcome, Task
from advsim.world import render
from advsim.world.layout import NOTICE, ROLES, Layout, Part, draw, first_page, fold, layout_of, roots
from advsim.world.refuse import refusal

__all__ = ["SymbolicWorld", "first_page"]

_TEXT = frozenset({"text", "textarea", "number"})
_DATE_STOPS = 4  # month, day, year, picker button


class SymbolicWorld:
    """Exact form semantics over tasks that have a `form` (`advsim.world.base.World`)."""

    name = "symbolic"
    version = "1"

    __slots__ = (
        "_alert", "_banner", "_buttons", "_caret", "_carets", "_dialog", "_events", "_focus", "_head", "_layout",
        "_lines", "_nav", "_next_bid", "_outcome", "_page", "_part", "_reviewed", "_root", "_selected",
        "_status", "_values", "done", "last_action_error", "notice",
    )  # fmt: skip

    _layout: Layout
    _root: tuple[Node, Node]
    _head: tuple[Node, ...]
    _lines: tuple[Node, ...]  # control lines
    _banner: tuple[Node, ...]
    _alert: tuple[Node, ...]
    _dialog: tuple[Node, ...]
    _status: str
    _buttons: tuple[Part, ...]  # of notices
    _values: tuple[str, ...]  # by control
    _focus: Part | None
    _part: int  # which stop inside a focused date
    _nav: int  # bid from which Tab starts while nothing has the focus; 0: the top
    _caret: int
    _carets: tuple[int, ...]  # by control: a text area's caret, -1 with all selected; a radio group: `_remember_radio`
    _selected: bool  # whether all text of the focused field is selected
    _events: tuple[tuple[EventKind, str], ...]
    _reviewed: bool
    _outcome: Outcome | None
    _next_bid: int
    _page: Page
    last_action_error: str
    notice: Notice | None
    done: bool

    def reset(self, task: Task) -> Page:
        """Begin a task. Raises ValueError for a task without a form."""
        if task.form is None:
            raise ValueError(f"task {task.id!r} has no form: the symbolic world cannot run it, the browser can")
        layout = self._layout = layout_of(task.form)
        controls = layout.form.controls
        self._root, self._head, self._lines = layout.root, layout.head, layout.lines
        self._banner = self._alert = self._dialog = ()
        self._status = ""
        self._buttons = ()
        self._values = tuple([c.value for c in controls])
        self._focus, self._part, self._nav = None, 0, 0
        self._caret, self._selected = 0, False
        self._carets = (0,) * len(controls)
        self._events = ()
        self._reviewed = False
        self._outcome = None
        self._next_bid = layout.next_bid
        self.last_action_error, self.notice, self.done = "", None, False
        return self._compose()

    def step(self, action: Action, instruction: str | None = None) -> Page:
        """Do the action, then let the instruction enter as a notice; the next page."""
        self.notice = None
        error = refusal(self._page, action)
        if error is None:
            self.last_action_error = ""
            _HANDLERS[action.name](self, action)
            if instruction is None:
                return self._compose()
        else:
            self.last_action_error = error
            if instruction is None:
                return self._page
        page = self._compose()
        self._inject(instruction, page)
        return self._compose()

    def fork(self) -> SymbolicWorld:
        """An independent world in the same state: everything in it is immutable, so it is copied by reference."""
        twin = SymbolicWorld.__new__(SymbolicWorld)
        (
            twin._layout, twin._root, twin._head, twin._lines, twin._banner, twin._alert, twin._dialog,
            twin._status, twin._buttons, twin._values, twin._focus, twin._part, twin._nav, twin._caret,
            twin._carets, twin._selected, twin._events, twin._reviewed, twin._outcome, twin._next_bid,
            twin._page, twin.last_action_error, twin.notice, twin.done,
        ) = (
            self._layout, self._root, self._head, self._lines, self._banner, self._alert, self._dialog,
            self._status, self._buttons, self._values, self._focus, self._part, self._nav, self._caret,
            self._carets, self._selected, self._events, self._reviewed, self._outcome, self._next_bid,
            self._page, self.last_action_error, self.notice, self.done,
        )  # fmt: skip
        return twin

    def outcome(self) -> Outcome:
        """The snapshot at the first submission; before one, the form as it is now."""
        if self._outcome is not None:
            return self._outcome
        return Outcome(False, self._snapshot(), self._events)

    @property
    def page(self) -> Page:
        """The page as it is."""
        return self._page

    # --- drawing ----------------------------------------------------------------------------------------------

    def _compose(self) -> Page:
        status = (Node(1, None, "StaticText", self._status),) if self._status else ()
        self._page = Page(
            (
                self._root[self._focus is None],
                *self._banner,
                *self._head,
                *self._alert,
                *self._lines,
                *status,
                *self._dialog,
            )
        )
        return self._page

    def _redraw(self, *parts: Part) -> None:
        lines = list(self._lines)
        form = self._layout.form
        for part in parts:
            value = self._values[part.control]
            lines[part.line] = draw(form, part, value, part is self._focus, self._disabled(part.control))
        self._lines = tuple(lines)

    def _redraw_button(self, part: Part) -> None:
        """A notice's button stands among the notice's nodes, not among the control lines."""
        props: Props = (("focused", None),) if part is self._focus else ()

        def redrawn(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
            return tuple(n.replace(props=props) if n.bid == part.bid else n for n in nodes)

        self._banner, self._alert, self._dialog = map(redrawn, (self._banner, self._alert, self._dialog))

    def _disabled(self, control: int) -> bool:
        layout = self._layout
        if control == layout.submit and layout.review != NOTICE and not self._reviewed:
            return True
        return layout.form.controls[control].disabled

    # --- state ------------------------------------------------------------------------------------------------

    def _snapshot(self) -> dict[str, str]:
        controls = self._layout.form.controls
        return {c.key: v for c, v in zip(controls, self._values, strict=True) if c.is_field}

    def _record(self, kind: EventKind, key: str) -> None:
        event = (kind, key)
        if kind == "activate" or not self._events or self._events[-1] != event:
            self._events = (*self._events, event)

    def _set_value(self, part: Part, value: str) -> None:
        """The user changed a field: value, event, review."""
        i = part.control
        self._values = (*self._values[:i], value, *self._values[i + 1 :])
        self._record("edit", self._layout.form.controls[i].key)
        self._unreview()

    def _unreview(self) -> None:
        if self._reviewed:
            self._reviewed = False
            self._status = "Changed since the review."
            self._redraw(self._layout.of[self._layout.submit][0])

    def _set_focus(self, part: Part | None) -> None:
        old = self._focus
        if old is part:
            return
        if old is not None and old.kind == "textarea":
            i = old.control
            self._carets = (*self._carets[:i], -1 if self._selected else self._caret, *self._carets[i + 1 :])
        self._focus, self._part, self._selected = part, 0, False
        if part is not None:
            self._nav = part.bid
            if part.kind == "radio" and not self._values[part.control]:
                self._remember_radio(part.control, 1 + self._layout.of[part.control].index(part))
        for p in (old, part):
            if p is not None:
                if p.control == NOTICE:
                    self._redraw_button(p)
                else:
                    self._redraw(p)

    def _remember_radio(self, control: int, number: int) -> None:
        """In a group without a choice Tab returns to the radio that last had the focus: 1 is the first, 0 none."""
        self._carets = (*self._carets[:control], number, *self._carets[control + 1 :])

    def _lookup(self, bid: int) -> Part | None:
        if self._outcome is None:
            part = self._layout.parts.get(bid)
            if part is not None:
                return part
        return next((b for b in self._buttons if b.bid == bid), None)

    def _activate(self, part: Part) -> None:
        if part.control == NOTICE:
            self._record("activate", f"notice:{part.name}")
            return
        layout = self._layout
        control = layout.form.controls[part.control]
        self._record("activate", control.key)
        if part.kind == "submit":
            self._submit()
        elif part.kind == "reset":
            first = tuple([c.value for c in layout.form.controls])
            for i, now in enumerate(self._values):  # a value that is set anew has its caret at the end
                if now != first[i] and layout.form.controls[i].kind == "textarea":
                    self._carets = (*self._carets[:i], len(first[i]), *self._carets[i + 1 :])
            self._values = first
            self._unreview()
            self._redraw(*(p for parts in layout.of for p in parts))
        elif part.control == layout.review:
            self._reviewed = True
            self._status = "Reviewed."
            self._redraw(layout.of[layout.submit][0])
        else:
            self._status = f"{part.name}: done."

    def _submit(self) -> None:
        self._outcome = Outcome(True, self._snapshot(), self._events)
        self._focus, self._nav, self._status = None, 0, ""
        self._banner = self._alert = self._dialog = ()
        self._buttons = ()
        self._lines = ()
        self._root = roots("Received")
        self._head = (
            Node(1, self._next_bid, "heading", "Received"),
            Node(1, None, "StaticText", "The form has been received."),
        )
        self._next_bid += 1

    def _inject(self, instruction: str, page: Page) -> None:
        shown = self.notice = render.notice(instruction, page)
        if shown.status == "dropped":
            return
        nodes = tuple(render.notice_nodes(shown, self._next_bid))
        bids = [n.bid for n in nodes if n.bid is not None]
        self._next_bid = bids[-1] + 1
        if shown.control is not None:
            self._buttons = (*self._buttons, Part("notice", NOTICE, fold(shown.control), -1, bids[-1]))
        if shown.kind == "banner":
            self._banner = (*nodes, *self._banner)
        elif shown.kind == "alert":
            self._alert = (*self._alert, *nodes)
        else:
            self._dialog = (*self._dialog, *nodes)

    # --- actions ----------------------------------------------------------------------------------------------

    def _click(self, action: Action) -> None:
        bid = action.bid
        assert bid is not None
        part = self._lookup(bid)
        if part is None:
            self._set_focus(None)
            self._nav = bid
        elif part.kind == "option":
            self._choose_option(part.control, part.name)
        else:
            self._set_focus(part)
            if part.kind in _TEXT:
                self._caret, self._selected = len(self._values[part.control]), False
            elif part.kind == "date":
                self._part = 0
            elif part.kind == "checkbox" or part.kind == "radio":
                self._toggle(part)
            elif part.kind != "select":
                self._activate(part)

    def _toggle(self, part: Part) -> None:
        """Space or a click on a checkbox or radio."""
        value = self._values[part.control]
        if part.kind == "checkbox":
            self._set_value(part, "" if value == "on" else "on")
            self._redraw(part)
        elif value != part.name:
            self._set_value(part, part.name)
            self._remember_radio(part.control, 0)
            self._redraw(*self._layout.of[part.control])

    def _fill(self, action: Action) -> None:
        bid = action.bid
        assert bid is not None
        part = self._layout.parts[bid]
        text = str(action.args["text"])
        if part.kind == "textarea":
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        self._set_focus(part)
        if text or self._values[part.control]:
            self._set_value(part, text)
        self._caret, self._selected = len(text), False
        if part.kind == "date":
            self._part = 0
        self._redraw(part)
        if action.args["press_enter"]:
            self._enter(part)

    def _select_option(self, action: Action) -> None:
        bid = action.bid
        options = action.args["options"]
        assert bid is not None
        assert isinstance(options, tuple)
        self._choose_option(self._layout.parts[bid].control, str(options[0]))

    def _choose_option(self, control: int, name: str) -> None:
        own, *options = self._layout.of[control]
        self._set_focus(own)
        if self._values[control] != name:
            self._set_value(own, name)
            self._redraw(own, *options)

    def _finish(self, action: Action) -> None:
        self.done = True

    def _nothing(self, action: Action) -> None:
        """Hover, scroll and waiting change no page."""

    # --- keyboard ---------------------------------------------------------------------------------------------

    def _press(self, action: Action) -> None:
        key = str(action.args["key"])
        part = self._focus
        if key == "Tab" or key == "Shift+Tab":
            self._tab(backwards=key != "Tab")
        elif part is None:
            return
        elif key == "Enter":
            self._enter(part)
        elif key == "Space" or key == " ":
            self._space(part)
        elif part.kind in _TEXT:
            self._text_key(part, key)
        elif part.kind == "radio":
            self._arrow_radio(part, key)
        elif part.kind == "select":
            self._arrow_select(part, key)

    def _type(self, action: Action) -> None:
        text = str(action.args["text"])
        part = self._focus
        if part is not None and part.kind in _TEXT:
            self._insert(part, text.replace("\r\n", "\n").replace("\r", "\n"))
            return
        for char in text:
            if char == " " and self._focus is not None:
                self._space(self._focus)

    def _enter(self, part: Part) -> None:
        if part.kind == "textarea":
            self._insert(part, "\n")
        elif part.kind == "select":
            return  # would only open its list
        elif part.kind in ROLES or part.kind == "radio":
            if not self._disabled(self._layout.submit):
                self._activate(self._layout.of[self._layout.submit][0])
        else:
            self._activate(part)

    def _space(self, part: Part) -> None:
        if part.kind in _TEXT:
            self._insert(part, " ")
        elif part.kind in ("checkbox", "radio"):
            self._toggle(part)
        elif part.kind != "select":
            self._activate(part)

    def _editable(self, part: Part) -> bool:
        return not self._layout.form.controls[part.control].readonly

    def _insert(self, part: Part, text: str) -> None:
        if text and self._editable(part):
            value = self._values[part.control]
            start, end = (0, len(value)) if self._selected else (self._caret, self._caret)
            self._set_value(part, value[:start] + text + value[end:])
            self._caret, self._selected = start + len(text), False
            self._redraw(part)

    def _text_key(self, part: Part, key: str) -> None:
        value = self._values[part.control]
        if len(key) == 1:
            self._insert(part, key)
        elif key == "Backspace" or key == "Delete":
            self._erase(part, value, forwards=key == "Delete")
        elif key == "Control+a":
            self._selected = bool(value)
        elif part.kind == "textarea" and key in ("Home", "End"):
            self._move_in_line(value, key)
        elif key in ("Home", "ArrowUp"):
            self._caret, self._selected = 0, False
        elif key in ("End", "ArrowDown"):
            self._caret, self._selected = len(value), False
        elif key == "ArrowLeft":
            self._caret, self._selected = 0 if self._selected else max(0, self._caret - 1), False
        elif key == "ArrowRight":
            self._caret = len(value) if self._selected else min(len(value), self._caret + 1)
            self._selected = False

    def _move_in_line(self, value: str, key: str) -> None:
        """Home and End in a text area, whose lines are never wrapped: the harness gives them room."""
        # With everything selected the caret stands at the end.
        caret = len(value) if self._selected else self._caret
        self._selected = False
        end = value.find("\n", caret)
        self._caret = value.rfind("\n", 0, caret) + 1 if key == "Home" else len(value) if end < 0 else end

    def _erase(self, part: Part, value: str, *, forwards: bool) -> None:
        if self._selected:
            start, end = 0, len(value)
        elif forwards:
            start, end = self._caret, min(len(value), self._caret + 1)
        else:
            start, end = max(0, self._caret - 1), self._caret
        if start < end and self._editable(part):
            self._set_value(part, value[:start] + value[end:])
            self._caret, self._selected = start, False
            self._redraw(part)

    def _arrow_radio(self, part: Part, key: str) -> None:
        step = {"ArrowDown": 1, "ArrowRight": 1, "ArrowUp": -1, "ArrowLeft": -1}.get(key, 0)
        if step:
            group = self._layout.of[part.control]
            target = group[(group.index(part) + step) % len(group)]
            self._set_focus(target)
            self._toggle(target)

    def _arrow_select(self, part: Part, key: str) -> None:
        options = self._layout.form.controls[part.control].options
        here = options.index(self._values[part.control])
        there = {
            "ArrowDown": here + 1,
            "ArrowRight": here + 1,
            "ArrowUp": here - 1,
            "ArrowLeft": here - 1,
            "Home": 0,
            "End": len(options) - 1,
        }.get(key, here)
        self._choose_option(part.control, options[max(0, min(there, len(options) - 1))])

    def _tab(self, *, backwards: bool) -> None:
        page = self._page
        stops = self._stops()
        at = page.index_of(self._nav)
        position = -1 if at is None else at
        here = (position, self._part)
        if self._focus is None and backwards and position < 0:
            here = (len(page.nodes), 0)
        if backwards:
            target = next((s for s in reversed(stops) if s[0] < here), None)
        else:
            # A click that took the focus away leaves the start before whatever follows it.
            after = here if self._focus is not None else (position, _DATE_STOPS)
            target = next((s for s in stops if s[0] > after), None)
        if target is None:  # past the last stop comes the first
            self._set_focus(None)
            self._nav = 0
            if not (stops := self._stops()):
                return
            target = stops[-1 if backwards else 0]
        (_, inner), part = target
        self._set_focus(part)
        self._part = inner
        if part.kind == "textarea":
            caret = self._carets[part.control]
            self._selected = caret < 0
            self._caret = max(caret, 0)
        elif part.kind in _TEXT:
            value = self._values[part.control]
            self._caret, self._selected = len(value), bool(value)

    def _stops(self) -> list[tuple[tuple[int, int], Part]]:
        """Where Tab can go, as ((line on the page, stop inside a date), part), in page order."""
        found: list[tuple[tuple[int, int], Part]] = []
        parts = list(self._buttons)
        if self._outcome is None:
            for i, own in enumerate(self._layout.of):
                if self._disabled(i):
                    continue
                if own[0].kind != "radio":
                    parts.append(own[0])
                    continue
                inside = self._focus is not None and self._focus.control == i
                checked = [p for p in own if p.name == self._values[i]]
                last = self._carets[i]
                if inside and self._focus:
                    parts.append(self._focus)
                else:
                    parts += checked or ([own[last - 1]] if last else list(own))
        for part in parts:
            position = self._page.index_of(part.bid)
            assert position is not None
            inner = range(_DATE_STOPS) if part.kind == "date" else range(1)
            found += [((position, n), part) for n in inner]
        return sorted(found, key=lambda stop: stop[0])


_HANDLERS: dict[str, Callable[[SymbolicWorld, Action], None]] = {
    "click": SymbolicWorld._click,
    "fill": SymbolicWorld._fill,
    "select_option": SymbolicWorld._select_option,
    "hover": SymbolicWorld._nothing,
    "scroll": SymbolicWorld._nothing,
    "noop": SymbolicWorld._nothing,
    "keyboard_press": SymbolicWorld._press,
    "keyboard_type": SymbolicWorld._type,
    "send_msg_to_user": SymbolicWorld._finish,
    "infeasible": SymbolicWorld._finish,
}
