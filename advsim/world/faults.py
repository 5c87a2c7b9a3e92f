"""A world that errs on purpose: the symbolic world with seeded faults, to imitate a learned one.

What is imagined is real here: the displayed page, what later actions meet, and the outcome all follow the fault. A
lost value is lost for the submission too, as in a rollout inside a learned world, whose only state is the page.
"""

from __future__ import annotations

from random import Random
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from advsim.action import Action
from advsim.page import Page
from advsim.seeds import stream
from advsim.task import Notice, Outcome, Task
from advsim.world.audit import Fault, FaultKind
from advsim.world.feasible import ROLES as CONTROL_ROLE
from advsim.world.layout import fold
from advsim.world.refuse import refusal
from advsim.world.render import notice as render_notice
from advsim.world.symbolic import SymbolicWorld

_TABS: Final = 16  # a Tab that would land on a vanished control goes on, at most so often


class FaultModel(BaseModel):
    """Rates of faults, each the probability at one opportunity.

    Attributes:
        lost_value: An action's change of a field's value does not show; the old value stays.
        echoed_value: After any action, some required field that does not hold its target shows it unasked.
        vanished_control: After any action, some field or button disappears for good.
        softened_notice: A notice shows half of its text and no control, or (every other time) not at all.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    lost_value: float = Field(0.0, ge=0, le=1)
    echoed_value: float = Field(0.0, ge=0, le=1)
    vanished_control: float = Field(0.0, ge=0, le=1)
    softened_notice: float = Field(0.0, ge=0, le=1)


class FaultyWorld:
    """The symbolic world with faults (`advsim.world.base.World`).

    Args:
        world: The exact world to err with; it is this world's own from now on.
        rates: How often.
        seed: Fixes every fault: step `n` of a task draws from a stream of its own, so that a fork errs as the
            original does.

    Attributes:
        faults: The faults of the last step, as `advsim.world.audit` names them.
    """

    name = "faulty"

    __slots__ = (
        "_hidden", "_lost", "_page", "_seed", "_steps", "_task", "_world", "done", "faults", "last_action_error",
        "notice", "rates", "version",
    )  # fmt: skip

    def __init__(self, world: SymbolicWorld, rates: FaultModel, seed: int = 0) -> None:
        self._world, self.rates, self._seed = world, rates, seed
        given = ", ".join(f"{k}={v:g}" for k, v in rates.model_dump().items() if v)
        self.version = f"{world.version} ({given or 'no faults'})"
        self._task: Task | None = None
        self._page = Page(())
        self._steps = 0
        self._hidden: frozenset[int] = frozenset()  # bids that have vanished
        self._lost: frozenset[str] = frozenset()  # keys of fields that had vanished when the form was submitted
        self.faults: tuple[Fault, ...] = ()
        self.last_action_error = ""
        self.notice: Notice | None = None
        self.done = False

    def reset(self, task: Task) -> Page:
        """See `World.reset`; the first page is exact."""
        self._page = self._world.reset(task)
        self._task = task
        self._steps = 0
        self._hidden, self._lost, self.faults = frozenset(), frozenset(), ()
        self.last_action_error, self.notice, self.done = "", None, False
        return self._page

    def step(self, action: Action, instruction: str | None = None) -> Page:
        """See `World.step`. What was refused changes nothing, and then only a notice can go wrong."""
        task, world = self._task, self._world
        if task is None:
            raise RuntimeError("call reset() first")
        rng = stream(self._seed, "faults", task.id, self._steps)
        self._steps += 1
        lose, echo, vanish, soften = rng.random(), rng.random(), rng.random(), rng.random()
        self.faults = ()
        self.notice = None
        error = refusal(self._page, action)
        self.last_action_error = error or ""
        if error is not None and instruction is None:
            return self._page
        told = instruction
        notice: Notice | None = None
        if instruction is not None and soften < self.rates.softened_notice:
            told, notice = self._soften(instruction, drop=rng.random() < 0.5)
        submitted, values = world._outcome is not None, world._values
        self._do(Action.of("noop", 0) if error is not None else action, told)
        if told is not None or notice is not None:
            self.notice = notice or world.notice
        self.done = world.done
        if error is None and world._outcome is None:
            self._err(task, values, lose, echo, vanish, rng)
        if world._outcome is not None and not submitted:
            self._lost = frozenset(self._vanished_keys())
        return self._show()

    def fork(self) -> FaultyWorld:
        """See `World.fork`; the fork meets the same faults at the same steps."""
        twin = FaultyWorld(self._world.fork(), self.rates, self._seed)
        twin._task, twin._page, twin._steps = self._task, self._page, self._steps
        twin._hidden, twin._lost, twin.faults = self._hidden, self._lost, self.faults
        twin.last_action_error, twin.notice, twin.done = self.last_action_error, self.notice, self.done
        return twin

    def outcome(self) -> Outcome:
        """See `World.outcome`: that of the imagined page; a field that had vanished was not submitted."""
        real = self._world.outcome()
        without = self._lost if real.submitted else frozenset(self._vanished_keys())
        if not without:
            return real
        return Outcome(real.submitted, {k: v for k, v in real.values.items() if k not in without}, real.events)

    # --- errors. This class is the symbolic world's other half and changes its state where no action could. ------

    def _do(self, action: Action, instruction: str | None) -> None:
        """Carry an action out among the controls that are still there."""
        world = self._world
        layout = world._layout
        button = layout.of[layout.submit][0]
        if button.bid in self._hidden and world._outcome is None:
            # No default button, no implicit submission.
            if action.name == "fill" and action.args["press_enter"]:
                action = Action.of("fill", action.bid, action.args["text"])
            elif action.name == "keyboard_press" and action.args["key"] == "Enter":
                focus = world._focus
                if focus is not None and focus.kind not in ("textarea", "button", "reset", "notice"):
                    action = Action.of("noop", 0)
        world.step(action, instruction)
        if action.name == "keyboard_press" and action.args["key"] in ("Tab", "Shift+Tab"):
            for _ in range(_TABS):
                if world._focus is None or world._focus.bid not in self._hidden:
                    break
                world.step(action)

    def _err(self, task: Task, values: tuple[str, ...], lose: float, echo: float, vanish: float, rng: Random) -> None:
        world, rates = self._world, self.rates
        controls = world._layout.form.controls
        changed = [i for i, value in enumerate(world._values) if value != values[i]]
        touched = set(changed)
        found: list[Fault] = []
        if len(changed) == 1 and lose < rates.lost_value and not self._is_hidden(changed[0]):
            at = changed[0]
            found.append(Fault("lost_value", self._where(at), world._values[at], values[at]))
            self._imagine(at, values[at])
        if echo < rates.echoed_value and task.expectation is not None:
            targets = task.expectation.values
            candidates = [
                i
                for i, c in enumerate(controls)
                if c.key in targets
                and world._values[i] != targets[c.key]
                and i not in touched
                and not self._is_hidden(i)
            ]
            if candidates:
                at = rng.choice(candidates)
                target = targets[controls[at].key]
                # An empty target is no value that could be echoed: the value is lost.
                kind: FaultKind = "echoed_value" if target else "lost_value"
                found.append(Fault(kind, self._where(at), world._values[at], target))
                self._imagine(at, target)
                touched.add(at)
        if vanish < rates.vanished_control:
            focus = world._focus
            candidates = [
                i
                for i in range(len(controls))
                if i not in touched and not self._is_hidden(i) and (focus is None or focus.control != i)
            ]
            if candidates:
                at = rng.choice(candidates)
                found.append(Fault("vanished_control", self._where(at)))
                parts = world._layout.of[at]
                bids = {p.bid for p in parts}
                if controls[at].kind == "radio":
                    bids.add(parts[0].bid - 1)  # the group's own line
                self._hidden |= bids
        self.faults = (*self.faults, *found)

    def _imagine(self, control: int, value: str) -> None:
        """Give a field a value that nobody gave it."""
        world = self._world
        world._values = (*world._values[:control], value, *world._values[control + 1 :])
        world._redraw(*world._layout.of[control])
        if world._focus is not None and world._focus.control == control:
            world._caret, world._selected = len(value), False

    def _soften(self, instruction: str, *, drop: bool) -> tuple[str | None, Notice | None]:
        """The instruction to give instead, and the notice to report; unchanged where nothing would be shown anyway."""
        meant = render_notice(instruction, self._page)
        if meant.status == "dropped":
            return instruction, None
        words = meant.text.split()
        half = " ".join(words[: (len(words) + 1) // 2])
        told = f'Show a {meant.kind} with the text "{half}"'
        shown = render_notice(told, self._page)
        where = f"{meant.kind} {meant.text[:40]!r}"
        if (
            drop
            or shown.status != "rendered"
            or shown.text != half
            or (shown.text, shown.control)
            == (
                meant.text,
                meant.control,
            )
        ):
            self.faults = (Fault("missing_notice", where, meant.text),)
            return None, Notice("dropped", "fault", meant.kind)
        self.faults = (Fault("softened_notice", where, f"{meant.text} / {meant.control}", f"{half} / None"),)
        return told, Notice("softened", "fault", meant.kind, half)

    def _show(self) -> Page:
        """The page without what has vanished."""
        page = self._world._compose()
        if self._hidden:
            page = Page(tuple(n for n in page.nodes if n.bid not in self._hidden))
        self._page = page
        return page

    def _is_hidden(self, control: int) -> bool:
        return self._world._layout.of[control][0].bid in self._hidden

    def _vanished_keys(self) -> list[str]:
        controls = self._world._layout.form.controls
        return [c.key for i, c in enumerate(controls) if self._hidden and self._is_hidden(i)]

    def _where(self, control: int) -> str:
        spec = self._world._layout.form.controls[control]
        return f"{CONTROL_ROLE[spec.kind]} {fold(spec.label)!r}"
