"""The symbolic world's page equals the real browser's, line by line, after every action of several agents."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Awaitable, Callable, Sequence
from random import Random

import pytest

from advsim.action import Action, parse
from advsim.agents.scripted import make
from advsim.agents.template import make_attacker
from advsim.form import Control, FormSpec, Table, Text
from advsim.page import Page
from advsim.task import Task
from advsim.world.refuse import options_of
from advsim.world.symbolic import SymbolicWorld
from benchmark_forms import load

pytest.importorskip("playwright")

from browser_eval.pool import BrowserPool
from browser_eval.world import BrowserWorld

pytestmark = pytest.mark.browser
CONCURRENCY = 3

# Given the page, the last error and the turn from 1: an action, and an instruction that enters after it.
Player = Callable[[Page, str, int], Awaitable[tuple[Action, str | None]]]


async def lockstep(world: BrowserWorld, task: Task, player: Player, turns: int) -> str:
    """Play the same moves in both worlds: "" or a report of the first difference."""
    symbolic = SymbolicWorld()
    done: list[str] = []

    def report(lines: Sequence[str]) -> str:
        return "\n".join([f"{task.id}, step {len(done)}: {' ; '.join(done[-12:]) or 'first page'}", *lines])

    here, there = symbolic.reset(task), await world.reset(task)
    for turn in range(1, turns + 1):
        if here != there:
            break
        action, instruction = await player(here, symbolic.last_action_error, turn)
        done.append(action.text + (f" <- {instruction!r}" if instruction else ""))
        here, there = symbolic.step(action, instruction), await world.step(action, instruction)
        ours = (symbolic.last_action_error, symbolic.notice, symbolic.done)
        theirs = (world.last_action_error, world.notice, world.done)
        if ours != theirs:
            return report([f"- symbolic {ours}", f"+ browser  {theirs}"])
        if symbolic.done:
            break
    if here != there:
        lines = difflib.unified_diff(
            here.text.split("\n"), there.text.split("\n"), "symbolic", "browser", lineterm="", n=1
        )
        return report(list(lines))
    if symbolic.outcome() != await world.outcome():
        return report([f"- symbolic {symbolic.outcome()}", f"+ browser  {await world.outcome()}"])
    return ""


def compare(jobs: Sequence[tuple[Task, Player]], turns: int) -> None:
    """Run all jobs in one browser; fails with every report."""

    async def main() -> list[str]:
        async with BrowserPool(concurrency=CONCURRENCY, step_s=60) as pool:

            async def one(task: Task, player: Player) -> str:
                world = pool.world()
                try:
                    return await lockstep(world, task, player, turns)
                finally:
                    await world.close()

            return await asyncio.gather(*(one(task, player) for task, player in jobs))

    reports = [report for report in asyncio.run(main()) if report]
    assert not reports, f"{len(reports)} of {len(jobs)} differ\n" + "\n\n".join(reports[:10])


def scripted(name: str, task: Task, tasks: Sequence[Task], *, attacked: bool) -> Player:
    """An executor of ours, under the template attacker if wished."""
    executor = make(name).begin(task, 0)
    attacker = make_attacker("template", tasks).begin(task, 0) if attacked else None
    injected = False

    async def play(page: Page, error: str, turn: int) -> tuple[Action, str | None]:
        nonlocal injected
        parsed = parse(await executor.act(page, error))
        action = parsed if isinstance(parsed, Action) else Action.of("noop", 0)
        attack = None if attacker is None or injected else await attacker.before(turn, page, action)
        injected = injected or attack is not None
        return action, attack.instruction if attack is not None else None

    return play


@pytest.mark.parametrize("part", range(3))
@pytest.mark.parametrize(
    ("agent", "attacked", "turns"), [("oracle", False, 12), ("random", False, 20), ("obedient", True, 12)]
)
def test_every_page_of_the_benchmark(agent: str, attacked: bool, turns: int, part: int) -> None:
    tasks = load("bench")
    mine = tasks[part::3]
    compare([(task, scripted(agent, task, tasks, attacked=attacked)) for task in mine], turns)


# --- forms and moves that the benchmark does not have ----------------------------------------------------------------

VALUES = {
    "text": ("", "abc", "x  y "),
    "number": ("", "12", "-3.5", "007"),
    "date": ("", "2026-03-12"),
    "textarea": ("", "a", "ab\ncdef\n\ng", "\nlead"),
    "checkbox": ("", "on"),
}
TYPABLE = (
    "abc",
    "12",
    "12.5",
    "-3",
    "2026-05-06",
    "",
    "it's",
    "a\nb\nccc",
    "007",
    "  pad ",
    "日本",
    "é",
    "שלום",
    "👨‍👩‍👧",
    "\x00",
)
TYPED = ("ab", "12", "a b", " ", "x\ny", "é z", "🇩🇪", "\t")
KEYS = (
    "Tab Tab Tab Tab Shift+Tab Shift+Tab Enter Space Escape Backspace Delete Home End "
    "ArrowLeft ArrowRight ArrowUp ArrowDown Control+a x 7 ' F5"
).split()
NOTICES = (
    "Show an alert saying 'Press it now' with a button \"Do it\"",
    "Show a banner: note <b>this</b> {{x}} </script>",
    "Show dialog 'abc def' with a button 'OK now'",
    "Hide all the fields",
)


def any_form(seed: int) -> FormSpec:
    """A form with every kind of control, state and order, which no sensible author would make."""
    rng = Random(seed)
    controls: list[Control] = []
    for i in range(rng.randint(2, 7)):
        kind = rng.choice(("text", "number", "date", "textarea", "select", "radio", "checkbox"))
        choice = kind in ("select", "radio")
        options = tuple(f"Opt {c}" for c in "ABCDE"[: rng.randint(2, 5)]) if choice else ()
        value = rng.choice(options if kind == "select" else ("", *options) if choice else VALUES[kind])
        controls.append(
            Control(
                key=f"k{i}",
                label=f"Field {i}",
                kind=kind,
                value=value,
                options=options,
                disabled=rng.random() < 0.12,
                readonly=not choice and kind != "checkbox" and rng.random() < 0.15,
            )
        )
    for key, label, kind, off in (
        ("rs", "Start over", "reset", 0.0),
        ("esc", "Don't", "button", 0.1),
        ("rev", "Review", "button", 0.0),
        ("go", "Commit", "submit", 0.08),
    ):
        at = rng.randint(0, len(controls)) if rng.random() < 0.3 else len(controls)
        controls.insert(at, Control(key=key, label=label, kind=kind, disabled=rng.random() < off))
    blocks = (Text(text="Rule  <one>."), Table(caption="T", header=("A", "B"), rows=(("1", ""), ("it's", "&amp;"))))
    return FormSpec(
        title=f"Form {seed}",
        blocks=blocks if rng.random() < 0.7 else (),
        controls=tuple(controls),
        review="rev" if rng.random() < 0.5 else None,
    )


def any_move(seed: int) -> Player:
    """Seeded moves of all kinds, many of them refused."""
    rng = Random(seed)

    async def play(page: Page, error: str, turn: int) -> tuple[Action, str | None]:
        instruction = rng.choice(NOTICES) if rng.random() < 0.06 else None
        return _any_action(rng, page), instruction

    return play


def _any_action(rng: Random, page: Page) -> Action:
    numbered = [n for n in page.nodes if n.bid is not None]
    controls = [n for n in numbered if n.role not in ("row", "heading", "table")] or numbered
    node = rng.choice(controls if rng.random() < 0.9 else numbered)
    bid = node.bid if rng.random() < 0.98 else 999
    kind = rng.random()
    if kind < 0.3:
        return Action.of("click", bid)
    if kind < 0.5:
        fitting = {"Date": ("2026-05-06", "", "1999-12-31", "0001-01-01"), "spinbutton": ("", "5", "12.50", "-3")}
        text = rng.choice(fitting.get(node.role, TYPABLE) if rng.random() < 0.9 else TYPABLE)
        return Action.of("fill", bid, text, rng.random() < 0.1)
    if kind < 0.6:
        lists = [n for n in page.nodes if n.role == "combobox" and n.bid is not None]
        if lists:
            chosen = rng.choice(lists)
            assert chosen.bid is not None
            return Action.of("select_option", chosen.bid, rng.choice(options_of(page, chosen.bid)).name)
    if kind < 0.9:
        return Action.of("keyboard_press", rng.choice(KEYS))
    if kind < 0.96:
        return Action.of("keyboard_type", rng.choice(TYPED))
    return rng.choice(
        [Action.of("hover", bid), Action.of("noop", 1000), Action.of("scroll", 0, 100), Action.of("go_back")]
    )


def test_every_kind_of_control_and_move() -> None:
    jobs = [(Task(id=f"any/{seed}", goal="g", form=any_form(seed)), any_move(seed)) for seed in range(40)]
    compare(jobs, 20)


def test_carets_and_selections() -> None:
    """Keys only, in text fields: where the caret stands shows in what the next key does."""
    form = FormSpec(
        title="Text",
        controls=(
            Control(key="a", label="Area", kind="textarea", value="abcdef\nab\n\nabcdefgh"),
            Control(key="t", label="Line", kind="text", value="hello  there"),
            Control(key="n", label="Number", kind="number", value="12"),
            Control(key="rs", label="Reset", kind="reset"),
            Control(key="go", label="Go", kind="submit"),
        ),
    )
    keys = "Home End ArrowLeft ArrowLeft ArrowRight ArrowRight ArrowUp Backspace Delete Control+a x 1 Tab Shift+Tab"

    def player(seed: int) -> Player:
        rng = Random(seed)

        async def play(page: Page, error: str, turn: int) -> tuple[Action, str | None]:
            draw = rng.random()
            if turn == 1 or draw < 0.1:
                return Action.of("click", rng.choice((2, 2, 3, 4, 5))), None
            if draw < 0.25:
                return Action.of("keyboard_type", rng.choice(("q", "zz z", "a\nb", "1", "é", "e\u0301"))), None
            return Action.of("keyboard_press", rng.choice(keys.split())), None

        return play

    compare([(Task(id=f"caret/{seed}", goal="g", form=form), player(seed)) for seed in range(20)], 30)
