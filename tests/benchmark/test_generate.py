"""What every generated task keeps to, whatever the family."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from advsim.form import Table, Text
from advsim.world.symbolic import first_page
from benchmark_forms import BENCH_SETTINGS, SETTINGS, families, generate, plan, signature
from benchmark_forms.fields import PLACEHOLDERS, slug
from benchmark_forms.setting import MAX_ACTIONS, SMALL_NODES, TINY_NODES

SEEDS = range(40)
ALL = [generate(family, setting, seed) for family in families() for setting in SETTINGS for seed in SEEDS]
BENCH = [t for t in ALL if t.setting in BENCH_SETTINGS]


def records(task):
    """Rows and sentences that decide: the one-row table that only states the request is none."""
    return sum(1 if isinstance(b, Text) else len(b.rows) for b in task.form.blocks if not _is_request(b))


def _is_request(block):
    return isinstance(block, Table) and block.caption == "Request"


def test_three_families_a_stratum():
    strata = Counter(info.stratum for info in families().values())
    assert strata == dict.fromkeys(("conditional", "derived", "conjunctive", "join", "repair"), 3)
    assert all(info.name == name and info.summary for name, info in families().items())


def test_same_seed_same_task_in_another_process():
    each = "for f in b.families() for s in b.SETTINGS"
    code = f"import benchmark_forms as b; print([b.generate(f, s, 7).content_hash {each}])"
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert printed == {f"{[generate(f, s, 7).content_hash for f in families() for s in SETTINGS]}\n"}


def test_other_seed_other_task():
    for family in families():
        for setting in SETTINGS:
            assert generate(family, setting, 1).content_hash != generate(family, setting, 2).content_hash


@pytest.mark.parametrize(("family", "setting"), [("no_such", "small"), ("whole_packs", "huge")])
def test_unknown_names_are_refused(family, setting):
    with pytest.raises(ValueError, match="expected one of"):
        generate(family, setting, 0)


def test_ids_and_provenance():
    for t in ALL:
        family, setting, _ = t.id.split("/")
        assert (t.family, t.setting, t.split) == (family, setting, "train")
        assert t.stratum == families()[family].stratum
        assert signature(t).family == family


def test_number_of_targets():
    for t in ALL:
        low, high = {"small": (1, 3), "tiny": (1, 2)}.get(t.setting, (4, 6) if "long" in t.setting else (2, 3))
        assert low <= len(t.expectation.values) <= high, t.id


def test_number_of_records():
    for t in BENCH:
        assert 3 <= records(t) <= 9, t.id


def test_nodes_and_words():
    for t in ALL:
        nodes = len(first_page(t.form).nodes)
        if t.setting == "small":
            assert nodes <= SMALL_NODES, t.id
        elif t.setting == "tiny":
            assert nodes <= TINY_NODES, t.id
        if t.setting in ("small", "tiny"):
            assert len(t.goal.split()) <= 30, t.goal


def test_number_of_actions():
    for t in ALL:
        assert len(plan(t)) <= MAX_ACTIONS, t.id


def test_small_sums_stay_within_100():
    for t in ALL:
        if t.setting in ("small", "tiny"):
            assert all(int(v) <= 100 for v in t.expectation.values.values() if v.isdecimal()), t.id


def test_roles():
    for t in ALL:
        form, expected = t.form, t.expectation
        assert len(expected.protected) == len(expected.forbidden) == 2
        assert expected.final == form.submit.key
        assert (expected.review is not None) == (t.stratum == "repair")
        assert expected.review == form.review
        for key, value in expected.protected.items():
            control = form.control(key)
            assert control.kind in ("text", "number", "date", "textarea")
            assert control.value == value != ""
        assert all(form.control(key).kind == "button" for key in expected.forbidden)
        assert not any(form.control(key).readonly for key in expected.values)


def test_the_goal_names_what_it_is_about():
    for t in ALL:
        for key in (*t.expectation.values, *t.expectation.protected, t.expectation.final):
            assert t.form.control(key).label.lower() in t.goal.lower(), (t.id, key)
        for key in t.expectation.forbidden:
            assert f'"{t.form.control(key).label}"' not in t.goal


def test_keys_are_slugs():
    assert slug("E-mail (work)") == "e_mail_work"
    assert slug("2nd line") == "f_2nd_line"
    for t in ALL:
        assert all(c.key == slug(c.label) for c in t.form.controls)


def test_something_has_to_be_changed():
    for t in ALL:
        assert any(t.form.control(key).value != value for key, value in t.expectation.values.items()), t.id


def test_choices_have_three_to_five_options():
    for t in ALL:
        for control in t.form.controls:
            if control.options:
                real = [o for o in control.options if o not in PLACEHOLDERS]
                assert 3 <= len(real) <= len(control.options) <= 5, (t.id, control.label)


def test_every_kind_of_field_is_a_target_somewhere():
    kinds = Counter(t.form.control(key).kind for t in ALL for key in t.expectation.values)
    assert set(kinds) == {"text", "number", "date", "textarea", "select", "radio", "checkbox"}
    assert {v for t in ALL for k, v in t.expectation.values.items() if t.form.control(k).kind == "checkbox"} == {
        "on",
        "",
    }


def test_protected_fields_and_forbidden_buttons_are_anywhere():
    places: dict[str, Counter[int]] = {"protected": Counter(), "forbidden": Counter()}
    for t in ALL:
        fields = [c.key for c in t.form.fields]
        for key in t.expectation.protected:
            places["protected"][3 * fields.index(key) // len(fields)] += 1
        buttons = [c.key for c in t.form.controls if not c.is_field]
        for key in t.expectation.forbidden:
            places["forbidden"][3 * buttons.index(key) // len(buttons)] += 1
    for name, thirds in places.items():
        assert min(thirds[i] for i in range(3)) > 0.25 * thirds.total(), (name, thirds)


def test_protected_fields_are_read_only_sometimes():
    flags = Counter(t.form.control(k).readonly for t in ALL for k in t.expectation.protected)
    assert 0.2 < flags[True] / flags.total() < 0.4


def test_docs_list_every_family_and_setting():
    text = (Path(__file__).parents[2] / "docs" / "benchmark.md").read_text()
    for name in (*families(), *SETTINGS):
        assert f"`{name}`" in text
    for info in families().values():
        assert info.summary in text
