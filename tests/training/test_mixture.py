from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from advsim.config import Mixture
from advsim.task import Attack, Task
from advsim.training.mixture import mix

TASKS = [Task(id=f"t{i}", goal=f"goal {i}", page="RootWebArea 'x'") for i in range(20)]
FRESH = [(task, Attack(f"fresh {task.id}", "m")) for task in TASKS]
HISTORY = [(Task(id=f"h{i}", goal="old", page="RootWebArea 'x'"), Attack(f"old {i}", "m")) for i in range(30)]


def kinds(inputs):
    return Counter(item.kind for item in inputs)


def mixed(fresh=FRESH, history=HISTORY, use_history=True, seed=0, shares=None):
    return mix(shares or Mixture(), TASKS, fresh, history, use_history=use_history, seed=seed)


def test_shares():
    assert kinds(mixed()) == {"fresh": 10, "history": 5, "clean": 5}


@pytest.mark.parametrize("options", [{"history": []}, {"use_history": False}])
def test_without_history_fresh_attacks_take_its_place(options):
    assert kinds(mixed(**options)) == {"fresh": 15, "clean": 5}


def test_without_attacks_all_is_clean():
    assert kinds(mixed(fresh=[], history=[])) == {"clean": 20}


def test_too_few_fresh_attacks_are_made_up_by_clean_tasks():
    assert kinds(mixed(fresh=FRESH[:3])) == {"fresh": 3, "history": 5, "clean": 12}


def test_nothing_is_drawn_twice_and_clean_tasks_differ_from_attacked_ones():
    inputs = mixed()
    assert len({(item.task.id, item.kind) for item in inputs}) == 20
    attacked = {item.task.id for item in inputs if item.kind == "fresh"}
    assert not attacked & {item.task.id for item in inputs if item.kind == "clean"}


@given(
    total=st.integers(1, 9),
    fresh=st.integers(0, 9),
    history=st.integers(0, 9),
    parts=st.tuples(*[st.integers(0, 5)] * 3).filter(any),
    use_history=st.booleans(),
)
@example(total=3, fresh=3, history=2, parts=(0, 5, 5), use_history=True)  # two halves of three, both rounded up
def test_there_are_as_many_inputs_as_tasks(total, fresh, history, parts, use_history):
    fresh_share, history_share, clean_share = (part / sum(parts) for part in parts)
    shares = Mixture(fresh=fresh_share, history=history_share, clean=clean_share)
    found = kinds(mix(shares, TASKS[:total], FRESH[:fresh], HISTORY[:history], use_history=use_history, seed=1))
    assert sum(found.values()) == total
    assert found["history"] <= (history if use_history else 0)
    assert found["fresh"] <= fresh


def test_the_seed_decides():
    assert mixed(seed=1) == mixed(seed=1) != mixed(seed=2)


def test_inputs_carry_their_attacks():
    for item in mixed():
        assert (item.attack is None) == (item.kind == "clean")
        if item.kind == "fresh":
            assert item.attack.instruction == f"fresh {item.task.id}"
