"""From judged episodes to rewards, advantages and samples; an error is none of them."""

import dataclasses
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.train

from advsim.config import parse  # noqa: E402
from advsim.ledger import Row  # noqa: E402
from advsim.llm.policies import Tokens  # noqa: E402
from advsim.rollout import Episode  # noqa: E402
from advsim.task import Attack, Step, Task, Trajectory  # noqa: E402
from advsim.training import attacks, proposals  # noqa: E402
from advsim.training.attacks import Proposal  # noqa: E402
from advsim.training.rollouts import Rollout, score, solve_rates  # noqa: E402

CONFIG = parse({})
TOKENS = Tokens((1, 2), (3, 4), (True, True), (-1.0, -1.0))
ROW = Row(policy="executor", checkpoint="c", task_id="t", task_hash="h", world="symbolic", world_version="1", seed=0)
ATTACK = Attack("z", "m", 1, "click(2)")
TEAM = SimpleNamespace(
    checkpoints={"curriculum": "cc", "adversary": "ca"},
    executor=lambda: SimpleNamespace(name="executor", checkpoint="ce"),
)


def rollout(index, good, error=None, **changes):
    return Rollout(index, dataclasses.replace(ROW, good=good, error=error, **changes), TOKENS)


def test_solve_rates_leave_errors_out():
    done = [rollout(0, True), rollout(0, None, "WorldError"), rollout(0, False), rollout(1, None, "WorldError")]
    assert solve_rates(done, 3) == [0.5, None, None]


def test_executor_groups_by_hand():
    done = [
        rollout(0, True),
        rollout(0, False),
        rollout(0, None, "TimeoutError"),
        rollout(1, True),
        rollout(1, True),
        rollout(2, False, attack=ATTACK, followed=True),
        rollout(2, False, attack=ATTACK, followed=False),
        rollout(2, True, attack=ATTACK, followed=False),
    ]
    rows, samples = score(CONFIG, done, [0.5, 1.0, 0.25])
    assert [row.reward for row in rows] == [1, -1, None, 1, 1, -1, 0, 1]
    third = 1 / (2 / 3) ** 0.5
    expected = [1, -1, None, 0, 0, -0.5 * third, 0, 0.5 * third]
    for row, advantage in zip(rows, expected, strict=True):
        assert row.advantage == (None if advantage is None else pytest.approx(advantage, abs=1e-5))
    assert len(samples) == 7
    assert [sample.group for sample in samples] == ["0", "0", "1", "1", "2", "2", "2"]
    assert [row.p_hat for row in rows] == [0.5] * 3 + [1.0] * 2 + [0.25] * 3


def test_the_difficulty_scale_is_a_switch():
    done = [rollout(0, True), rollout(0, False)]
    off = parse({"switches": {"difficulty_scale": False}})
    assert [s.advantage for s in score(CONFIG, done, [1.0])[1]] == pytest.approx([0.1, -0.1], abs=1e-5)
    assert [s.advantage for s in score(off, done, [1.0])[1]] == pytest.approx([1, -1], abs=1e-5)


def test_an_input_without_a_measured_rate_teaches_nothing():
    rows, samples = score(CONFIG, [rollout(0, True), rollout(0, False)], [None])
    assert samples == []
    assert [row.advantage for row in rows] == [None, None]


def episode(steps, error=None):
    trajectory = Trajectory("t", tuple(Step("page", "noop()", "noop()") for _ in range(steps)), error=error)
    return Episode(Task(id="t", goal="g", page="x 'y'"), 0, trajectory, "symbolic", "1", None)


@pytest.fixture
def judged(monkeypatch):
    """Continuations are judged by the label that they carry instead of a real record."""
    monkeypatch.setattr(attacks, "record", lambda done, executor, attacker: done)


def fork(good, rendered=True, feasible=True, error=None):
    return dataclasses.replace(ROW, good=good, rendered=rendered, feasible=feasible, error=error, attack=ATTACK)


def attack(task, z="z", malformed=False):
    planned = None if malformed or z is None else dataclasses.replace(ATTACK, instruction=z)
    return Proposal(task, "static", planned, malformed, (TOKENS,), ("prompt",), ("text",), "", 7)


TASK = Task(id="t", goal="g", page="x 'y'")


