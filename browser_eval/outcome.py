"""From what the recorder told and what the server received to an `Outcome`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advsim.task import EventKind, Outcome, Task
from browser_eval.server import Served
from browser_eval.tab import Message

Values = Mapping[str, list[str]]
"""By key: the value as it would be submitted and as it is seen (they differ for choices)."""


class Record:
    """What happened on one page.

    Attributes:
        submitted: The snapshot at the first submission, None before it.
        live: The fields' values at present, for an outcome before any submission.
    """

    def __init__(self, task: Task, served: Served) -> None:
        self.submitted: Outcome | None = None
        self.live: Values = {}
        self._task = task
        self._served = served
        self._events: list[tuple[EventKind, str]] = []
        self._at_submit: Values = {}
        self._until = 0  # events up to and including the last attempt to submit
        self._final: tuple[Values, int] | None = None

    def take(self, messages: list[Message]) -> None:
        """Take what the recorder told since the last time; empties the list."""
        for kind, key, *rest in messages:
            if kind == "submit":
                self._at_submit, self._until = rest[0], len(self._events)
                continue
            event: tuple[EventKind, str] = (kind, key)
            if kind == "activate" or not self._events or self._events[-1] != event:
                self._events.append(event)
            if kind == "activate" and rest[0] is not None and self._final is None and self._ends_task(key):
                self._final = rest[0], len(self._events)
        messages.clear()
        if self.submitted is None:
            self._close()

    def outcome(self) -> Outcome:
        """The snapshot at the submission; before one, how things are."""
        if self.submitted is not None:
            return self.submitted
        return Outcome(False, self._values(None, self.live), tuple(self._events))

    def _ends_task(self, key: str) -> bool:
        # A page that answers by script sends nothing; what the user meant as the end is then the final control.
        task = self._task
        return task.form is None and task.expectation is not None and task.expectation.final == key

    def _close(self) -> None:
        submission = self._served.submission
        if submission is not None:
            received: dict[str, str] = {}
            for name, value in submission.fields:
                received.setdefault(name, value)
            events = self._events[: self._until] if self._until else self._events
            self.submitted = Outcome(True, self._values(received, self._at_submit), tuple(events))
        elif self._final is not None:
            values, until = self._final
            self.submitted = Outcome(True, self._values(None, values), tuple(self._events[:until]))

    def _values(self, received: Mapping[str, str] | None, page: Values) -> dict[str, str]:
        form = self._task.form
        if form is None:
            return _of_any_page(received, page)
        values = {}
        for field in form.fields:
            here: Any = page.get(field.key)
            if received is not None and field.key in received:
                values[field.key] = received[field.key]
            elif received is not None and not field.disabled:
                values[field.key] = ""  # browsers leave out boxes that are not ticked and groups without a choice
            else:
                values[field.key] = here[0] if here else field.value
        return values


def _of_any_page(received: Mapping[str, str] | None, page: Values) -> dict[str, str]:
    """Choices by the names that the user sees, everything else as received."""
    values = {key: seen for key, (_, seen) in page.items()}
    if received is None:
        return values
    for key, value in received.items():
        known = page.get(key)
        if known is None or (known[0] != value and f"{key}={value}" not in page):
            values[key] = value
    return values
