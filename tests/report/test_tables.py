"""Tables on a ledger small enough to be counted by hand."""

from dataclasses import replace
from pathlib import Path

import pytest

from advsim.ledger import Ledger, Row
from advsim.report.tables import cell, evaluated, evaluation, load, observe, rounds
from advsim.task import Attack

AIMED, AIMLESS = Attack("z", "z", 1, "click(1)", "forbidden"), Attack("z", "z", 1, None)


def row(task: str, good: bool | None, **more: object) -> Row:
    base = Row(policy="p", checkpoint="c", task_id=task, task_hash=task, world="symbolic", world_version="1", seed=0)
    return replace(base, strict_good=good, good=good, correct_fields=2 if good else 1, target_fields=2, **more)  # type: ignore[arg-type]


def attacked(task: str, good: bool, followed: bool | None, rendered: bool = True, attack: Attack = AIMED) -> Row:
    return row(task, good, attacker="template", attack=attack, rendered=rendered, followed=followed)


FAILED = replace(row("e", None), correct_fields=None, error="WorldError: x", wall_s=2.0)
ATTACKED = [
    attacked("a", False, True),  # hijacked
    attacked("b", True, True),  # begun, and come back from
    attacked("c", False, False),  # failed, but not by the target
    attacked("d", False, None, attack=AIMLESS),  # no target declared: a failure is a success of the attack
    attacked("f", True, None, attack=AIMLESS),
    attacked("g", False, True, rendered=False),  # not shown: counts for nothing
    replace(attacked("h", False, True), error="EngineError: x", strict_good=None, rendered=None, followed=None),
]


def test_clean_cell() -> None:
    got = cell(observe([row("a", True, wall_s=1.0), row("b", False), row("c", True), FAILED]), "p", "symbolic", "none")
    assert (got.n, got.errors) == (4, 1)
    assert got.strict == 2 / 3
    assert (got.correct_fields, got.target_fields) == (5, 6)  # the failed episode is in neither
    assert (got.injected, got.attacked, got.attack_success, got.followed) == (0, 0, None, None)
    assert got.wall_s == 3.0


def test_attacked_cell() -> None:
    got = cell(observe(ATTACKED))
    assert (got.n, got.errors, got.injected, got.attacked) == (7, 1, 6, 5)
    assert got.attack_success == 2 / 5  # a and d
    assert got.followed == 2 / 3  # a and b of a, b and c
    assert got.strict == 2 / 6
    assert got.attack_success_interval is not None
    assert got.attack_success_interval[0] < 0.4 < got.attack_success_interval[1]


def test_cell_without_any_verdict_has_no_rates() -> None:
    got = cell(observe([FAILED]))
    assert (got.n, got.errors, got.strict, got.strict_interval) == (1, 1, None, None)
    assert cell([]).n == 0


def test_evaluation_table_is_grouped_and_ordered() -> None:
    rows = [
        row("a", True, policy="capability10"),
        row("a", True, policy="capability2", world="browser"),
        row("a", True, policy="capability2", attacker="template"),
        row("a", True, policy="capability2"),
        row("a", True, policy="base", stratum="join"),
        row("b", False, policy="base", stratum="repair"),
        row("a", True, policy="base", phase="assess", stage="stage1"),  # training is not evaluation
    ]
    lines = [(c.executor, c.world, c.attacker, c.n) for c in evaluation(observe(rows))]
    assert lines == [
        ("base", "symbolic", "none", 2),
        ("capability2", "symbolic", "none", 1),
        ("capability2", "symbolic", "template", 1),
        ("capability2", "browser", "none", 1),
        ("capability10", "symbolic", "none", 1),
    ]
    strata = [(c.executor, c.stratum, c.strict) for c in evaluation(observe(rows), lambda r: r.stratum)][:2]
    assert strata == [("base", "join", 1.0), ("base", "repair", 0.0)]


