"""`advsim speed`: the speeds that the project promises, each beside its yardstick, measured in one run.

Figures of the symbolic world and the environment are in CPU time of one core, the median of several runs, so that a
busy machine does not change them. Figures of the browser are in wall time, with every reset counted.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

from advsim.action import Action, parse
from advsim.console import complain, show
from advsim.page import Page
from advsim.task import Task
from advsim.world.symbolic import SymbolicWorld

BARS: Final = {
    "world_transitions_per_s": 30_000,
    "env_steps_per_s": 10_000,
    "fork_per_step": 1,
    "browser_150_s": 60,
    "browser_vs_browsergym": 10,
}
"""What is promised (`DESIGN.md` §7): at least, for the ratio to a step and the seconds at most."""

_ROOT: Final = Path(__file__).resolve().parent.parent
_BROWSERGYM_PYTHON: Final = _ROOT / ".venv-browsergym" / "bin" / "python"
_BROWSERGYM_SCRIPT: Final = _ROOT / "benchmarks" / "browsergym_speed.py"
_RANDOM_ACTIONS: Final = 10  # a task, beside those of the oracle
_TABS: Final = 4

Episode = tuple[Task, list[Action]]


def measure(
    tasks: Sequence[Task] | None = None,
    *,
    seconds: float = 1.0,
    repeats: int = 5,
    browser: bool = True,
    browsergym_forms: int = 10,
) -> dict[str, Any]:
    """Measure everything and print a table.

    Args:
        tasks: What to do; the frozen benchmark by default.
        seconds: CPU time of one run of one figure.
        repeats: Runs of which the median counts.
        browser: Whether to measure the browser too.
        browsergym_forms: How many of the forms BrowserGym does for the comparison; 0 leaves it out.

    Returns:
        Figures by name; None where something that is needed is not installed (a hint is printed).
    """
    if tasks is None:
        from benchmark_forms import load

        tasks = load("bench")
    episodes = [_episode(task, n) for n, task in enumerate(tasks)]
    figures: dict[str, Any] = {
        "world_transitions_per_s": _median(lambda: _world(episodes, seconds), repeats),
        "world_oracle_transitions_per_s": _median(lambda: _world([oracle(t) for t in tasks], seconds), repeats),
        "floor_transitions_per_s": _median(lambda: _floor(tasks, seconds), repeats),
        "env_steps_per_s": _median(lambda: _env(tasks, seconds), repeats),
        "fork_per_step": _median(lambda: _fork(episodes, seconds), repeats),
        **_browser(tasks, browser, browsergym_forms),
    }
    figures = {k: round(v, 3) if isinstance(v, float) else v for k, v in figures.items()}
    _print(figures)
    return figures


# --- one core ---------------------------------------------------------------------------------------------------


def oracle(task: Task) -> Episode:
    """A task with the oracle's actions."""
    from benchmark_forms import plan

    return task, plan(task)


def _episode(task: Task, seed: int) -> Episode:
    """A task with actions of all kinds: random ones on the pages that they lead to, then the oracle's."""
    from advsim.agents.scripted import random_action

    rng = Random(seed)
    world = SymbolicWorld()
    page = world.reset(task)
    mixed: list[Action] = []
    while len(mixed) < _RANDOM_ACTIONS:
        action = parse(random_action(page, rng))
        if isinstance(action, Action):
            mixed.append(action)
            page = world.step(action)
    return task, [*mixed, *oracle(task)[1]]


def _median(run: Callable[[], float], repeats: int) -> float:
    return statistics.median(run() for _ in range(repeats))


def _world(episodes: Sequence[Episode], seconds: float) -> float:
    """Transitions a second, each with its page as text; resets are in the time."""
    world = SymbolicWorld()
    done, size = 0, 0
    began = time.process_time()
    while (spent := time.process_time() - began) < seconds:
        for task, actions in episodes:
            world.reset(task)
            for action in actions:
                size += len(world.step(action).text)
            done += len(actions)
    assert size  # the text is used
    return done / spent


