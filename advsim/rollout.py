"""An episode, read top to bottom, and many of them at once.

In a turn the executor acts on the page, the attacker may inject, the world answers, and the step is
recorded. The code knows neither which world it is in nor how engines batch: many episodes simply run
concurrently.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from advsim.action import Action, ActionError, parse
from advsim.agents.protocol import Attacker, AttackerSession, Crowd, EngineError, Executor, ExecutorSession
from advsim.page import Page
from advsim.page import parse as parse_page
from advsim.task import Attack, Outcome, Step, Task, Trajectory
from advsim.trace import first_wrong_step, followed_target
from advsim.world.base import AsyncWorld, WorldError

__all__ = [
    "INFRASTRUCTURE_ERRORS",
    "MAX_ACTIONS",
    "Episode",
    "Finished",
    "episode",
    "first_wrong_step",
    "followed_target",
    "fork_under_attack",
    "run_many",
]

MAX_ACTIONS = 12
"""Default limit of an episode (`docs/method.md` §3)."""

INFRASTRUCTURE_ERRORS = (WorldError, EngineError, TimeoutError, ConnectionError)
"""What makes an error row. Anything else is a defect of the program and is raised."""


@dataclass(slots=True)
class Episode:
    """A finished episode with what is needed to go on from its middle.

    Attributes:
        task, seed: What was run.
        trajectory: What happened; `trajectory.error` is set when the infrastructure failed.
        world, world_version: In which world.
        max_actions: Most turns that it had; None for a made one.
        executor: The executor's session after the last turn; it can be forked to any earlier turn.
        attacker: The attacker's session, if there was an attacker.
        states: With `keep=True`, the world before each step: `states[i]` is the state in which step `i`
            began.
        wall_s: Seconds it took, waiting for shared engines included. No part of any result's identity.
    """

    task: Task
    seed: int
    trajectory: Trajectory
    world: str
    world_version: str
    executor: ExecutorSession
    attacker: AttackerSession | None = None
    states: list[AsyncWorld] = field(default_factory=list)
    wall_s: float = 0.0
    max_actions: int | None = None

    @property
    def error(self) -> str | None:
        """What went wrong with the infrastructure, if anything did."""
        return self.trajectory.error


class Finished(Protocol):
    """What a job of `run_many` gives: an episode, or what was made of one, such as its ledger row."""

    @property
    def error(self) -> str | None:
        """What went wrong with the infrastructure, if anything did."""


Result = TypeVar("Result", bound=Finished)


async def episode(
    task: Task,
    world: AsyncWorld,
    executor: Executor,
    attacker: Attacker | None = None,
    *,
    seed: int,
    max_actions: int = MAX_ACTIONS,
    keep: bool = False,
    deadline_s: float | None = None,
) -> Episode:
    """Run one task to a message to the user or `max_actions` turns. The caller closes the world.

    Args:
        task: What to do.
        world: A world of its own; it is reset first.
        executor: Does the task.
        attacker: Asked before each transition until it injects, except before the last possible one,
            whose page nobody would act on (so at most `max_actions - 1` times).
        seed: Passed to both sessions.
        max_actions: Most turns.
        keep: Whether to keep the world's state before each step, for `fork_under_attack`.
        deadline_s: Seconds after which the episode becomes an error.

    Returns:
        The episode. An infrastructure failure is in `trajectory.error`, with the steps before it.

    Raises:
        ValueError: This world cannot run such a task.
    """
    run = Episode(
        task=task,
        seed=seed,
        trajectory=Trajectory(task.id, ()),
        world=world.name,
        world_version=world.version,
        executor=executor.begin(task, seed),
        attacker=attacker.begin(task, seed) if attacker is not None else None,
        max_actions=max_actions,
    )
    history = _History([], None)

    async def play() -> Outcome | None:
        page = await world.reset(task)
        await _turns(run, world, history, page, "", max_actions, keep)
        return await world.outcome()

    return await _finish(run, history, play, deadline_s)


async def fork_under_attack(
    control: Episode,
    attack: Attack,
    *,
    max_actions: int = MAX_ACTIONS,
    deadline_s: float | None = None,
) -> Episode | None:
    """Fork a control at the attack's transition d (`docs/method.md` §3.4).

    The history up to d is the control's own, its action d included; the instruction enters at d; the
    executor continues.

    Args:
        control: A clean episode run with `keep=True`; it is not changed, so it can be forked many times.
        attack: `attack.turn` is d, from 1.
        max_actions: Most turns, those of the shared history included.
        deadline_s: As in `episode`.

    Returns:
        The continuation, or None when the comparison is void: the control failed or has no transition d.

    Raises:
        ValueError: The control kept no states, or was itself attacked.
    """
    past = control.trajectory
    if past.error is not None or not 1 <= attack.turn <= len(past.steps):
        return None
    if past.attack is not None:
        raise ValueError(f"task {past.task_id}: a control must be clean, this episode was attacked")
    if len(control.states) < len(past.steps):
        raise ValueError(f"task {past.task_id}: the control has no kept states; run it with keep=True")
    # The executor remembers turn d too: it took that action, and sees the attacked page next.
    run = dataclasses.replace(
        control,
        trajectory=Trajectory(past.task_id, ()),
        executor=control.executor.fork(attack.turn),
        attacker=None,
        states=[],
        wall_s=0.0,
        max_actions=max_actions,
    )
    history = _History(list(past.steps[: attack.turn - 1]), attack)

    async def play() -> Outcome | None:
        own = past.steps[attack.turn - 1]
        world = await control.states[attack.turn - 1].fork()
        try:
            page, step = await _transition(
                world, parse_page(own.page), own.completion, parse(own.completion), attack.instruction
            )
            history.steps.append(step)
            await _turns(run, world, history, page, step.error, max_actions, keep=False)
            return await world.outcome()
        finally:
            await world.close()

    return await _finish(run, history, play, deadline_s)


async def run_many(
    jobs: Sequence[Callable[[], Awaitable[Result]]],
    *,
    concurrency: int = 64,
    retries: int = 2,
    crowd: Crowd | None = None,
    on_progress: Callable[[int, int, Result], None] | None = None,
) -> list[Result]:
    """Run jobs concurrently; results in the order of the jobs, whatever finishes first.

    Args:
        jobs: Each starts one episode afresh, so that it can be tried again.
        concurrency: Most episodes at a time.
        retries: How often an episode that failed on infrastructure is tried again; what fails then stays
            an error.
        crowd: Kept up to date meanwhile.
        on_progress: Called after each finished episode with how many are done, how many there are, and
            what its job gave.

    Returns:
        What the jobs gave, one each.

    Raises:
        Exception: What a job raised (a defect, a task that does not fit the world); the others are cancelled.
    """
    if concurrency < 1 or retries < 0:
        raise ValueError(f"expected concurrency >= 1 and retries >= 0, got {concurrency} and {retries}")
    results: list[Result | None] = [None] * len(jobs)
    waiting = iter(range(len(jobs)))
    done = 0

    crowd = Crowd() if crowd is None else crowd

    async def worker() -> None:
        nonlocal done
        for index in waiting:  # shared by the workers: each takes the next job
            result = await jobs[index]()
            for _ in range(retries):
                if result.error is None:
                    break
                result = await jobs[index]()
            results[index] = result
            done += 1
            if on_progress is not None:
                on_progress(done, len(jobs), result)
        crowd.present -= 1

    crowd.present = min(concurrency, len(jobs))
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(crowd.present):
                group.create_task(worker())
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None
    return [result for result in results if result is not None]


@dataclass(slots=True)
class _History:
    """The part of an episode that survives a failure in its middle."""

    steps: list[Step]
    attack: Attack | None
    final_page: str = ""


async def _turns(
    run: Episode,
    world: AsyncWorld,
    history: _History,
    page: Page,
    error: str,
    max_actions: int,
    keep: bool,
) -> None:
    """The loop of an episode from `page` on."""
    history.final_page = page.text
    while len(history.steps) < max_actions and not world.done:
        turn = len(history.steps) + 1
        completion = await run.executor.act(page, error)
        parsed = parse(completion)
        instruction = None
        if run.attacker is not None and history.attack is None and turn < max_actions:
            pending = parsed if isinstance(parsed, Action) else None
            attack = await run.attacker.before(turn, page, pending)
            if attack is not None:
                # The record says where it entered, whatever the attacker had planned.
                history.attack = dataclasses.replace(attack, turn=turn)
                instruction = attack.instruction
        if keep:
            run.states.append(await world.fork())
        page, step = await _transition(world, page, completion, parsed, instruction)
        history.steps.append(step)
        history.final_page = page.text
        error = step.error


async def _transition(
    world: AsyncWorld,
    before: Page,
    completion: str,
    parsed: Action | ActionError,
    instruction: str | None,
) -> tuple[Page, Step]:
    """One turn of the world.

    A completion without an action costs a turn and does not touch the world; only an instruction that
    enters at this very turn needs a transition, and then a `noop` carries it. That is the same in every
    world.
    """
    if isinstance(parsed, Action):
        page = await world.step(parsed, instruction)
        return page, Step(before.text, completion, parsed.text, world.last_action_error, world.notice)
    if instruction is None:
        return before, Step(before.text, completion, "", parsed.message)
    page = await world.step(Action.of("noop", 0), instruction)
    return page, Step(before.text, completion, "", parsed.message, world.notice)


async def _finish(
    run: Episode,
    history: _History,
    play: Callable[[], Awaitable[Outcome | None]],
    deadline_s: float | None,
) -> Episode:
    """Play under the deadline; put the trajectory together, with an error if the infrastructure failed."""
    began = time.perf_counter()
    outcome, error = None, None
    try:
        async with asyncio.timeout(deadline_s):
            outcome = await play()
    except INFRASTRUCTURE_ERRORS as failure:
        reason = str(failure).strip().partition("\n")[0]
        if isinstance(failure, TimeoutError) and not reason:
            reason = f"no end after {deadline_s:g} s" if deadline_s is not None else "timed out"
        error = f"{type(failure).__name__}: {reason}"
    run.trajectory = Trajectory(run.task.id, tuple(history.steps), history.final_page, outcome, history.attack, error)
    run.wall_s = time.perf_counter() - began
    return run
