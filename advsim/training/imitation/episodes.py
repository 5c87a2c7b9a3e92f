"""The executor's conversations to imitate: episodes done right in the exact world, thoughts included."""

from __future__ import annotations

from random import Random
from typing import Final, Literal, NamedTuple

from advsim.action import Action
from advsim.agents import curriculum, executor
from advsim.form import Control, FormSpec
from advsim.page import Page
from advsim.task import Task
from advsim.training.imitation.evidence import minus, packs, plus, times
from advsim.training.imitation.notices import GIVE_UP, Order, order_for
from advsim.training.imitation.small import BUTTONS, KEPT, LABELS, TITLES, value_of
from advsim.training.imitation.source import Source
from advsim.training.imitation.thoughts import Guide, Move, button
from advsim.world.symbolic import SymbolicWorld
from benchmark_forms import words
from benchmark_forms.fields import slug
from benchmark_forms.oracle import DONE

MAX_ACTIONS: Final = 12
SILENT: Final = 0.45
"""Share of the demonstrators who act without writing a thought: as right as others, which a small model is not then."""
UNHEEDED: Final = 0.45
"""Share of the notices that the demonstrator leaves alone and goes on; no word tells them from those obeyed."""


class Message(NamedTuple):
    """A chat message; `learn` tells whether its tokens are imitated (assistant messages that are right)."""

    role: Literal["user", "assistant"]
    content: str
    learn: bool = False


def executor_example(
    rng: Random,
    source: Source,
    notices: float = 0.3,
    stumbles: float = 0.1,
    silent: float = SILENT,
    unheeded: float = UNHEEDED,
) -> list[Message]:
    """An episode done right, in `diff` observations; some have a notice to obey, some a wrong step put right.

    Demonstrators differ, as people do: in whether they write what they think, and in what they make of a notice.
    What pays is left for training to find out.

    Args:
        rng: Decides everything.
        source: Where the task comes from.
        notices: Share of episodes in which a notice enters.
        stumbles: Share of episodes with one wrong action, which is not imitated but recovered from.
        silent: Share of episodes without thoughts.
        unheeded: Share of the notices that are left alone.
    """
    task = source.task(rng)
    thinks, heeds = rng.random() >= silent, rng.random() >= unheeded
    order: Order | None = None
    if rng.random() < (notices if task.id not in ("drill", "wide") else notices / 3):
        task, order = order_for(rng, task)
    assert task.expectation is not None
    assert task.form is not None
    turn_of_order = rng.randint(1, len(task.expectation.values) + (1 if task.expectation.review else 0)) if order else 0
    stumble = rng.randint(1, len(task.expectation.values) + 1) if rng.random() < stumbles else 0
    guide = Guide(task)
    world = SymbolicWorld()
    page = world.reset(task)
    messages = [Message("user", executor.first_message(task.goal, page))]
    press, first, stopped = "", "", False
    for turn in range(1, MAX_ACTIONS + 1):
        learn = True
        bid = button(page, press) if press else None
        if stopped:
            move = Move("stop", GIVE_UP)
        elif bid is not None:
            move = Move(press, Action.of("click", bid))
        else:
            move = guide.move(page, first)
            if turn == stumble:
                move, learn = Move("", _wrong(rng, page, move.action)), False
                guide.forget()
        press, first = "", ""
        messages.append(Message("assistant", move.text if thinks else move.action.text, learn))
        before = page
        page = world.step(move.action, order.instruction if order and turn == turn_of_order else None)
        if world.done:
            break
        if order and heeds and turn == turn_of_order and world.notice and world.notice.status != "dropped":
            press, stopped = order.press, order.stop
            if order.values:
                guide.expect(order.values)
                first = order.values[0][0]
        messages.append(Message("user", executor.next_message(before, page, world.last_action_error)))
    return messages


def pressing_example(rng: Random, silent: float = SILENT) -> list[Message]:
    """Several buttons to be pressed in the order that the goal says, the last of them the submit button.

    Which number belongs to a named button is the last thing that a small model learns from whole tasks, where it is
    asked once an episode among many easier tokens; here it is asked every turn.
    """
    thinks = rng.random() >= silent
    names = rng.sample(sorted({*BUTTONS, *words.SHORT_FINAL, *words.SHORT_COMMIT, *words.COMMIT}), rng.randint(3, 7))
    fields = [
        Control(key=slug(x), label=x, kind="text", value=value_of(rng), readonly=rng.random() < 0.3)
        for x in rng.sample((*KEPT, *LABELS), rng.randint(0, 5))
    ]
    order = rng.sample(names, rng.randint(1, min(4, len(names))))
    buttons = [Control(key=slug(x), label=x, kind="submit" if x == order[-1] else "button") for x in names]
    controls = [*fields, *buttons]
    if rng.random() < 0.3:
        rng.shuffle(controls)
    topic = rng.choice(curriculum.TOPICS)
    form = FormSpec(title=rng.choice(TITLES[topic]), controls=tuple(controls))
    listed = order[0] if len(order) == 1 else f"{', '.join(order[:-1])}, then {order[-1]}"
    kept = rng.choice(("Keep {} and {}.", "Do not change {} or {}.", "Leave {} and {}."))
    keep = f" {kept.format(*(c.label for c in fields[:2]))}" if len(fields) > 1 and rng.random() < 0.7 else ""
    task = Task(id="pressing", goal=f"{rng.choice(('Press', 'Then press'))} {listed}.{keep}", form=form)
    world = SymbolicWorld()
    page = world.reset(task)
    messages = [Message("user", executor.first_message(task.goal, page))]
    for name in order:
        before = page
        move = Move(name, Action.of("click", button(page, name)))
        page = world.step(move.action)
        messages.append(Message("assistant", move.text if thinks else move.action.text, True))
        messages.append(Message("user", executor.next_message(before, page, world.last_action_error)))
    return [*messages, Message("assistant", Move("", Action.of("send_msg_to_user", DONE)).text, True)]


def sums_example(rng: Random) -> list[Message]:
    """Sums and nothing else, as thoughts write them: what is reckoned once a page elsewhere is a line here."""
    made = []
    for _ in range(rng.randint(12, 30)):
        kind = rng.random()
        if kind < 0.45:
            made.append(plus(rng.randint(1, 60), rng.randint(1, 28)))
        elif kind < 0.6:
            a = rng.randint(2, 90)
            made.append(minus(a, rng.randint(max(1, a - 10), a) if rng.random() < 0.6 else rng.randint(1, min(9, a))))
        elif kind < 0.8:
            made.append(
                times(rng.randint(2, 19), rng.randint(1, 5)) if kind < 0.7 else times(*rng.sample(range(2, 11), 2))
            )
        else:
            size = rng.randint(2, 10)
            made.append(packs(size * rng.randint(2, 9) - rng.randint(0, size - 1), size))
    asked = ", ".join(x.partition("=")[0] for x in made)
    return [Message("user", f"Sums: {asked}."), Message("assistant", f"<think>{chr(10).join(made)}</think>", True)]


def _wrong(rng: Random, page: Page, right: Action) -> Action:
    """A plausible slip in place of the right action, none that cannot be put right."""
    boxes = [n for n in page.nodes if n.role == "textbox" and n.bid is not None]
    if boxes and rng.random() < 0.7:
        return Action.of("fill", rng.choice(boxes).bid, value_of(rng))
    return Action.of(
        "click", rng.choice([n.bid for n in page.nodes if n.role in ("heading", "textbox", "combobox")] or [right.bid])
    )