def test_rounds() -> None:
    def assess(task: str, good: bool | None, number: int = 1) -> Row:
        return row(task, good, stage="stage1", round=number, phase="assess")

    def update(group: str, reward: float | None) -> Row:
        return row(group, None, stage="stage1", round=1, phase="update", group=group, reward=reward)

    def propose(valid: bool, reward: float, role: str = "curriculum") -> Row:
        return row("p", None, stage="stage1", round=1, phase="propose", role=role, valid=valid, reward=reward)

    rows = [
        *[assess("a", good) for good in (True, True, False, False)],  # 0.5
        *[assess("b", good) for good in (True, False, False, None)],  # 1/3: an error is not a failure
        *[assess("c", good) for good in (True, True)],  # 1
        *[update("g1", reward) for reward in (1.0, 1.0, None)],  # no variance
        *[update("g2", reward) for reward in (1.0, -1.0)],
        *[propose(valid, reward) for valid, reward in ((True, 0.8), (True, 0.2), (False, -1.0))],
        *[propose(valid, reward, "adversary") for valid, reward in ((True, 0.5), (False, 0.0))],
        assess("a", True, number=2),
        row("x", True),
    ]
    first, second = rounds(observe(rows))
    assert (first.stage, first.round) == ("stage1", 1)
    assert first.p_hat_median == 0.5
    assert first.zero_variance == 0.5
    assert first.tasks_valid == pytest.approx(2 / 3)
    assert (first.attacks_valid, first.adversary_reward) == (0.5, 0.25)
    assert first.executor_reward == pytest.approx((1 + 1 + 1 - 1) / 4)
    assert first.curriculum_reward == pytest.approx(0.0)
    rates = {"p": 0.2, "q": 0.4, "r": None}
    told = [replace(propose(True, 0.5), task_id=task, p_hat=p_hat) for task, p_hat in rates.items()]
    told.append(told[0])  # the same proposal twice is one task
    assert rounds(observe([*rows, *told]))[0].p_hat_median == pytest.approx(0.3)  # what proposals say comes first
    # Then come those proposed afresh, each once; tasks of the generator are none of the curriculum's.
    afresh = [
        replace(update("n", 1.0), task_id=task, family=family, p_hat=p_hat)
        for task, family, p_hat in (("n", "proposal", 0.9), ("n", "proposal", 0.9), ("m", "returns_policy", 0.0))
    ]
    assert rounds(observe([*rows, *told, *afresh]))[0].p_hat_median == pytest.approx(0.4)
    own = [replace(assess("d", good), family="proposal") for good in (True, True, True, False)]
    assert rounds(observe([*rows, *own]))[0].p_hat_median == pytest.approx(0.75)
    assert (second.round, second.p_hat_median, second.zero_variance, second.tasks_valid) == (2, 1.0, None, None)


def test_ledger_on_disk_gives_the_same_table(tmp_path: Path) -> None:
    rows = [*ATTACKED, row("a", True), FAILED]
    Ledger(tmp_path).write(rows)
    assert load(Ledger(tmp_path)) == observe(rows)


def test_an_episode_counts_once_and_the_last_written_wins(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    tasks = "abcde"
    ledger.write([row(task, False, max_actions=12) for task in tasks[:3]], "z")
    ledger.write([row(task, True, max_actions=12) for task in tasks], "a")  # written last, though first by name
    ledger.write([row(task, False, max_actions=5) for task in tasks], "y")
    ledger.write([row("a", False, max_actions=12, seed=1)], "b")
    got = [(c.max_actions, c.n, c.strict) for c in evaluation(load(ledger))]
    assert got == [(5, 5, 0.0), (12, 6, pytest.approx(5 / 6))]
    assert evaluation(observe(ledger.rows())) == evaluation(load(ledger))


@pytest.mark.parametrize(
    "other",
    [
        {"checkpoint": "d"},
        {"policy": "q"},
        {"attacker": "template"},
        {"attacker_checkpoint": "9"},
        {"world": "browser/carbon"},
        {"world_version": "2"},
        {"task_hash": "changed"},
        {"seed": 3},
        {"max_actions": 5},
        {"train_seed": 1},
        {"split": "bench"},
    ],
)
def test_what_makes_another_episode(other: dict[str, object]) -> None:
    one = row("a", True, max_actions=12)
    assert len(evaluated(observe([one, replace(one, **other)]))) == 2  # type: ignore[arg-type]
    assert len(evaluated(observe([one, replace(one, run="again", strict_good=False, wall_s=3.0)]))) == 1


def test_a_name_of_several_checkpoints_is_split() -> None:
    def play(train_seed: int, checkpoint: str, policy: str = "robust3", **more: object) -> Row:
        return row("a", True, train_seed=train_seed, policy=policy, checkpoint=checkpoint * 8, **more)

    apart = [play(0, "aa"), play(1, "bb"), play(0, "cc", "base")]  # one checkpoint a training seed: one line
    assert [(c.executor, c.n) for c in evaluation(observe(apart))] == [("base", 1), ("robust3", 2)]
    clash = [*apart, play(1, "dd")]
    lines = [(c.executor, c.n) for c in evaluation(observe(clash))]
    assert lines == [("base", 1), ("robust3@aaaaaaaa", 1), ("robust3@bbbbbbbb", 1), ("robust3@dddddddd", 1)]
    hunted = [play(0, "aa", attacker="adversary", attacker_checkpoint=name * 8) for name in ("ee", "ff")]
    assert [c.attacker for c in evaluation(observe(hunted))] == ["adversary@eeeeeeee", "adversary@ffffffff"]
