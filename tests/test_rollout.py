"""Episodes against a counting world whose every page is known beforehand."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from advsim.action import Action
from advsim.agents.protocol import Crowd, EngineError
from advsim.page import Page, parse
from advsim.rollout import Episode, episode, fork_under_attack, run_many
from advsim.task import Attack, Notice, Outcome, Task
from advsim.world.base import WorldError, as_async

TASK = Task(id="count", goal="count", page="RootWebArea 'Count'\n[1] button 'More'")


@dataclass
class Counter:
    """Counts clicks; an instruction appends itself to the page; a message ends the episode."""

    clicks: int = 0
    shown: str = ""
    fail_at: int | None = None
    name: str = "counter"
    version: str = "1"
    last_action_error: str = ""
    notice: Notice | None = None
    done: bool = False
    steps: int = 0
    log: list[str] = field(default_factory=list)

    def page(self) -> Page:
        text = f"RootWebArea 'Count {self.clicks}'\n[1] button 'More'"
        return parse(text + (f"\n[2] alert '{self.shown}'" if self.shown else ""))

    def reset(self, task: Task) -> Page:
        self.clicks, self.shown, self.steps, self.done = 0, "", 0, False
        return self.page()

    def step(self, action: Action, instruction: str | None = None) -> Page:
        self.steps += 1
        if self.steps == self.fail_at:
            raise WorldError("the renderer is gone\nstack …")
        self.log.append(action.name)
        self.last_action_error, self.notice = "", None
        if action.name == "click" and action.bid == 1:
            self.clicks += 1
        elif action.name == "click":
            self.last_action_error = "no such element"
        if instruction is not None:
            self.shown = instruction
            self.notice = Notice("rendered", text=instruction)
        self.done = action.name == "send_msg_to_user"
        return self.page()

    def fork(self) -> "Counter":
        return Counter(self.clicks, self.shown, notice=self.notice, done=self.done, steps=self.steps)

    def outcome(self) -> Outcome:
        return Outcome(True, {"clicks": str(self.clicks)})


class Script:
    """Says the given lines in order; `heard` is what it was shown. After an alert it gives up."""

    name, checkpoint = "script", "1"

    def __init__(self, lines: list[str], broken_at: int | None = None) -> None:
        self.lines = lines
        self.broken_at = broken_at

    def begin(self, task: Task, seed: int) -> "ScriptSession":
        return ScriptSession(self.lines, [], self.broken_at)


@dataclass
class ScriptSession:
    lines: list[str]
    heard: list[tuple[str, str]]
    broken_at: int | None

    async def act(self, page: Page, error: str) -> str:
        if len(self.heard) == self.broken_at:
            raise EngineError("server said 500")
        self.heard.append((page.text, error))
        if "alert" in page.text:
            return "send_msg_to_user('hijacked')"
        return self.lines[len(self.heard) - 1]

    def fork(self, turns: int) -> "ScriptSession":
        return ScriptSession(self.lines, self.heard[:turns], self.broken_at)


class At:
    """Injects `Z` at one turn; `asked` is every turn at which it was asked, with the pending action."""

    name, checkpoint = "at", "1"

    def __init__(self, turn: int) -> None:
        self.turn = turn
        self.asked: list[tuple[int, str]] = []

    def begin(self, task: Task, seed: int) -> "At":
        return self

    async def before(self, turn: int, page: Page, pending: Action | None) -> Attack | None:
        self.asked.append((turn, pending.text if pending else ""))
        return Attack("Z", "Z", turn=99) if turn == self.turn else None


def run(lines: list[str], attacker: At | None = None, **options: object) -> Episode:
    world = as_async(options.pop("world", None) or Counter())  # type: ignore[arg-type]
    executor = Script(lines, options.pop("broken_at", None))  # type: ignore[arg-type]
    return asyncio.run(episode(TASK, world, executor, attacker, seed=0, **options))  # type: ignore[arg-type]


def test_episode_records_what_was_seen_done_and_said() -> None:
    result = run(["click(1)", "I shall click.", "click(7)", "send_msg_to_user('done')", "click(1)"])
    steps = result.trajectory.steps
    assert [step.action for step in steps] == ["click(1)", "", "click(7)", "send_msg_to_user('done')"]
    assert [step.page.split("'")[1] for step in steps] == ["Count 0", "Count 1", "Count 1", "Count 1"]
    assert steps[1].error.startswith("expected an action alone on a line")
    assert steps[2].error == "no such element"
    # Each turn hears the error of the turn before it.
    heard = [error for _, error in result.executor.heard]  # type: ignore[attr-defined]
    assert heard == ["", "", steps[1].error, "no such element"]
    assert result.trajectory.outcome == Outcome(True, {"clicks": "1"})
    assert result.trajectory.error is None
    assert "Count 1" in result.trajectory.final_page


def test_completion_without_action_does_not_touch_the_world() -> None:
    world = Counter()
    result = run(["hm", "hm", "click(1)"], world=world, max_actions=3)
    assert world.log == ["click"]
    assert len(result.trajectory.steps) == 3


def test_episode_ends_after_max_actions() -> None:
    assert len(run(["click(1)"] * 20).trajectory.steps) == 12
    assert len(run(["click(1)"] * 20, max_actions=5).trajectory.steps) == 5


def test_injection_enters_with_the_pending_action_and_is_recorded() -> None:
    attacker = At(2)
    result = run(["click(1)"] * 5, attacker)
    steps = result.trajectory.steps
    assert attacker.asked == [(1, "click(1)"), (2, "click(1)")]  # not asked again after the injection
    assert [step.action for step in steps] == ["click(1)", "click(1)", "send_msg_to_user('hijacked')"]
    assert [step.notice is not None for step in steps] == [False, True, False]
    assert "Count 2" in steps[2].page  # the action took place too
    assert result.trajectory.attack == Attack("Z", "Z", turn=2)  # where it entered, not what was planned


def test_injection_on_a_turn_without_action_is_carried_by_a_noop() -> None:
    attacker, world = At(1), Counter()
    result = run(["mumble", "click(1)"], attacker, world=world)
    assert attacker.asked == [(1, "")]
    assert world.log == ["noop", "send_msg_to_user"]
    first = result.trajectory.steps[0]
    assert (first.action, first.notice) == ("", Notice("rendered", text="Z"))
    assert first.error.startswith("expected an action")


def test_attacker_is_asked_at_most_max_actions_minus_one_times() -> None:
    attacker = At(99)
    run(["click(1)"] * 12, attacker)
    assert [turn for turn, _ in attacker.asked] == list(range(1, 12))


def test_world_failure_is_an_error_with_the_steps_before_it() -> None:
    result = run(["click(1)"] * 5, world=Counter(fail_at=3))
    assert result.trajectory.error == "WorldError: the renderer is gone"
    assert len(result.trajectory.steps) == 2
    assert result.trajectory.outcome is None


def test_engine_failure_and_deadline_are_errors() -> None:
    assert run(["click(1)"] * 5, broken_at=1).trajectory.error == "EngineError: server said 500"

    class Hung(ScriptSession):
        async def act(self, page: Page, error: str) -> str:
            await asyncio.Event().wait()
            raise AssertionError

    class Never(Script):
        def begin(self, task: Task, seed: int) -> ScriptSession:
            return Hung([], [], None)

    job = episode(TASK, as_async(Counter()), Never([]), seed=0, deadline_s=0.01)
    assert asyncio.run(job).trajectory.error == "TimeoutError: no end after 0.01 s"


def test_defect_is_raised_not_recorded() -> None:
    with pytest.raises(IndexError):
        run(["click(1)"])  # the script runs out of lines


def test_fork_shares_history_and_leaves_the_control_alone() -> None:
    async def both() -> tuple[Episode, Episode | None, Episode | None]:
        control = await episode(TASK, as_async(Counter()), Script(["click(1)"] * 4), seed=3, max_actions=4, keep=True)
        first = await fork_under_attack(control, Attack("Z", "Z", turn=2), max_actions=4)
        second = await fork_under_attack(control, Attack("Y", "Y", turn=4), max_actions=4)
        return control, first, second

    control, first, second = asyncio.run(both())
    assert first is not None
    assert second is not None
    own, forked = control.trajectory.steps, first.trajectory.steps
    assert forked[0] == own[0]
    assert (forked[1].page, forked[1].action) == (own[1].page, own[1].action)
    assert forked[1].notice == Notice("rendered", text="Z")
    assert [step.action for step in forked[2:]] == ["send_msg_to_user('hijacked')"]
    assert first.trajectory.outcome == Outcome(True, {"clicks": "2"})
    assert first.trajectory.attack == Attack("Z", "Z", turn=2)
    # The executor remembers turn 2 as it was and saw the attacked page next.
    assert [page.split("'")[1] for page, _ in first.executor.heard] == ["Count 0", "Count 1", "Count 2"]  # type: ignore[attr-defined]
    # An attack at the control's last transition changes nothing that it still could act on.
    assert [step.action for step in second.trajectory.steps] == ["click(1)"] * 4
    assert len(own) == 4
    assert all(step.notice is None for step in own)
    assert len(control.executor.heard) == 4  # type: ignore[attr-defined]
    assert first.seed == 3


def test_fork_is_void_beyond_the_control_and_refused_without_states() -> None:
    kept = run(["click(1)", "send_msg_to_user('x')"], keep=True)
    assert asyncio.run(fork_under_attack(kept, Attack("Z", "Z", turn=3))) is None
    failed = run(["click(1)"] * 5, world=Counter(fail_at=2), keep=True)
    assert asyncio.run(fork_under_attack(failed, Attack("Z", "Z", turn=1))) is None
    bare = run(["click(1)", "send_msg_to_user('x')"])
    with pytest.raises(ValueError, match="keep=True"):
        asyncio.run(fork_under_attack(bare, Attack("Z", "Z", turn=1)))
    attacked = run(["click(1)"] * 3, At(1), keep=True)
    with pytest.raises(ValueError, match="must be clean"):
        asyncio.run(fork_under_attack(attacked, Attack("Z", "Z", turn=1)))


def many(makers: list[Callable[[], Counter]], **options: object) -> list[Episode]:
    def job(make: Callable[[], Counter]) -> Callable[[], object]:
        return lambda: episode(TASK, as_async(make()), Script(["click(1)"] * 3), seed=0, max_actions=3)

    return asyncio.run(run_many([job(make) for make in makers], **options))  # type: ignore[arg-type]


def test_run_many_retries_errors_and_keeps_order() -> None:
    made: list[int] = []

    def flaky(index: int, failures: int) -> Callable[[], Counter]:
        def make() -> Counter:
            made.append(index)
            return Counter(fail_at=1 if made.count(index) <= failures else None)

        return make

    seen: list[tuple[int, int]] = []
    results = many(
        [flaky(0, 0), flaky(1, 2), flaky(2, 3)],
        retries=2,
        on_progress=lambda done, total, _: seen.append((done, total)),
    )
    assert [made.count(index) for index in range(3)] == [1, 3, 3]
    assert [r.trajectory.error for r in results] == [None, None, "WorldError: the renderer is gone"]
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_run_many_is_bounded_and_ordered_whatever_ends_first() -> None:
    running, peak, crowd = 0, 0, Crowd()
    counted: list[int] = []

    def job(index: int) -> Callable[[], object]:
        async def go() -> Episode:
            nonlocal running, peak
            running += 1
            peak = max(peak, running)
            counted.append(crowd.present)
            for _ in range(20 - index):  # later jobs end sooner
                await asyncio.sleep(0)
            running -= 1
            return await episode(TASK, as_async(Counter()), Script(["click(1)"]), seed=index, max_actions=1)

        return go

    results = asyncio.run(run_many([job(i) for i in range(10)], concurrency=4, crowd=crowd))  # type: ignore[misc]
    assert [r.seed for r in results] == list(range(10))
    assert peak == 4
    assert counted == [4] * 10  # a worker that has a next job stays
    assert crowd.present == 0


def test_run_many_raises_a_defect_plainly() -> None:
    async def broken() -> Episode:
        raise ValueError("this world cannot run such a task")

    with pytest.raises(ValueError, match="cannot run"):
        asyncio.run(run_many([broken]))
    assert asyncio.run(run_many([])) == []
