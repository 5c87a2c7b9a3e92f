"""Every task has exactly one right answer, and it stands on the page: a second solver finds it again."""

from __future__ import annotations

import pytest
from formsolver import solve

from advsim.world.symbolic import first_page
from benchmark_forms import SETTINGS, families, generate, load

PER_SETTING = 60  # 15 families x 6 settings x 60 = 5,400 tasks


def wanted(task):
    return {task.form.control(key).label: value for key, value in task.expectation.values.items()}


@pytest.mark.parametrize("family", families())
def test_second_solver_agrees(family):
    for setting in SETTINGS:
        for seed in range(PER_SETTING):
            task = generate(family, setting, seed)
            assert solve(family, setting, first_page(task.form).text, task.goal).values == wanted(task), task.id


@pytest.mark.parametrize("name", ["bench", "bench-small"])
def test_second_solver_agrees_on_the_frozen_tasks(name):
    for task in load(name):
        assert solve(task.family, task.setting, first_page(task.form).text, task.goal).values == wanted(task), task.id


def test_the_solver_notices_a_second_candidate():
    task = generate("catalogue_choice", "small", 3)
    page = first_page(task.form).text
    right = solve("catalogue_choice", "small", page, task.goal)
    at = right.decisions[0][0]
    lines = [line for line in page.split("\n") if "StaticText" in line]
    _, colon, facts = lines[at].partition(": ")
    other = lines[(at + 1) % 3]
    doubled = page.replace(other, other.partition(": ")[0] + colon + facts)
    with pytest.raises(AssertionError, match="2 candidates"):
        solve("catalogue_choice", "small", doubled, task.goal)


def test_the_solver_reads_the_page_and_not_the_task():
    task = generate("whole_packs", "small", 5)
    page = first_page(task.form).text
    changed = page.replace(" in a pack", "0 in a pack")
    assert changed != page
    assert solve("whole_packs", "small", changed, task.goal).values != wanted(task)
