"""What an episode asks of an executor and of an attacker.

An *agent* is shared by all episodes (a model behind an engine, or a script); a *session* is its part of one episode.
Sessions hold the episode's history, so `rollout.episode` reads as a plain loop and an episode can be forked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from advsim.action import Action
from advsim.page import Page
from advsim.task import Attack, Task


class EngineError(RuntimeError):
    """What an agent runs on failed (a server, a timeout). The episode becomes an error row: never a verdict."""


@dataclass(slots=True)
class Crowd:
    """How many episodes are in flight: an engine can wait until all of them wait for it.

    Attributes:
        present: Their number now.
    """

    present: int = 0


class ExecutorSession(Protocol):
    """One executor in one episode."""

    async def act(self, page: Page, error: str) -> str:
        """The raw completion for this page; `error` is the world's `last_action_error` after the step before."""

    def fork(self, turns: int) -> ExecutorSession:
        """An independent session that remembers only the first `turns` turns (page, error and completion each)."""


class Executor(Protocol):
    """A policy that does tasks. `name` is for people, `checkpoint` identifies the weights (or the script's version)."""

    name: str
    checkpoint: str

    def begin(self, task: Task, seed: int) -> ExecutorSession:
        """A session for a new episode. Scripted agents may read the expectation; learned ones see the goal only."""


class AttackerSession(Protocol):
    """One attacker in one episode; at most one injection."""

    async def before(self, turn: int, page: Page, pending: Action | None) -> Attack | None:
        """Called before transition `turn` (from 1) with the page and the executor's action.

        An Attack injects at this transition, None waits.
        """


class Attacker(Protocol):
    """An adversary at evaluation or training time: static (decided on the first page) or reactive."""

    name: str
    checkpoint: str

    def begin(self, task: Task, seed: int) -> AttackerSession:
        """A session for a new episode. It may see the goal and pages, never the expectation (scripted ones may)."""
