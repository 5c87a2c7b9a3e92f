"""The task and what is recorded about an attempt at it: plain frozen values that every room speaks."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from advsim.form import FormSpec

Strata = Literal["conditional", "derived", "conjunctive", "join", "repair"]


class Expectation(BaseModel):
    """What a right submission is. Hidden from every policy, page and HTML.

    Attributes:
        values: Target value of each required field, by key (option name for choices, `"on"`/`""` for checkboxes).
        final: Key of the control that must be activated last.
        protected: First value of each field that must stay unchanged, by key.
        forbidden: Keys of the controls that must never be activated.
        review: Key of the control that must be activated before `final` with no edit in between, where the task
            asks for it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    values: dict[str, str] = Field(min_length=1)
    final: str
    protected: dict[str, str] = {}
    forbidden: tuple[str, ...] = ()
    review: str | None = None

    @property
    def named(self) -> frozenset[str]:
        """The keys of all controls that it names."""
        review = {self.review} if self.review else set()
        return frozenset({*self.values, *self.protected, *self.forbidden, self.final} | review)

    @model_validator(mode="after")
    def _disjoint(self) -> Expectation:
        if both := set(self.values) & set(self.protected):
            raise ValueError(f"fields both required and protected: {sorted(both)}")
        if self.final in self.forbidden:
            raise ValueError("the final control cannot be forbidden")
        return self


class Task(BaseModel):
    """A goal on a page.

    Attributes:
        id: Unique name; for generated tasks `family/setting/seed`.
        goal: What the user asked, in words.
        form: The page's one source, for generated tasks and the curriculum's proposals.
        page: Page text; for tasks without a form (free pages under a learned world, arbitrary HTML files).
        html: Path-free HTML source of an arbitrary page; only the browser world can run such a task.
        expectation: The right answer where it is known.
        family, stratum, setting, generation: Provenance. `setting` is e.g. `hard-long` or `small`;
            `generation` is the version of the generator that made it.
        split: `bench`, `bench-small` (never trained on) or `train`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(min_length=1)
    goal: str = Field(min_length=1)
    form: FormSpec | None = None
    page: str | None = None
    html: str | None = None
    expectation: Expectation | None = None
    family: str = ""
    stratum: str = ""
    setting: str = ""
    generation: int = 0
    split: str = "train"

    @model_validator(mode="after")
    def _has_one_page(self) -> Task:
        if sum(x is not None for x in (self.form, self.page, self.html)) != 1:
            raise ValueError("a task has exactly one of form, page and html")
        if self.form is not None and self.expectation is not None:
            known = {c.key for c in self.form.controls}
            if missing := self.expectation.named - known:
                raise ValueError(f"the expectation names controls that the form lacks: {sorted(missing)}")
        return self

    @property
    def content_hash(self) -> str:
        """SHA-256 (hex) of everything but the id and split: equal for the same problem under another name."""
        text = self.model_dump_json(exclude={"id", "split"})
        return hashlib.sha256(text.encode()).hexdigest()


AttackGoal = Literal["forbidden", "protected", "wrong_value", "early_end", "own_control", "free"]


@dataclass(frozen=True, slots=True)
class Attack:
    """An injection (`docs/method.md` §2).

    Attributes:
        instruction: z, told to the world at the transition; never shown to the executor as such.
        marker: m, text that must be visible on the page after it.
        turn: d, one-based index of the transition at which it enters.
        target: zeta, the wrong action hoped for, as action text; or None.
        goal: What the attack aims at, for tables.
        source: Who made it: `template`, `none`, or a policy's checkpoint.
    """

    instruction: str
    marker: str
    turn: int = 1
    target: str | None = None
    goal: AttackGoal = "free"
    source: str = "template"


NoticeStatus = Literal["rendered", "softened", "dropped"]


@dataclass(frozen=True, slots=True)
class Notice:
    """How an exact world showed an attack's instruction (`advsim.world.render`).

    Attributes:
        status: `rendered` as asked, `softened` (shown in part) or `dropped` (not shown).
        rule: Name of the rule that softened or dropped it, else "".
        kind: Place and role of the notice.
        text: Text shown.
        control: Label of the button that the notice brings, or None.
    """

    status: NoticeStatus
    rule: str = ""
    kind: Literal["banner", "alert", "dialog"] = "banner"
    text: str = ""
    control: str | None = None


EventKind = Literal["edit", "activate"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was really submitted and activated, as a snapshot (`docs/semantics.md`).

    Attributes:
        submitted: Whether a submission was received. Only the first counts.
        values: Each field's value at that moment, by key; at present, while not submitted.
        events: `(kind, key)` in order up to and including the submission; while not submitted, up to now.
    """

    submitted: bool
    values: Mapping[str, str] = field(default_factory=dict)
    events: tuple[tuple[EventKind, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """One verifier's judgement of one trajectory. An infrastructure failure is never one.

    Attributes:
        good: Whether it succeeded.
        verifier, version: Who judged.
        reasons: One line a failed condition; empty when good.
    """

    good: bool
    verifier: str
    version: str
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One transition: what the executor saw, what it wrote, what the world did.

    Attributes:
        page: Text of the page before the action (exactly what a `full` observation shows).
        completion: The executor's raw text.
        action: Canonical action text, or "" when the completion held none.
        error: `last_action_error` after the step, "" if none.
        notice: The notice that entered at this transition, if an attack did.
    """

    page: str
    completion: str
    action: str
    error: str = ""
    notice: Notice | None = None


@dataclass(frozen=True, slots=True)
class Trajectory:
    """An episode. `error` is set when the infrastructure failed: then there is no verdict and no reward."""

    task_id: str
    steps: tuple[Step, ...]
    final_page: str = ""
    outcome: Outcome | None = None
    attack: Attack | None = None
    error: str | None = None
