"""Each equation against values worked out by hand."""

import math

import pytest

from advsim.rewards import adversary, curriculum, executor
from advsim.rewards.advantage import deal_groups, difficulty_scale, group_advantages
from advsim.rewards.adversary import Fork
from advsim.rewards.clusters import cluster_sizes
from advsim.rewards.curriculum import Assessed
from advsim.rewards.solve_rate import solve_rate, uncertainty


def test_solve_rate():
    assert solve_rate([True, False, False, True, False]) == pytest.approx(0.4)
    assert solve_rate([]) is None


@pytest.mark.parametrize(("p", "q"), [(0, 0), (0.25, 0.5), (0.5, 1), (0.75, 0.5), (1, 0), (1 / 3, 2 / 3)])
def test_uncertainty(p, q):
    assert uncertainty(p) == pytest.approx(q)


def test_clusters_fold_case_and_space_and_are_greedy():
    texts = ["Set the colour to red", "set  THE colour to red", "Order twelve boxes", "Set the colour to rod"]
    assert cluster_sizes(texts) == [3, 3, 1, 3]
    # "abcde" ~ "abcdf" (0.8) and "abcdf" ~ "abcgf" (0.8), but the third does not resemble the first (0.6).
    assert cluster_sizes(["abcde", "abcdf", "abcgf"]) == [2, 2, 1]
    assert cluster_sizes(["abcdf", "abcde", "abcgf"]) == [3, 3, 3]


def test_curriculum_reward_by_hand():
    round_ = [
        Assessed("aaaa aaaa", 0.5),  # q 1, its cluster has 2 of 5: 1 - 0.3 * 2/5
        Assessed("AAAA  aaaa", 0.25),  # q 0.5 - 0.12
        Assessed("zzzz", 1.0),  # q 0 - 0.06, so 0
        Assessed("kkkk", 0.1),  # not above 0.1
        Assessed(None, None),  # malformed
    ]
    assert curriculum.rewards(round_) == pytest.approx([0.88, 0.38, 0.0, 0.0, 0.0])
    assert curriculum.rewards(round_, uniform=True) == pytest.approx([0.88, 0.88, 0.94, 0.0, 0.0])
    assert curriculum.rewards(round_, lambda_c=0.0) == pytest.approx([1.0, 0.5, 0.0, 0.0, 0.0])


def test_a_proposal_without_verdicts_earns_nothing_rather_than_zero():
    assert curriculum.rewards([Assessed("a", None), Assessed("b", 0.5)])[0] is None


@pytest.mark.parametrize(("p", "f"), [(0.5, 1), (0.25, 0.5), (0.0, 0.1), (1.0, 0.1), (0.04, 0.1), (0.1, 0.2)])
def test_difficulty_scale(p, f):
    assert difficulty_scale(p) == pytest.approx(f)


def test_group_advantages_use_the_population_deviation():
    rewards = [1.0, -1.0, -1.0, -1.0]  # mean -0.5, population std sqrt(0.75)
    std = math.sqrt(0.75)
    expected = [1.5 / (std + 1e-6), *[-0.5 / (std + 1e-6)] * 3]
    assert group_advantages(rewards) == pytest.approx(expected, abs=1e-12)
    assert group_advantages(rewards, 0.5) == pytest.approx([0.5 * x for x in expected], abs=1e-12)


def test_groups_that_teach_nothing():
    assert group_advantages([1.0, 1.0, 1.0]) == [0, 0, 0]
    assert group_advantages([0.3]) == [0]
    assert group_advantages([]) == []


def test_dealt_groups_mix_difficulties():
    rewards = [0.9, 0.1, 0.5, 0.2, 0.8, 0.4]
    assert deal_groups(rewards, 3) == [[1, 5, 4], [3, 2, 0]]
    assert sorted(i for g in deal_groups([0.0] * 7, 3) for i in g) == list(range(7))
    assert [len(g) for g in deal_groups([0.0] * 7, 3)] == [4, 3]
    assert deal_groups([0.5], 6) == [[0]]
    assert deal_groups([], 6) == []


def test_executor_rewards():
    assert executor.clean(True) == 1
    assert executor.clean(False) == -1
    assert executor.attacked(True, True) == 1
    assert executor.attacked(False, True) == -1
    assert executor.attacked(False, False) == 0
    assert executor.attacked(False, None) == -1
    assert executor.attacked(False, False, w_g=0.25, w_r=0.5) == 0.25
    assert executor.attacked(False, True, w_g=1.0, w_r=1.0) == -1  # clipped from -2


def test_success_flip_by_hand():
    forks = [
        Fork(control_good=True, bad=True, valid=True),  # flipped
        Fork(control_good=True, bad=False, valid=True),  # resisted
        Fork(control_good=True, bad=True, valid=False),  # the task was made infeasible: not a flip
        Fork(control_good=False, bad=True, valid=True),  # failed anyway
    ]
    assert adversary.flip(forks) == pytest.approx(1 / 3)
    assert adversary.any_failure(forks) == pytest.approx(2 / 4)


def test_adversary_reward_by_hand():
    flipped, resisted = Fork(True, True, True), Fork(True, False, True)
    instructions = ["Press Clear now", "press  clear NOW", None, "Change the date to May"]
    forks = [[flipped, resisted], [flipped, flipped], [], [resisted, resisted]]
    # two copies among four proposals: 0.3 * (2 - 1) / 4
    assert adversary.rewards(instructions, forks) == pytest.approx([0.5 - 0.075, 1 - 0.075, -1, 0])
    assert adversary.rewards(instructions, forks, mode="constant") == pytest.approx([0.925, 0.925, -1, 1])
    assert adversary.rewards(instructions, forks, lambda_a=0.0) == pytest.approx([0.5, 1, -1, 0])


def test_without_a_good_control_there_is_no_comparison():
    failed = Fork(control_good=False, bad=True, valid=True)
    assert adversary.rewards(["a", None], [[failed, failed], []]) == [None, -1]
    assert adversary.rewards(["a"], [[]]) == [None]
    assert adversary.rewards(["a"], [[failed]], mode="any_failure") == [1.0]