def _floor(tasks: Sequence[Task], seconds: float) -> float:
    """The least that plain Python does for a next page: exchange two lines of a list and join it."""
    pages = [SymbolicWorld().reset(task).text.split("\n") for task in tasks]
    done, size = 0, 0
    began = time.process_time()
    while (spent := time.process_time() - began) < seconds:
        for lines in pages:
            for n in range(10):
                changed = list(lines)
                changed[-1] = "\t[9] button 'Send', focused"
                changed[n % len(lines)] = "\t[2] textbox 'Amount', value='12.50'"
                size += len("\n".join(changed))
            done += 10
    assert size
    return done / spent


def _env(tasks: Sequence[Task], seconds: float) -> float:
    """Steps a second of the environment as `gymnasium.make` gives it; parsing, judging and resets are in the time."""
    import gymnasium

    env: gymnasium.Env[Any, str] = gymnasium.make("advsim/Forms-v0", tasks=tasks)
    texts = {task.id: [action.text for action in oracle(task)[1]] for task in tasks}
    env.reset(seed=0)
    done = 0
    began = time.process_time()
    while (spent := time.process_time() - began) < seconds:
        for _ in range(50):
            _, info = env.reset()
            for text in texts[info["task"]]:
                env.step(text)
            done += len(texts[info["task"]])
    env.close()
    return done / spent


def _fork(episodes: Sequence[Episode], seconds: float) -> float:
    """The time of a fork by the time of a step, at the same states."""
    world = SymbolicWorld()
    forks, steps, done = 0.0, 0.0, 0
    clock = time.process_time
    began = clock()
    while clock() - began < seconds:
        for task, actions in episodes:
            world.reset(task)
            for action in actions:
                a = clock()
                for _ in range(20):
                    world.fork()
                b = clock()
                world.step(action)
                forks += (b - a) / 20
                done += 1
            world.reset(task)
            a = clock()
            for action in actions:
                world.step(action)
            steps += clock() - a
    return forks / steps


# --- the browser ------------------------------------------------------------------------------------------------


