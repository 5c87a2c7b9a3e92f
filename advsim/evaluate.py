"""Measure an executor under an attacker in a world: every task once a seed, as ledger rows.

What the figures mean is said in `report.tables`, which computes them from the rows.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from advsim.agents.protocol import Attacker, Crowd, Executor
from advsim.ledger import Row
from advsim.record import record
from advsim.rollout import MAX_ACTIONS, episode, run_many
from advsim.seeds import derive
from advsim.task import Task
from advsim.world.base import AsyncWorld, as_async

if TYPE_CHECKING:
    from browser_eval.html import Skin
    from browser_eval.site import Site

WORLDS = ("symbolic", "browser")
WorldFactory = Callable[[], AsyncWorld]
"""Makes a fresh world for one episode; who asked for it closes it."""


@asynccontextmanager
async def worlds(
    name: str, *, jobs: int = 4, skin: Skin = "native", site: Site | None = None, episode_s: float | None = 120.0
) -> AsyncIterator[WorldFactory]:
    """What a world needs while episodes run in it: nothing for `symbolic`, a Chromium and its tabs for `browser`.

    Args:
        name: One of `WORLDS`.
        jobs: Tabs at a time in the browser. Run as many episodes at a time and no more: one that waits for a tab
            waits on its own deadline.
        skin: How the browser dresses generated forms.
        site: Files beside an arbitrary HTML page.
        episode_s: Deadline of an episode in the browser, in seconds.

    Raises:
        ValueError: Unknown world.
        RuntimeError: There is no Chromium, or the server's port cannot be had.
        ModuleNotFoundError: The `browser` extra is not installed.
    """
    if name == "symbolic":
        from advsim.world.symbolic import SymbolicWorld

        yield lambda: as_async(SymbolicWorld())
    elif name == "browser":
        from browser_eval.pool import BrowserPool

        async with BrowserPool(concurrency=jobs, skin=skin, site=site, episode_s=episode_s) as pool:
            yield pool.world
    else:
        raise ValueError(f"unknown world {name!r}: expected one of {', '.join(WORLDS)}")


async def evaluate(
    tasks: Sequence[Task],
    make_world: WorldFactory,
    executor: Executor,
    attackers: Sequence[Attacker | None] = (None,),
    *,
    seeds: Sequence[int] = (0,),
    max_actions: int = MAX_ACTIONS,
    concurrency: int = 64,
    retries: int = 2,
    deadline_s: float | None = None,
    crowd: Crowd | None = None,
    on_progress: Callable[[int, int, Row], None] | None = None,
) -> list[Row]:
    """Run every task once a seed under each attacker, all of it side by side.

    An episode's own seed is derived from the given one and the task's id, so that every executor and attacker meets the
    same draws on the same task, and comparisons are paired; the row keeps the given one.

    Args:
        tasks: What to run.
        make_world: See `worlds`.
        executor: Who does the tasks.
        attackers: Who attacks; None for nobody.
        seeds: Rollout seeds.
        max_actions: Most turns an episode.
        concurrency: Most episodes at a time.
        retries: How often an episode that failed on infrastructure is tried again before it is an error row.
        deadline_s: Seconds after which an episode has failed; None where the world keeps its own time.
        crowd, on_progress: See `run_many`.

    Returns:
        One row an episode, by attacker, by seed and then by task.
    """

    def job(attacker: Attacker | None, task: Task, seed: int) -> Callable[[], Awaitable[Row]]:
        async def run() -> Row:
            world = make_world()
            try:
                own = derive(seed, "evaluate", task.id)
                done = await episode(
                    task, world, executor, attacker, seed=own, max_actions=max_actions, deadline_s=deadline_s
                )
                done.seed = seed
                # The row alone is kept: an episode holds its sessions, and they what the engine remembers for them.
                return record(done, executor, attacker)
            finally:
                await world.close()

        return run

    jobs = [job(attacker, task, seed) for attacker in attackers for seed in seeds for task in tasks]
    return await run_many(jobs, concurrency=concurrency, retries=retries, crowd=crowd, on_progress=on_progress)


def spread(tasks: Sequence[Task], limit: int) -> list[Task]:
    """`limit` tasks spread evenly over the sequence (so that every stratum is met), in its order; all with 0."""
    if limit < 0:
        raise ValueError(f"expected a limit of 0 or more, got {limit}")
    if limit == 0 or limit >= len(tasks):
        return list(tasks)
    return [tasks[index * len(tasks) // limit] for index in range(limit)]
