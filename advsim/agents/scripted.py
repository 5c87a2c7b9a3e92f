"""Scripted executors: the yardsticks that every evaluation is read against.

===========  =====================================================================================================
`oracle`     does the task from its expectation and never looks at notices: proves that the task can be done
`wary`       the oracle that reads notices and does nothing that they say
`obedient`   the oracle that does what a notice says, once, and does not correct it: proves that an attack can work
`random`     a seeded mix of all kinds of actions, valid, refused and misspelt
`noop`       waits
===========  =====================================================================================================

The first three need a generated form, or a page of one's own in the browser, which tells the keys of its controls
(`advsim.agents.keyed`). They write canonical action texts, as a perfect model would.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from advsim.action import Action
from advsim.agents import keyed
from advsim.agents.protocol import Executor, ExecutorSession
from advsim.agents.wording import Order, read
from advsim.page import Node, Page
from advsim.seeds import stream
from advsim.task import Expectation, Task
from advsim.world.refuse import KEYS, TEXT_ROLES
from advsim.world.render import NOTICE_NAME
from benchmark_forms.oracle import edit, next_action

NOTICE_ROLES: Final = frozenset({"banner", "alert", "dialog"})
NAMES: Final = ("oracle", "wary", "obedient", "random", "noop")


def make(name: str) -> Executor:
    """A scripted executor by name (`NAMES`). Raises ValueError for another one."""
    sessions: dict[str, Callable[[Task, int], ExecutorSession]] = {
        "oracle": lambda task, seed: _Oracle(task),
        "wary": lambda task, seed: _Oracle(task),
        "obedient": lambda task, seed: _Obedient(task),
        "random": _Random,
        "noop": lambda task, seed: _Noop(),
    }
    if name not in sessions:
        raise ValueError(f"unknown executor {name!r}: expected one of {', '.join(NAMES)}")
    return _Scripted(name, sessions[name])


class _Scripted:
    """An executor without weights (`advsim.agents.protocol.Executor`)."""

    checkpoint = "scripted-1"

    def __init__(self, name: str, session: Callable[[Task, int], ExecutorSession]) -> None:
        self.name = name
        self._session = session

    def begin(self, task: Task, seed: int) -> ExecutorSession:
        """See `Executor.begin`. Raises ValueError when the script needs an expectation and the task has none."""
        return self._session(task, seed)


class _Noop:
    async def act(self, page: Page, error: str) -> str:
        return Action.of("noop", 0).text  # a browser with the scripts of others really waits

    def fork(self, turns: int) -> _Noop:
        return self


class _Oracle:
    """On generated forms it needs no memory: the page says what is still to do. On other pages it keeps its deeds."""

    def __init__(self, task: Task) -> None:
        self._expectation = _check(task)
        self._task = task
        self._turn = 0
        self._deeds = keyed.Deeds()

    async def act(self, page: Page, error: str) -> str:
        self._turn += 1
        if error:
            self._deeds.refused(self._turn - 1)
        return self._next(page, self._task, self._expectation)

    def fork(self, turns: int) -> _Oracle:
        twin = _Oracle(self._task)
        twin._resume(self, turns)
        return twin

    def _resume(self, other: _Oracle, turns: int) -> None:
        self._turn = min(turns, other._turn)
        self._deeds = other._deeds.until(turns)

    def _next(self, page: Page, task: Task, expectation: Expectation) -> str:
        try:
            if task.form is not None:
                return next_action(task, page).text
            action, deed = keyed.next_action(expectation, page, self._deeds)
        except LookupError as lack:  # a world that is not exact may lose a control
            return Action.of("infeasible", str(lack)).text
        if deed is not None:
            self._deeds.add(self._turn, deed)
        return action.text


class _Obedient(_Oracle):
    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._obeyed_at = 0
        self._order: Order | None = None
        self._key: str | None = None  # of the control that the order sets

    async def act(self, page: Page, error: str) -> str:
        if not self._obeyed_at and (found := _asked(page)) is not None:
            action = _obey(self._task, page, found)
            if action is not None:
                self._turn += 1
                if error:
                    self._deeds.refused(self._turn - 1)
                self._obeyed_at, self._order = self._turn, found
                self._key = self._key_of(page, found, action)
                self._note(page, found, action)
                return action.text
        return await super().act(page, error)

    def fork(self, turns: int) -> _Obedient:
        twin = _Obedient(self._task)
        twin._resume(self, turns)
        if 0 < self._obeyed_at <= turns:
            twin._obeyed_at, twin._order, twin._key = self._obeyed_at, self._order, self._key
        return twin

    def _note(self, page: Page, order: Order, action: Action) -> None:
        """What is done in obedience has been done: a pressed final control is not pressed again."""
        key = page.keys.get(action.bid) if action.bid is not None else None
        if key is not None:
            self._deeds.add(self._turn, ("press" if order.deed == "press" else "edit", key))

    def _key_of(self, page: Page, order: Order, action: Action) -> str | None:
        """The key of the field that the order sets, if the task has a value for it."""
        if order.deed != "set":
            return None
        form = self._task.form
        if form is None:
            key = page.keys.get(action.bid) if action.bid is not None else None
            return key if key in self._expectation.values else None
        labelled = (c.key for c in form.controls if c.label == order.label)
        return next((key for key in labelled if key in self._expectation.values), None)

    def _next(self, page: Page, task: Task, expectation: Expectation) -> str:
        """The order's value stands in place of the right one, so that the oracle lets it be."""
        if self._key is not None and self._order is not None:
            values = {**expectation.values, self._key: self._order.value}
            expectation = expectation.model_copy(update={"values": values})
            task = task.model_copy(update={"expectation": expectation})
        return super()._next(page, task, expectation)


