"""`advsim/Forms-v0`: tasks on forms as a gymnasium environment, over any world (`docs/method.md` §4)."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, Literal

import gymnasium
import numpy as np
from gymnasium import spaces

from advsim.action import Action, ActionError, parse
from advsim.agents.protocol import Attacker, AttackerSession, EngineError
from advsim.page import Page, diff
from advsim.page_html import page_html
from advsim.rewards.strict import VERIFIER, VERSION, strict
from advsim.spaces import Unicode
from advsim.task import Attack, Outcome, Task, Verdict
from advsim.world.base import World, WorldError
from advsim.world.faults import FaultModel, FaultyWorld
from advsim.world.symbolic import SymbolicWorld

ENV_ID: Final = "advsim/Forms-v0"
Observation = dict[str, Any]
Reward = Callable[[Task, Outcome, Verdict], float]

_GOAL = Unicode(1 << 14)
_PAGE = Unicode(1 << 18)
_LINE = Unicode(1 << 14)
_ACTION = Unicode(1 << 18)


class FormsEnv(gymnasium.Env[Observation, str]):
    """A web agent's task on a form: read the page, act, and tell the user when done.

    **Observation**, a `Dict`; texts are `advsim.spaces.Unicode`, longer ones are cut:

    ===================  ============  ============================================================================
    key                  space         meaning
    ===================  ============  ============================================================================
    `goal`               Unicode       what the user asked
    `axtree`             Unicode       the page as text; with `obs="diff"` the first page, then `advsim.page.diff`
                                       from the page before (lossless; empty if nothing changed)
    `last_action`        Unicode       the last action in canonical form, empty at first and for a text without one
    `last_action_error`  Unicode       one line: why it was refused or is no action; else empty
    `step`               Discrete      actions done so far, from 0 to `max_actions`
    ===================  ============  ============================================================================

    **Action**: a text, such as `click(3)` (`advsim.action`). A text without an action counts as a step.

    **Reward**: 1.0 at the end of a strictly successful episode, else 0.0.

    **End**: terminated by a message to the user (`send_msg_to_user`, `infeasible`), truncated after `max_actions`.
    A failure of the world's infrastructure truncates with `info["error"]`, without a verdict and with reward 0.0:
    leave such an episode out, it is no failure of the agent.

    **Info**: `task` (its id) always; `notice` at the step at which an attack entered; at the end `outcome`, `verdict`
    and `attack` (or None) as plain data, or `error`. The expectation is in neither observations nor info.

    Args:
        tasks: `bench`, `bench-small`, a task file, or tasks. Their order is drawn anew from the seed for each pass.
        world: `symbolic`, `browser`, or a function without arguments that makes a `World`.
        obs: `full` or `diff`.
        max_actions: Most actions of an episode.
        reward: `strict`, or a function of task, outcome and strict verdict, asked at the end of each episode.
        attacker: `none`, `template`, `reactive`, or an `Attacker` (which may be asked at most `max_actions - 1` times
            an episode, until it injects).
        faults: Rates of faults in the symbolic world (`FaultModel` or its fields), to imitate a learned one.
        render_mode: `ansi` (the page as text) or `html` (a standalone document).

    Raises:
        ValueError: For an unknown option, or no tasks.
    """

    metadata = {"render_modes": ["ansi", "html"], "render_fps": 1}  # noqa: RUF012 (gymnasium's own declaration)

    def __init__(
        self,
        tasks: str | os.PathLike[str] | Sequence[Task] = "bench-small",
        *,
        world: Literal["symbolic", "browser"] | Callable[[], World] = "symbolic",
        obs: Literal["full", "diff"] = "full",
        max_actions: int = 12,
        reward: Literal["strict"] | Reward = "strict",
        attacker: str | Attacker | None = None,
        faults: FaultModel | Mapping[str, float] | None = None,
        render_mode: str | None = None,
    ) -> None:
        if obs not in ("full", "diff"):
            raise ValueError(f"obs: expected 'full' or 'diff', got {obs!r}")
        if max_actions < 1:
            raise ValueError(f"max_actions: expected at least 1, got {max_actions}")
        if reward != "strict" and not callable(reward):
            raise ValueError(f"reward: expected 'strict' or a function, got {reward!r}")
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"render_mode: expected None, 'ansi' or 'html', got {render_mode!r}")
        self.tasks = _tasks(tasks)
        self.render_mode = render_mode
        self.max_actions = max_actions
        self._full = obs == "full"
        self._reward: Reward | None = None if reward == "strict" else reward
        self._rates = None if faults is None else FaultModel.model_validate(faults)
        self._world = _world(world, self._rates)
        self._attacker = _attacker(attacker, self.tasks)
        self._by_id = {task.id: task for task in self.tasks}
        self._order: list[int] = []
        self._task: Task | None = None
        self._page = Page(())
        self._session: AttackerSession | None = None
        self._attack: Attack | None = None
        self._count = 0
        self._over = True
        self._last = ("", "")  # action, error
        self.action_space = Unicode(_ACTION.max_length)
        self.observation_space = spaces.Dict(
            {
                "goal": Unicode(_GOAL.max_length),
                "axtree": Unicode(_PAGE.max_length),
                "last_action": Unicode(_LINE.max_length),
                "last_action_error": Unicode(_LINE.max_length),
                "step": spaces.Discrete(max_actions + 1),
            }
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: Fixes the order of tasks and everything random after it.
            options: `task`: a `Task`, or the id of one of the environment's, to do instead of the next one.

        Returns:
            The first observation and info.

        Raises:
            ValueError: For an unknown task or option, or a task that the world cannot run.
            WorldError: The world could not begin.
        """
        super().reset(seed=seed)
        if seed is not None:
            self._order = []
        task = self._chosen(options or {}) or self._next()
        episode = int(self.np_random.integers(1 << 62))
        if self._rates is not None:
            self._world = FaultyWorld(SymbolicWorld(), self._rates, episode)
        self._page = self._world.reset(task)
        self._task = task
        self._session = None if self._attacker is None else self._attacker.begin(task, episode)
        self._attack = None
        self._count = 0
        self._over = False
        self._last = ("", "")
        return self._observe(self._page.text), {"task": task.id}

    def step(self, action: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Do one action; see the class for the five values. Raises TypeError when it is no text."""
        task = self._task
        if task is None or self._over:
            raise RuntimeError("the episode is over: call reset() first")
        if not isinstance(action, str):
            raise TypeError(f"step: expected a text action such as 'click(12)', got {action!r:.80}")
        info: dict[str, Any] = {"task": task.id}
        before = self._page
        world = self._world
        self._count += 1
        parsed = parse(action)
        try:
            instruction = self._injection(before, parsed) if self._session is not None else None
            if isinstance(parsed, Action):
                page = world.step(parsed, instruction)
                self._last = (parsed.text, world.last_action_error)
            else:
                # As in `advsim.rollout`: only an injection needs a transition, and then waiting carries it.
                page = before if instruction is None else world.step(Action.of("noop", 0), instruction)
                self._last = ("", parsed.message)
            if instruction is not None and world.notice is not None:
                info["notice"] = dataclasses.asdict(world.notice)
            self._page = page
            terminated = isinstance(parsed, Action) and world.done
            truncated = not terminated and self._count >= self.max_actions
            reward = 0.0
            if terminated or truncated:
                self._over = True
                reward = self._finish(task, info)
        except (WorldError, EngineError, TimeoutError, ConnectionError) as failure:
            self._over = True
            info["error"] = f"{type(failure).__name__}: {failure}"
            return self._observe("" if not self._full else before.text), 0.0, False, True, info
        if self._full:
            text = page.text
        else:
            text = "" if page is before else diff(before, page)
        return self._observe(text), reward, terminated, truncated, info

    def render(self) -> str | None:
        """The page as it is: as text (`ansi`) or as an HTML document (`html`); None without a render mode."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() without a render_mode: pass render_mode='ansi' or 'html' to make()")
            return None
        if self.render_mode == "ansi":
            return self._page.text
        goal = self._task.goal if self._task is not None else ""
        facts = (("Goal", goal), ("Last action", self._last[0]), ("Last error", self._last[1]))
        return page_html(self._page, facts)

    def close(self) -> None:
        """Free what the world holds; calling it again does nothing."""
        close = getattr(self._world, "close", None)
        if close is not None:
            close()

    # --- inside an episode --------------------------------------------------------------------------------------

    def _observe(self, axtree: str) -> Observation:
        assert self._task is not None
        return {
            "goal": _GOAL.fit(self._task.goal),
            "axtree": _PAGE.fit(axtree),
            "last_action": _LINE.fit(self._last[0]),
            "last_action_error": _LINE.fit(self._last[1]),
            "step": np.int64(self._count),
        }

    def _injection(self, page: Page, parsed: Action | ActionError) -> str | None:
        assert self._session is not None
        if self._attack is not None or self._count >= self.max_actions:
            return None
        pending = parsed if isinstance(parsed, Action) else None
        attack = _drive(self._session.before(self._count, page, pending))
        if attack is None:
            return None
        self._attack = dataclasses.replace(attack, turn=self._count)
        return attack.instruction

    def _finish(self, task: Task, info: dict[str, Any]) -> float:
        """Judge the episode; its reward."""
        outcome = self._world.outcome()
        info["attack"] = None if self._attack is None else dataclasses.asdict(self._attack)
        info["outcome"] = None
        info["verdict"] = None
        if outcome is None:
            return 0.0
        info["outcome"] = {
            "submitted": outcome.submitted,
            "values": dict(outcome.values),
            "events": [list(event) for event in outcome.events],
        }
        if task.expectation is None:
            return 0.0
        result = strict(task.expectation, outcome)
        judged = Verdict(result.good, VERIFIER, VERSION, result.reasons)
        info["verdict"] = {
            **dataclasses.asdict(judged),
            "correct_fields": result.correct_fields,
            "target_fields": result.target_fields,
        }
        return float(judged.good) if self._reward is None else float(self._reward(task, outcome, judged))

    # --- which task ---------------------------------------------------------------------------------------------

    def _chosen(self, options: dict[str, Any]) -> Task | None:
        if unknown := options.keys() - {"task"}:
            raise ValueError(f"reset: unknown option {min(unknown)!r}; the only one is 'task'")
        wanted = options.get("task")
        if wanted is None or isinstance(wanted, Task):
            return wanted
        if wanted not in self._by_id:
            raise ValueError(f"reset: no task with id {wanted!r} among the environment's {len(self.tasks)}")
        return self._by_id[wanted]

    def _next(self) -> Task:
        if not self._order:
            self._order = self.np_random.permutation(len(self.tasks)).tolist()
        return self.tasks[self._order.pop()]