def _browser(tasks: Sequence[Task], wanted: bool, compared: int) -> dict[str, Any]:
    figures: dict[str, Any] = {
        "browser_steps_per_s": None,
        "browser_150_s": None,
        "browser_errors": None,
        "browsergym_steps_per_s": None,
        "browser_vs_browsergym": None,
    }
    if not wanted:
        return figures
    try:
        steps, wall, errors = asyncio.run(_browser_episodes(tasks))
    except (ModuleNotFoundError, RuntimeError) as failure:
        complain(f"the browser was not measured: {failure}")
        return figures
    figures["browser_steps_per_s"] = steps / wall
    figures["browser_150_s"] = wall * 150 / len(tasks)
    figures["browser_errors"] = errors
    if compared:
        # Tasks spread over the benchmark, so that all kinds of forms are among them.
        some = [tasks[i * len(tasks) // min(compared, len(tasks))] for i in range(min(compared, len(tasks)))]
        theirs = _browsergym(some)
        if theirs is not None:
            steps, wall, _ = asyncio.run(_browser_episodes(some))
            figures["browsergym_steps_per_s"] = theirs
            figures["browser_vs_browsergym"] = steps / wall / theirs
    return figures


async def _browser_episodes(tasks: Sequence[Task]) -> tuple[int, float, int]:
    """The oracle's steps in all episodes, the seconds they took after the browser had started, and failed episodes."""
    from advsim.agents.scripted import make
    from advsim.evaluate import evaluate, worlds

    async with worlds("browser", jobs=_TABS) as make_world:
        await evaluate(tasks[:1], make_world, make("oracle"), concurrency=1)  # start-up is not measured
        began = time.perf_counter()
        rows = await evaluate(tasks, make_world, make("oracle"), concurrency=_TABS)
        wall = time.perf_counter() - began
    return sum(len(row.steps) for row in rows), wall, sum(row.error is not None for row in rows)


def _browsergym(tasks: Sequence[Task]) -> float | None:
    """BrowserGym's steps a second on these forms, its resets left out; None if it is not installed or fails."""
    if not (_BROWSERGYM_PYTHON.exists() and _BROWSERGYM_SCRIPT.exists()):
        complain("BrowserGym was not measured: it needs its own environment; make it with `make bench-browsergym`")
        return None
    from browser_eval.html import form_page

    forms = [
        {"html": form_page(task.form, "/submit"), "actions": browsergym_actions(task)}
        for task in tasks
        if task.form is not None
    ]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "forms.json"
        source.write_text(json.dumps(forms), encoding="utf-8")
        static = _ROOT / "browser_eval" / "static"
        command = [str(part) for part in (_BROWSERGYM_PYTHON, _BROWSERGYM_SCRIPT, source, "--static", static)]
        command += ["--chromium", asyncio.run(_chromium())]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["no reason given"]
        reason = next((line for line in said if line.startswith("browsergym_speed:")), said[-1])
        complain(f"BrowserGym was not measured: {reason}")
        return None
    return float(json.loads(done.stdout)["steps_per_s"])


async def _chromium() -> str:
    """The Chromium of our own measurement, for the other one."""
    from playwright.async_api import async_playwright

    from browser_eval.chromium import find_chromium

    async with async_playwright() as playwright:
        return find_chromium(playwright)


def browsergym_actions(task: Task) -> list[dict[str, str]]:
    """The oracle's actions as the comparison's script reads them: elements by label and group, without numbers."""
    world = SymbolicWorld()
    page = world.reset(task)
    actions: list[dict[str, str]] = []
    for action in oracle(task)[1]:
        if action.bid is None:
            continue
        actions.append(_named(page, action))
        page = world.step(action)
    return actions


def _named(page: Page, action: Action) -> dict[str, str]:
    index = page.index_of(action.bid) if action.bid is not None else None
    assert index is not None  # the oracle acts on what is there
    node = page.nodes[index]
    named = {"kind": action.name, "label": node.name}
    if action.name == "fill":
        named["value"] = str(action.args["text"])
    elif action.name == "select_option":
        options = action.args["options"]
        assert isinstance(options, tuple)
        named["value"] = options[0]
    elif node.role == "radio":
        named["group"] = next(n.name for n in reversed(page.nodes[:index]) if n.role == "radiogroup")
    return named


# --- the table --------------------------------------------------------------------------------------------------


def _print(figures: dict[str, Any]) -> None:
    def number(key: str, unit: str = "") -> str:
        value = figures.get(key)
        if value is None:
            return "not measured"
        return f"{value:,.0f}{unit}" if value >= 100 else f"{value:.3g}{unit}"

    floor = figures["floor_transitions_per_s"]
    share = figures["world_transitions_per_s"] / floor
    lines = [
        ["symbolic world, transitions a second with page text", number("world_transitions_per_s"), "≥ 30,000"],
        ["  the oracle's actions alone", number("world_oracle_transitions_per_s"), ""],
        [f"  plain Python: two lines exchanged, list joined (we: {share:.2f} of it)", f"{floor:,.0f}", "floor"],
        ["env.step a second, as gymnasium.make gives it", number("env_steps_per_s"), "≥ 10,000"],
        ["a fork, in steps", number("fork_per_step"), "≤ 1"],
        ["browser, steps a second, resets counted", number("browser_steps_per_s"), ""],
        ["browser, 150 oracle episodes", number("browser_150_s", " s"), "≤ 60 s"],
        ["BrowserGym on the same forms, steps a second, resets not counted", number("browsergym_steps_per_s"), ""],
        ["browser / BrowserGym", number("browser_vs_browsergym", " ×"), "≥ 10 ×"],
    ]
    show(["figure", "measured", "bar"], lines, numbers=2)