def _check(task: Task) -> Expectation:
    if (task.form is None and task.html is None) or task.expectation is None:
        what = "has no expectation" if task.page is None else "is no form and no HTML page"
        raise ValueError(
            f"task {task.id!r} {what}, and oracle, wary and obedient need both; "
            "random, noop, base and adapters can meet it"
        )
    return task.expectation


def _asked(page: Page) -> Order | None:
    """What the first notice on the page asks for.

    Its own button where the text holds no order that can be read: any other author's notice.
    """
    holder: Node | None = None
    texts: list[str] = []
    button: Node | None = None
    for node in page.nodes:
        if holder is not None:
            if node.depth <= holder.depth:
                break
            if node.role == "StaticText":
                texts.append(node.name)
            elif node.role == "button" and button is None:
                button = node
        elif node.role in NOTICE_ROLES:
            holder = node
            if node.name != NOTICE_NAME:
                texts.append(node.name)  # a learned world may put the text into the name
    order = read(" ".join(texts))
    if order is None and button is not None:
        return Order("press", button.name)
    return order


def _obey(task: Task, page: Page, order: Order) -> Action | None:
    """The action that does what is asked; None if the page gives no way."""
    if order.deed == "stop":
        return Action.of("infeasible", "The page says that the task cannot be completed.")
    if order.deed == "press":
        bid = next((n.bid for n in page.nodes if n.role == "button" and n.name == order.label), None)
        return None if bid is None else Action.of("click", bid)
    if task.form is None:
        fields = (keyed.give(page, n, order.value) for n in page.nodes if n.name == order.label and n.bid is not None)
        return next((action for action in fields if action is not None), None)
    control = next((c for c in task.form.fields if c.label == order.label), None)
    try:
        return None if control is None else edit(page, control, order.value)
    except LookupError:
        return None


class _Random:
    """Each turn draws from a stream of its own, so that a fork goes on as the original does."""

    def __init__(self, task: Task, seed: int) -> None:
        self._task, self._seed = task, seed
        self._turn = 0

    async def act(self, page: Page, error: str) -> str:
        self._turn += 1
        return random_action(page, stream(self._seed, "random", self._task.id, self._turn))

    def fork(self, turns: int) -> _Random:
        twin = _Random(self._task, self._seed)
        twin._turn = min(turns, self._turn)
        return twin


_TEXTS: Final = ("12", "7.5", "-3", "2026-03-12", "Ann Lee", 'it\'s "so"', "", "a\nb", "ß 🙂", "x" * 40)
_REFUSED: Final = (
    Action.of("mouse_click", 10, 20),
    Action.of("mouse_move", 1, 1),
    Action.of("goto", "https://example.org/"),
    Action.of("go_back"),
    Action.of("tab_new"),
)
_HARMLESS: Final = (Action.of("noop"), Action.of("scroll", 0, 200))
_BROKEN: Final = ("click(", "press the button", "fill(3)", "")


def random_action(page: Page, rng: Random) -> str:
    """One action text out of a wide mix: mostly on elements of the page, some keys, some refused, few misspelt."""
    bids = [node.bid for node in page.nodes if node.bid is not None]
    roll = rng.random()
    if roll < 0.02:
        return Action.of("send_msg_to_user", "Done.").text
    if roll < 0.04:
        return rng.choice(_BROKEN)
    if roll < 0.08:
        return rng.choice(_REFUSED).text
    if roll < 0.12:
        return rng.choice(_HARMLESS).text
    if roll < 0.32:
        key = rng.choice([*sorted(KEYS), "Tab", "Tab", "a", "5", "F5"])
        return Action.of("keyboard_press", key).text
    if roll < 0.42:
        return Action.of("keyboard_type", rng.choice(_TEXTS)).text
    if roll < 0.47 or not bids:
        wrong = rng.choice([0, max(bids, default=0) + rng.randint(1, 50)])
        return Action.of(rng.choice(("click", "hover")), wrong).text
    if roll < 0.50:
        return Action.of("click", rng.choice(bids), button=rng.choice(("left", "right")), modifiers=["Shift"]).text
    node = rng.choice([n for n in page.nodes if n.bid is not None])
    if roll < 0.55:
        return Action.of("hover", node.bid).text
    if node.role in TEXT_ROLES and roll < 0.92:
        return Action.of("fill", node.bid, rng.choice(_TEXTS), press_enter=rng.random() < 0.05).text
    if node.role == "combobox" and roll < 0.85:
        options = [n.name for n in page.nodes if n.role == "option"]
        return Action.of("select_option", node.bid, rng.choice([*options, "no such option"])).text
    return Action.of("click", node.bid).text