def _tasks(source: str | os.PathLike[str] | Sequence[Task]) -> tuple[Task, ...]:
    if isinstance(source, (str, os.PathLike)):
        from benchmark_forms.files import load  # the generator is only needed for files

        tasks = tuple(load(source))
    else:
        tasks = tuple(source)
    if not tasks:
        raise ValueError("tasks: expected at least one task")
    return tasks


def _world(world: str | Callable[[], World], rates: FaultModel | None) -> World:
    if rates is not None and world != "symbolic":
        raise ValueError("faults: only the symbolic world takes a fault model")
    if callable(world):
        return world()
    if world == "symbolic":
        return SymbolicWorld()
    if world == "browser":
        from browser_eval.blocking import BlockingBrowserWorld  # needs Playwright, which the core does without

        return BlockingBrowserWorld()
    raise ValueError(f"world: expected 'symbolic', 'browser' or a function that makes a world, got {world!r}")


def _attacker(attacker: str | Attacker | None, tasks: Sequence[Task]) -> Attacker | None:
    if not isinstance(attacker, str):
        return attacker
    from advsim.agents.template import make_attacker

    return make_attacker(attacker, tasks)


def _drive(coroutine: Coroutine[Any, Any, Attack | None]) -> Attack | None:
    """Run a coroutine that never waits, as scripted attackers' do, without an event loop."""
    advice = (
        "this attacker waits for something (an engine?), and the environment takes scripted ones only; "
        "advsim.rollout runs attackers with an engine"
    )
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: Attack | None = done.value
        return result
    except RuntimeError as failure:
        if "no running event loop" not in str(failure):
            raise
        raise RuntimeError(advice) from failure
    coroutine.close()
    raise RuntimeError(advice)
