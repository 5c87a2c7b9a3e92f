"""The browser, and BrowserGym beside it, in wall time with every reset counted."""

from __future__ import annotations

import asyncio
import json
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from advsim.action import Action
from advsim.console import complain
from advsim.page import Page
from advsim.speed.one_core import oracle
from advsim.task import Task
from advsim.world.symbolic import SymbolicWorld

_ROOT: Final = Path(__file__).resolve().parents[2]
_BROWSERGYM_PYTHON: Final = _ROOT / ".venv-browsergym" / "bin" / "python"
_BROWSERGYM_SCRIPT: Final = _ROOT / "benchmarks" / "browsergym_speed.py"
_TABS: Final = 4
_REPEATS: Final = 5  # of the compared forms: ten episodes alone would be over in three seconds


def measure(tasks: Sequence[Task], wanted: bool, compared: int) -> dict[str, Any]:
    """All figures, None for those not wanted or not to be had; `compared` forms are done by BrowserGym too."""
    figures: dict[str, Any] = {
        "browser_steps_per_s": None,
        "browser_150_s": None,
        "browser_errors": None,
        "browsergym_steps_per_s": None,
        "browsergym_steps_per_s_without_resets": None,
        "browser_vs_browsergym": None,
    }
    if not wanted:
        return figures
    try:
        steps, wall, errors = asyncio.run(_episodes(tasks))
    except (ModuleNotFoundError, RuntimeError) as failure:
        complain(f"the browser was not measured: {failure}")
        return figures
    figures["browser_steps_per_s"] = steps / wall
    figures["browser_150_s"] = wall * 150 / len(tasks)
    figures["browser_errors"] = errors
    if compared:
        # Tasks spread over the benchmark, so that all kinds of forms are among them.
        some = [tasks[i * len(tasks) // min(compared, len(tasks))] for i in range(min(compared, len(tasks)))]
        theirs = browsergym(some)
        if theirs is not None:
            steps, wall, _ = asyncio.run(_episodes(some * _REPEATS))
            figures["browsergym_steps_per_s"], figures["browsergym_steps_per_s_without_resets"] = theirs
            figures["browser_vs_browsergym"] = steps / wall / theirs[0]
    return figures


async def _episodes(tasks: Sequence[Task]) -> tuple[int, float, int]:
    """The oracle's steps in all episodes, the seconds they took after the browser had started, and failed episodes."""
    from advsim.agents.scripted import make
    from advsim.evaluate import evaluate, worlds

    async with worlds("browser", jobs=_TABS) as make_world:
        await evaluate(tasks[:_TABS], make_world, make("oracle"), concurrency=_TABS)  # start-up is not measured
        began = time.perf_counter()
        rows = await evaluate(tasks, make_world, make("oracle"), concurrency=_TABS)
        wall = time.perf_counter() - began
    return sum(len(row.steps) for row in rows), wall, sum(row.error is not None for row in rows)


def browsergym(tasks: Sequence[Task]) -> tuple[float, float] | None:
    """BrowserGym's steps a second on these forms, with its resets counted (as ours are) and without.

    Returns:
        None if it is not installed or fails.
    """
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
    told = json.loads(done.stdout)
    wall = float(told["wall_s_steps"]) + int(told["resets"]) * float(told["reset_s"])
    return int(told["steps"]) / wall, float(told["steps_per_s"])


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