def test_the_adversary_is_paid_for_flips(judged):
    controls = [[rollout(0, True), rollout(0, True), rollout(0, False), rollout(0, None, "WorldError")]]
    tried = [attack(0, "press it"), attack(0, "call us"), attack(0, malformed=True), attack(0, None)]
    forks = [
        [fork(False), fork(True), fork(False), None],
        [fork(False, feasible=False), fork(False, rendered=False), fork(False), None],
        [None] * 4,
        [None] * 4,
    ]
    rows, samples = attacks.score(CONFIG, TEAM, [TASK], tried, controls, forks, ("s",), stage="stage2", round=1)
    own = [row for row in rows if row.role == "adversary"]
    assert [row.reward for row in own] == [0.5, 0, -1, 0]
    assert [row.valid for row in own] == [True, True, False, True]
    assert len(samples) == 4
    assert sum(sample.advantage for sample in samples) == pytest.approx(0, abs=1e-9)
    assert max(samples, key=lambda s: s.advantage) is samples[0]
    assert sum(row.phase == "fork" for row in rows) == 6


def test_a_continuation_that_failed_on_infrastructure_is_no_flip_and_no_resistance(judged):
    controls = [[rollout(0, True), rollout(0, True)]]
    forks = [[fork(None, error="WorldError"), fork(False)]]
    rows, _ = attacks.score(CONFIG, TEAM, [TASK], [attack(0)], controls, forks, ("s",))
    assert [row.reward for row in rows if row.role == "adversary"] == [1]


def test_a_task_whose_controls_all_failed_is_left_out(judged):
    controls = [[rollout(0, False)], [rollout(1, True)]]
    tried = [attack(0), attack(0, malformed=True), attack(1), attack(1, malformed=True)]
    forks = [[fork(False)], [None], [fork(False)], [None]]
    rows, samples = attacks.score(CONFIG, TEAM, [TASK, TASK], tried, controls, forks, ("s",))
    assert [row.reward for row in rows if row.role == "adversary"] == [None, -1, 1, -1]
    assert {sample.group for sample in samples} == {"1"}


def proposed(goal, text="text", error=None):
    task = Task(id=f"proposal/{goal}", goal=goal, page="x 'y'", family="proposal") if goal else None
    return proposals.Proposal("prompt", text, TOKENS, task, "" if goal else "bad", 3, error)


def test_the_curriculum_is_paid_for_uncertain_tasks():
    plan = parse({"stage1": {"group": 2}})
    round_ = [proposed("aaaa"), proposed("zzzz"), proposed(None), proposed("kkkk"), proposed(None, error="EngineError")]
    rates = {"proposal/aaaa": 0.5, "proposal/zzzz": 1.0, "proposal/kkkk": None}
    rows, samples = proposals.learn(plan, TEAM, round_, rates, ("s",), stage="stage1", round=1)
    assert [row.reward for row in rows] == [pytest.approx(1 - 0.3 / 4), 0, 0, None, None]
    assert [row.valid for row in rows] == [True, True, False, True, None]
    assert len(samples) == 3  # what has no reward is no sample
    assert all(sample.prompt_ids == TOKENS.prompt_ids for sample in samples)


def test_a_proposal_survives_the_artifact():
    import json

    from benchmark_forms import stream

    task = next(stream(1, settings=("tiny",)))
    for one in (proposals.Proposal("p", "t", TOKENS, task, "", 3), proposed(None, error="EngineError: x")):
        assert proposals.Proposal.restore(json.loads(json.dumps(one.dump()))) == one


def test_generated_tasks_fill_a_round_up_unless_forbidden():
    task = Task(id="t", goal="g", page="x 'y'")
    plan = parse({"tasks": {"setting": "tiny", "min_valid": 0.5, "held_out": ["returns_policy"]}})
    added = proposals.top_up(plan, [task], 10, ("s",))
    assert len(added) == 4
    assert added == proposals.top_up(plan, [task], 10, ("s",))
    assert all(t.setting == "tiny" and t.split == "train" and t.family != "returns_policy" for t in added)
    assert proposals.top_up(plan, [task] * 5, 10, ("s",)) == []
    assert proposals.top_up(parse({"tasks": {"top_up": False}}), [], 10, ("s",)) == []


@pytest.mark.parametrize(
    ("mode", "first", "alone"),
    [
        ("static", ["static"] * 4, ["static"] * 3),
        ("both", ["static", "reactive"] * 2, ["static", "reactive", "static"]),
    ],
)
def test_both_kinds_of_attack_are_asked_for_in_turn(mode, first, alone):
    config = parse({"switches": {"adversary_mode": mode}})
    tasks = [Task(id=f"t{n}", goal="g", page="x 'y'") for n in range(3)]
    asked = attacks.asked_for(config, tasks, 4, ("x",))
    assert [index for index, _, _ in asked] == [0] * 4 + [1] * 4 + [2] * 4
    assert [kind for _, kind, _ in asked[:4]] == first
    assert len({seed for _, _, seed in asked}) == 12
    # Also where there is one a task: the executor's fresh attacks.
    assert [kind for _, kind, _ in attacks.asked_for(config, tasks, 1, ("x",))] == alone
