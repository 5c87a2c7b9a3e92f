"""Nothing but the rule tells the answer: places are uniform, and no shortcut beats 1.2 times its chance."""

from __future__ import annotations

import pytest
from evenness import SETTINGS, Tally, measure, p_value

from benchmark_forms import families

PER_SETTING = 134  # 10,050 tasks: enough that a fair shortcut stays under 1.2 by three standard errors
LIMIT = 1.2
ENOUGH = 200  # hits expected by chance below which a family's rate says too little (7 % standard error)


@pytest.fixture(scope="module")
def measured() -> dict[str, Tally]:
    return measure(PER_SETTING)


@pytest.fixture(scope="module")
def pooled(measured):
    pools: dict[str, Tally] = {}
    for family, tally in measured.items():
        for name in ("all", families()[family].stratum):
            pools.setdefault(name, Tally()).merge(tally)
    return pools


def test_at_least_five_thousand_tasks():
    assert PER_SETTING * len(SETTINGS) * len(families()) >= 5000


def test_deciding_records_are_anywhere(measured, pooled):
    for name, tally in {**measured, **pooled}.items():
        if tally.rows:  # of an invoice every line counts
            assert p_value(tally.rows) > 0.001, name


def test_right_options_are_anywhere(measured, pooled):
    for name, tally in {**measured, **pooled}.items():
        if tally.options:  # some derived families have only numbers
            assert p_value(tally.options) > 0.001, name


def test_no_shortcut_pays(measured, pooled):
    checked = set()
    for name, tally in {**measured, **pooled}.items():
        for shortcut, chance in tally.chance.items():
            if chance >= ENOUGH:
                assert tally.ratio(shortcut) <= LIMIT, (name, shortcut)
                checked.add(shortcut)
    assert checked == set(pooled["all"].chance)


def test_the_measure_sees_a_biased_winner():
    assert p_value([(0, 4)] * 60 + [(i % 4, 4) for i in range(240)]) < 0.001
    assert p_value([(i % 4, 4) for i in range(300)]) > 0.9
