"""The form: one source for a task's first page and behaviour (`world.symbolic`) and its HTML (`browser_eval.html`).

A `FormSpec` says what the page holds and in which order. It says nothing about what is right or wrong: that is the
task's `Expectation`, which no page, HTML or policy ever sees. The behaviour is stated in `docs/semantics.md`.
"""

from __future__ import annotations

import datetime
import re
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

FieldKind = Literal["text", "number", "date", "textarea", "select", "radio", "checkbox"]
ButtonKind = Literal["submit", "reset", "button"]
FIELD_KINDS: tuple[str, ...] = ("text", "number", "date", "textarea", "select", "radio", "checkbox")
BUTTON_KINDS: tuple[str, ...] = ("submit", "reset", "button")


_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")


def _folded(text: str) -> str:
    return " ".join(text.split())


def _is_iso_date(text: str) -> bool:
    try:
        return datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Text(_Frozen):
    """A paragraph of plain text."""

    text: str = Field(min_length=1)


class Table(_Frozen):
    """A table of plain text; every row has as many cells as the header."""

    caption: str = Field(min_length=1)
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @model_validator(mode="after")
    def _rectangular(self) -> Table:
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(f"table {self.caption!r}: a row has {len(row)} cells, the header {len(self.header)}")
        return self


class Control(_Frozen):
    """A field or a button.

    Attributes:
        key: Name under which the browser submits it and the expectation speaks of it. It must not tell a policy
            anything (it stands in the HTML): a slug of the label.
        label: The visible label; the accessible name. Unique in its form, as option names are in their choice.
        kind: One of the seven field kinds or three button kinds.
        value: First value. Checkbox: `"on"` or `""`; radio: an option or `""`; select: always one of the options.
        options: Option names of a select or radio, at least two.
        readonly: Text-like fields only. disabled: any control.
    """

    key: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    label: str = Field(min_length=1)
    kind: Literal["text", "number", "date", "textarea", "select", "radio", "checkbox", "submit", "reset", "button"]
    value: str = ""
    options: tuple[str, ...] = ()
    readonly: bool = False
    disabled: bool = False

    @property
    def is_field(self) -> bool:
        """Whether it holds a value (fields) rather than acts (buttons)."""
        return self.kind in FIELD_KINDS

    @model_validator(mode="after")
    def _consistent(self) -> Control:
        choice = self.kind in ("select", "radio")
        if choice != bool(self.options):
            raise ValueError(f"{self.key}: options belong to select and radio, and only there")
        if choice and (len(self.options) < 2 or len(set(self.options)) != len(self.options)):
            raise ValueError(f"{self.key}: options must be at least two, all different")
        if self.kind == "select" and self.value not in self.options:
            raise ValueError(f"{self.key}: a select's value must be one of its options")
        if self.kind == "radio" and self.value and self.value not in self.options:
            raise ValueError(f"{self.key}: a radio group's value must be empty or one of its options")
        if self.kind == "checkbox" and self.value not in ("", "on"):
            raise ValueError(f"{self.key}: a checkbox's value is 'on' or empty")
        if any(_folded(t) != t for t in (self.label, *self.options)):
            raise ValueError(f"{self.key}: labels and options hold single spaces only, none at the ends")
        if self.kind in ("text", "number", "date") and ("\n" in self.value or "\r" in self.value):
            raise ValueError(f"{self.key}: only a textarea's value can hold line breaks")
        if self.kind == "number" and self.value and not _NUMBER.fullmatch(self.value):
            raise ValueError(f"{self.key}: a number's value is written like 12 or 12.50, got {self.value!r}")
        if self.kind == "date" and self.value and not _is_iso_date(self.value):
            raise ValueError(f"{self.key}: a date's value is written YYYY-MM-DD, got {self.value!r}")
        if not self.is_field and self.value:
            raise ValueError(f"{self.key}: a button has no value")
        if self.readonly and self.kind not in ("text", "number", "date", "textarea"):
            raise ValueError(f"{self.key}: only text-like fields can be read-only")
        return self


class FormSpec(_Frozen):
    """A page with one form.

    Attributes:
        title: Document title and heading.
        blocks: Paragraphs and tables above the form: rules, records, distractors.
        controls: Fields and buttons, in page order; exactly one is a submit button.
        review: Key of the plain button that must be pressed before the submit button is enabled, if any.
    """

    title: str = Field(min_length=1)
    blocks: tuple[Text | Table, ...] = ()
    controls: tuple[Control, ...]
    review: str | None = None

    @property
    def fields(self) -> tuple[Control, ...]:
        """The controls that hold a value, in page order."""
        return tuple(c for c in self.controls if c.is_field)

    def control(self, key: str) -> Control:
        """The control with this key. Raises KeyError."""
        for c in self.controls:
            if c.key == key:
                return c
        raise KeyError(key)

    @property
    def submit(self) -> Control:
        """The form's submit button."""
        return next(c for c in self.controls if c.kind == "submit")

    @model_validator(mode="after")
    def _whole(self) -> FormSpec:
        for what, values in (("keys", [c.key for c in self.controls]), ("labels", [c.label for c in self.controls])):
            if len(set(values)) != len(values):
                raise ValueError(f"the controls' {what} must be unique")
        if sum(c.kind == "submit" for c in self.controls) != 1:
            raise ValueError("a form has exactly one submit button")
        if self.review is not None and self.control(self.review).kind != "button":
            raise ValueError("the review control must be a plain button")
        return self
