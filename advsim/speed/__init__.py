"""`advsim speed`: the speeds that the project promises, each beside its yardstick, measured in one run.

Figures of one core (the symbolic world, the environment, rollouts, the learner) are in CPU time, the median of several
runs, so that a busy machine changes them little. Figures of the browser are in wall time, with every reset counted.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, Final

from advsim.console import complain, show
from advsim.speed import browser as in_browser
from advsim.speed import one_core
from advsim.task import Task

BARS: Final = {
    "world_transitions_per_s": 30_000,
    "env_steps_per_s": 10_000,
    "fork_per_step": 1,
    "browser_150_s": 60,
    "browser_vs_browsergym": 10,
    "rollout_speedup": 3,
    "learner_memory_ratio": 0.25,
    "learner_step_time_ratio": 1,
}
"""What is promised (`docs/method.md` §7): at least, or at most for the fork, the seconds and the learner's ratios."""

_ROLLOUTS: Final = ("rollout_speedup", "rollout_vs_batched", "rollout_tokens_per_s", "rollout_same_tokens")
_LEARNER: Final = (
    "learner_memory_ratio",
    "learner_step_time_ratio",
    "learner_memory_mb",
    "learner_all_logits_mb",
    "learner_group_time_ratio",
)
_ALL_LOGITS_MB: Final = 10_000  # what must be free before all logits are computed


def measure(
    tasks: Sequence[Task] | None = None,
    *,
    seconds: float = 1.0,
    repeats: int = 5,
    browser: bool = True,
    browsergym_forms: int = 10,
    models: bool = True,
) -> dict[str, Any]:
    """Measure everything and print a table.

    Args:
        tasks: What to do in the worlds; the frozen benchmark by default.
        seconds: CPU time of one run of one figure of the worlds.
        repeats: Runs of which the median counts.
        browser: Whether to measure the browser too.
        browsergym_forms: How many of the forms BrowserGym does for the comparison; 0 leaves it out.
        models: Whether to measure rollouts and the learner too.

    Returns:
        Figures by name; None where something that is needed is not installed (a hint is printed).
    """
    if tasks is None:
        from benchmark_forms import load

        tasks = load("bench")
    figures = {
        **one_core.measure(tasks, seconds, repeats),
        **in_browser.measure(tasks, browser, browsergym_forms),
        **dict.fromkeys((*_ROLLOUTS, *_LEARNER)),
    }
    if models:
        missing = [name for name in ("torch", "transformers", "peft", "trl") if importlib.util.find_spec(name) is None]
        if missing:
            complain(
                f"rollouts and the learner were not measured: {', '.join(missing)} not installed: "
                "pip install 'advsim[train]'"
            )
        else:
            figures |= _rollouts() | _learner()
    figures = {k: round(v, 3) if isinstance(v, float) else v for k, v in figures.items()}
    _print(figures)
    return figures


def _rollouts() -> dict[str, Any]:
    found = _program("rollouts")
    return {} if found is None else {key: found[key] for key in _ROLLOUTS}


def _learner() -> dict[str, Any]:
    free = _available_mb()
    if free is not None and free < _ALL_LOGITS_MB:
        complain(f"the learner was not measured: all logits need {_ALL_LOGITS_MB:,} MB, {free:,} are free")
        return {}
    ours, plain, group = (_program("learner", way) for way in ("ours", "all", "group"))
    if ours is None or plain is None or group is None:
        return {}
    if abs(ours["loss"] - plain["loss"]) > 1e-3:
        complain(f"the learner was not measured: the losses differ, {ours['loss']} and {plain['loss']}")
        return {}
    return {
        "learner_memory_ratio": ours["memory_mb"] / plain["memory_mb"],
        "learner_step_time_ratio": ours["step_s"] / plain["step_s"],
        "learner_memory_mb": ours["memory_mb"],
        "learner_all_logits_mb": plain["memory_mb"],
        "learner_group_time_ratio": group["time_ratio"],
    }


def _program(name: str, *arguments: str) -> dict[str, float] | None:
    """What a module of this package prints, run in a process of its own on one core; None (and why) if it fails."""
    one_thread = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    done = subprocess.run(
        [sys.executable, "-m", f"advsim.speed.{name}", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **one_thread},
    )
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        complain(f"{name}: not measured: {said[-1]}")
        return None
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _available_mb() -> int | None:
    """Memory that can be had without swapping; None where the system does not tell."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            return next(int(line.split()[1]) // 1024 for line in file if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return None


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
        ["BrowserGym on the same forms, steps a second, resets counted", number("browsergym_steps_per_s"), ""],
        ["  its resets left out", number("browsergym_steps_per_s_without_resets"), ""],
        ["browser / BrowserGym", number("browser_vs_browsergym", " ×"), "≥ 10 ×"],
        ["rollouts, sampled tokens a second on one core", number("rollout_tokens_per_s"), ""],
        ["rollouts / a loop that reads the whole conversation every turn", number("rollout_speedup", " ×"), "≥ 3 ×"],
        ["  / the same in batches, and each task's first page once", number("rollout_vs_batched", " ×"), ""],
        ["  episodes with the same tokens in all three, of 1", number("rollout_same_tokens"), "1"],
        ["learner at 4,096 tokens and a 150k vocabulary, peak memory", number("learner_memory_mb", " MB"), ""],
        ["  all logits", number("learner_all_logits_mb", " MB"), ""],
        ["  ours / all logits, peak memory", number("learner_memory_ratio"), "≤ 0.25"],
        ["  ours / all logits, time of a step", number("learner_step_time_ratio"), "≤ 1"],
        ["  six rollouts a prompt / a prompt each, time of a step", number("learner_group_time_ratio"), ""],
    ]
    show(["figure", "measured", "bar"], lines, numbers=2)
