"""The two shipped benchmarks: what they hold, that they can be done, and that training never sees them."""

from __future__ import annotations

import importlib
from collections import Counter
from itertools import islice

import pytest

from advsim.rewards.strict import strict
from advsim.world.symbolic import SymbolicWorld
from benchmark_forms import BENCH_SETTINGS, families, load, next_action, plan, signature, stream
from benchmark_forms.files import dump, shipped_path
from benchmark_forms.freeze import frozen, main
from benchmark_forms.oracle import DONE

# The package exports the function under the same name, which hides the module.
stream_module = importlib.import_module("benchmark_forms.stream")

NAMES = ("bench", "bench-small")
SHA256 = {
    "bench": "68005d9578a6b5fe61cf9d0b54f7160f3d9ba839bc314ff1892e01d3163c856c",
    "bench-small": "404764ad42b1789d23863b9c26407ff3eff46db8bffcd606e6d22b9461af5404",
}


@pytest.fixture(scope="module")
def tasks():
    return {name: load(name) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_frozen_for_good(name):
    """The hash in the header; results of different days are comparable only while it stays."""
    assert f'"sha256": "{SHA256[name]}"'.encode() in shipped_path(name).read_bytes().split(b"\n")[0]


@pytest.mark.parametrize("name", NAMES)
def test_the_generator_makes_the_same_bytes(name):
    assert dump(frozen(name)) == shipped_path(name).read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_composition(name, tasks):
    found = tasks[name]
    assert len(found) == len({t.id for t in found}) == len({t.content_hash for t in found}) == 150
    assert Counter(t.stratum for t in found) == dict.fromkeys(
        ("conditional", "derived", "conjunctive", "join", "repair"), 30
    )
    assert Counter(t.family for t in found) == dict.fromkeys(families(), 10)
    assert {t.split for t in found} == {name}


def test_settings(tasks):
    assert {t.setting for t in tasks["bench-small"]} == {"small"}
    counts = Counter((t.family, t.setting) for t in tasks["bench"])
    assert all(counts[family, setting] in (2, 3) for family in families() for setting in BENCH_SETTINGS)


def test_structures_are_distinct(tasks):
    for name in NAMES:
        assert len({signature(t) for t in tasks[name]}) == 150
    # Stronger for bench: no two tasks of a family share even the shape of the rule, whatever setting and fields.
    assert len({(signature(t).family, signature(t).shape) for t in tasks["bench"]}) == 150


def test_controls_beyond_text_and_drop_down(tasks):
    def beyond(task):
        return any(c.kind not in ("text", "select") or c.readonly for c in task.form.fields)

    def beyond_as_target(task):
        return any(task.form.control(key).kind not in ("text", "select") for key in task.expectation.values)

    assert sum(map(beyond, tasks["bench"])) >= 40
    assert sum(map(beyond_as_target, tasks["bench"])) >= 40
    kinds = Counter(c.kind for t in tasks["bench"] for c in t.form.fields)
    assert min(kinds[k] for k in ("checkbox", "radio", "date", "number", "textarea")) >= 30


@pytest.mark.parametrize("name", NAMES)
def test_oracle_does_all_of_them(name, tasks):
    for task in tasks[name]:
        world = SymbolicWorld()
        page = world.reset(task)
        for action in plan(task):
            assert action == next_action(task, page), task.id
            page = world.step(action)
            assert not world.last_action_error, (task.id, world.last_action_error)
        assert action.args["text"] == DONE
        result = strict(task.expectation, world.outcome())
        assert result.good, (task.id, result.reasons)


@pytest.mark.parametrize("name", NAMES)
def test_doing_nothing_but_submitting_fails(name, tasks):
    """Every task needs an edit: its last actions alone do not pass."""
    for task in tasks[name]:
        world = SymbolicWorld()
        world.reset(task)
        for action in plan(task)[-3 if task.stratum == "repair" else -2 :]:
            world.step(action)
        assert not strict(task.expectation, world.outcome()).good, task.id


def test_bench_needs_two_edits(tasks):
    for task in tasks["bench"]:
        assert len(plan(task)) - (3 if task.stratum == "repair" else 2) >= 2, task.id


def test_stream_is_endless_repeatable_and_varied():
    first = list(islice(stream(3), 120))
    assert first == list(islice(stream(3), 120))
    hashes = {t.content_hash for t in first}
    assert not hashes & {t.content_hash for t in islice(stream(4), 120)}
    assert not hashes & {t.content_hash for t in islice(stream(3, split="valid"), 120)}
    assert {t.family for t in first} == set(families())
    assert {t.setting for t in first} == set(BENCH_SETTINGS)
    assert len(hashes) == 120


def test_stream_never_yields_a_benchmark_instance(tasks):
    known = {t.content_hash for name in NAMES for t in tasks[name]}
    drawn = islice(stream(1, settings=("small", "hard-long", "easy-short")), 3000)
    assert not any(t.content_hash in known for t in drawn)


def test_stream_skips_what_is_kept_out(monkeypatch):
    usual = list(islice(stream(5, settings=("small",)), 3))
    monkeypatch.setattr(stream_module, "benchmark_hashes", lambda: frozenset({usual[1].content_hash}))
    assert list(islice(stream(5, settings=("small",)), 2)) == [usual[0], usual[2]]


def test_a_benchmark_instance_under_another_name_is_recognised(tasks):
    task = tasks["bench"][0]
    assert task.model_copy(update={"id": "x", "split": "train"}).content_hash in stream_module.benchmark_hashes()


def test_held_out_families_stay_out():
    held = ("whole_packs", "asset_owner", "venue_choice")
    drawn = {t.family for t in islice(stream(2, exclude_families=held), 400)}
    assert drawn == set(families()) - set(held)
    only = {t.family for t in islice(stream(2, families=held), 60)}
    assert only == set(held)


@pytest.mark.parametrize(
    "arguments",
    [
        {"exclude_families": ("no_such",)},
        {"families": ("no_such",)},
        {"settings": ("huge",)},
        {"settings": ()},
        {"families": ("whole_packs",), "exclude_families": ("whole_packs",)},
    ],
)
def test_stream_refuses_at_the_call(arguments):
    with pytest.raises(ValueError, match=r"unknown|no family|no setting"):
        stream(0, **arguments)


def test_freeze_usage(capsys):
    assert main(["--nonsense"]) == 2
    assert "usage" in capsys.readouterr().err


def test_freeze_check(capsys, monkeypatch, tmp_path):
    assert main(["--check"]) == 0
    other = tmp_path / "x.jsonl"
    other.write_bytes(shipped_path("bench").read_bytes()[:-5])
    monkeypatch.setattr("benchmark_forms.freeze.shipped_path", lambda name: other)
    assert main(["--check"]) == 1
    assert "DIFFERS" in capsys.readouterr().out
