"""The symbolic world and the environment on one core, in CPU time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

from advsim.action import Action, parse
from advsim.task import Task
from advsim.world.symbolic import SymbolicWorld

_RANDOM_ACTIONS: Final = 10  # a task, beside those of the oracle

Episode = tuple[Task, list[Action]]


def measure(tasks: Sequence[Task], seconds: float, repeats: int) -> dict[str, Any]:
    """All figures; `seconds` is the CPU time of one run of one figure, the median of `repeats` runs counts."""
    episodes = [_episode(task, n) for n, task in enumerate(tasks)]
    return {
        "world_transitions_per_s": _median(lambda: _world(episodes, seconds), repeats),
        "world_oracle_transitions_per_s": _median(lambda: _world([oracle(t) for t in tasks], seconds), repeats),
        "floor_transitions_per_s": _median(lambda: _floor(tasks, seconds), repeats),
        "env_steps_per_s": _median(lambda: _env(tasks, seconds), repeats),
        "fork_per_step": _median(lambda: _fork(episodes, seconds), repeats),
    }


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
