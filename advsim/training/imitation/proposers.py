"""What the curriculum and the adversary imitate: valid proposals, and attacks that fit the page."""

from __future__ import annotations

from random import Random

from advsim.action import Action
from advsim.agents import adversary, curriculum
from advsim.agents.curriculum import Hint
from advsim.agents.proposal import ProposalError
from advsim.form import Control, FormSpec, Text
from advsim.page import Page
from advsim.task import Attack, Task
from advsim.training.imitation.drills import drill_task
from advsim.training.imitation.episodes import Message
from advsim.training.imitation.notices import GIVE, GIVE_UP, PRESS, STOP, instruction, sentence
from advsim.training.imitation.small import TITLES, micro_task, value_of
from advsim.training.imitation.source import Source
from advsim.training.imitation.thoughts import Guide
from advsim.world.symbolic import SymbolicWorld


def _ordered(rng: Random, task: Task) -> FormSpec:
    """The task's form with its controls in an order that a small model can keep count of.

    Right fields as the goal or the page names them, protected ones and buttons by their labels; sometimes the
    protected fields come first.
    """
    form, expectation = task.form, task.expectation
    assert form is not None
    assert expectation is not None
    said = task.goal + "\n" + "\n".join(b.text for b in form.blocks if isinstance(b, Text))

    def place(control: Control) -> int:
        at = said.find(control.label)
        return at if at >= 0 else len(said)

    right = sorted((c for c in form.fields if c.key in expectation.values), key=place)
    kept = sorted((c for c in form.fields if c.key in expectation.protected), key=lambda c: c.label)
    other = [c for c in form.fields if c not in right and c not in kept]
    never = sorted((c for c in form.controls if c.key in expectation.forbidden), key=lambda c: c.label)
    last = [c for c in form.controls if not c.is_field and c not in never]
    buttons = [*never, *last] if rng.random() < 0.7 else [*last, *never]
    fields = [*kept, *right] if rng.random() < 0.3 else [*right, *kept]
    return form.model_copy(update={"controls": (*fields, *other, *buttons)})


def curriculum_example(rng: Random, source: Source) -> list[Message]:
    """A valid proposal on the topic asked for, the values stated or to be looked up on the page.

    Labels must differ, and options too. So the two of a role come in alphabetical order from either half of the
    alphabet, no label stands in two roles, and choices are left out: a small model need not remember what it wrote
    to write something else next.
    """
    while True:
        topic = rng.choice(curriculum.TOPICS)
        kind = rng.random()
        if kind < 0.2:
            task = micro_task(rng, topic, plain=True)
        elif kind < 0.7:
            task = drill_task(rng, rng.choice(("key", "key", "join", "span", "traits")), plain=True)
        else:
            task = source.task(rng)
        assert task.expectation is not None
        chosen = [c for c in task.form.fields if c.key in task.expectation.values] if task.form else []
        if len(chosen) > 2 or any(c.options for c in chosen):
            continue
        form = _ordered(rng, task).model_copy(update={"title": rng.choice(TITLES[topic])})
        never = [c.label for c in form.controls if c.key in task.expectation.forbidden]
        kept = [c.label for c in form.fields if c.key in task.expectation.protected]
        asked = [c.label for c in form.fields if c.key in task.expectation.values]
        if len(asked) == 2 and not asked[0][0] < "N" <= asked[1][0]:
            continue
        if not all(
            len(pair) == 2 and pair[0][0] < border <= pair[1][0] for pair, border in ((never, "L"), (kept, "F"))
        ):
            continue
        try:
            text = curriculum.format_proposal(task.goal, form, task.expectation)
        except ValueError:
            continue
        if not isinstance(curriculum.parse(text, source.excluded), ProposalError):
            stratum = task.stratum or rng.choice(("", *curriculum.STRATA))
            ask = curriculum.prompt(rng.randint(1, 3), Hint(topic, stratum if rng.random() < 0.9 else ""))
            return [Message("user", ask), Message("assistant", text, True)]


def attack_on(rng: Random, task: Task, page: Page, turn: int) -> Attack:
    """An attack that fits the page, of one of five aims (`task.AttackGoal`), made from goal and page alone."""
    buttons = [n for n in page.nodes if n.role == "button" and n.bid is not None and n.name not in task.goal]
    boxes = [n for n in page.nodes if n.role == "textbox" and n.bid is not None and n.get("readonly") is None]
    aim = rng.choice(("press", "press", "give", "give", "stop", "own"))
    if aim == "press" and buttons:
        node = rng.choice(buttons)
        text, control = sentence(rng, PRESS, b=node.name), ""
        target = Action.of("click", node.bid)
    elif aim == "give" and boxes:
        node = rng.choice(boxes)
        value = value_of(rng)
        text, control = sentence(rng, GIVE, f=node.name, v=value), ""
        target = Action.of("fill", node.bid, value)
    elif aim == "own":
        control = rng.choice(("OK", "Continue", "Accept", "Go on", "Verify", "Allow", "Refresh"))
        text = sentence(rng, PRESS, b=control)
        target = Action.of("click", page.next_bid + 1)
    else:
        text, control = sentence(rng, STOP), ""
        target = GIVE_UP
    return Attack(instruction(rng, text, control), text, turn, target.text)


def adversary_example(rng: Random, source: Source) -> list[Message]:
    """One decision of the adversary: an attack on the first page, or `wait` or an attack before a pending action."""
    task = source.task(rng)
    world = SymbolicWorld()
    page = world.reset(task)
    assert task.expectation is not None
    if rng.random() < 0.5:
        attack = attack_on(rng, task, page, rng.randint(1, len(task.expectation.values)))
        reply = adversary.format_attack(attack)
        return [Message("user", adversary.static_prompt(task.goal, page)), Message("assistant", reply, True)]
    turn = rng.randint(1, len(task.expectation.values) + 1)
    guide = Guide(task)
    for _ in range(turn - 1):
        page = world.step(guide.move(page).action)
    pending = guide.move(page).action
    prompt = adversary.reactive_prompt(task.goal, page, pending)
    reply = "wait" if rng.random() < 0.4 else adversary.format_attack(attack_on(rng, task, page, turn), reactive=True)
    return [Message("user", prompt), Message("assistant", reply, True)]
