"""The protocol of a world, and what a failing world raises.

A world predicts the page after an action. `World` is synchronous (exact and cheap worlds); `AsyncWorld` has the same
methods as coroutines (the browser, models behind an engine). An episode is written against `AsyncWorld`;
`as_async` lifts the other kind.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from advsim.action import Action
from advsim.page import Page
from advsim.task import Notice, Outcome, Task


class WorldError(RuntimeError):
    """The infrastructure of a world failed. The episode becomes an error row: never a verdict, never a reward."""


@runtime_checkable
class World(Protocol):
    """Predicts pages (`docs/method.md` §4).

    After each `step`: `last_action_error` is one line or ""; `notice` tells how an instruction given to this step was
    shown (None without one); `done` is True after a message to the user.
    """

    name: str
    version: str
    last_action_error: str
    notice: Notice | None
    done: bool

    def reset(self, task: Task) -> Page:
        """Begin the task; its first page. Raises ValueError when this world cannot run such a task."""

    def step(self, action: Action, instruction: str | None = None) -> Page:
        """Do the action, let the instruction (if any) enter, and return the next page. Raises WorldError."""

    def fork(self) -> World:
        """An independent world in the same state."""

    def outcome(self) -> Outcome | None:
        """What was submitted and activated so far; None where the world cannot know."""


@runtime_checkable
class AsyncWorld(Protocol):
    """`World` with coroutines; `close` frees what it holds."""

    name: str
    version: str
    last_action_error: str
    notice: Notice | None
    done: bool

    async def reset(self, task: Task) -> Page:
        """See `World.reset`."""

    async def step(self, action: Action, instruction: str | None = None) -> Page:
        """See `World.step`."""

    async def fork(self) -> AsyncWorld:
        """See `World.fork`."""

    async def outcome(self) -> Outcome | None:
        """See `World.outcome`."""

    async def close(self) -> None:
        """Free what the world holds. Never raises."""


class _Lifted:
    """An exact world behind the asynchronous protocol."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.name = world.name
        self.version = world.version

    @property
    def last_action_error(self) -> str:
        return self.world.last_action_error

    @property
    def notice(self) -> Notice | None:
        return self.world.notice

    @property
    def done(self) -> bool:
        return self.world.done

    async def reset(self, task: Task) -> Page:
        return self.world.reset(task)

    async def step(self, action: Action, instruction: str | None = None) -> Page:
        return self.world.step(action, instruction)

    async def fork(self) -> AsyncWorld:
        return as_async(self.world.fork())

    async def outcome(self) -> Outcome | None:
        return self.world.outcome()

    async def close(self) -> None:
        return None


def as_async(world: World) -> AsyncWorld:
    """Lift a synchronous world to the asynchronous protocol."""
    return _Lifted(world)  # type: ignore[return-value]  # read-only properties where the protocol has attributes
