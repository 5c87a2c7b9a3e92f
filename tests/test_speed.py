"""`advsim speed`: that it measures what it says. The bars themselves are for a quiet machine, not for a test."""

import subprocess

from advsim import speed
from advsim.form import Control, FormSpec
from advsim.speed import BARS, browser, measure
from advsim.speed.browser import browsergym_actions
from advsim.task import Expectation, Task
from benchmark_forms import families, generate

TASK = Task(
    id="order/1",
    goal="Send the order.",
    form=FormSpec(
        title="Order",
        controls=(
            Control(key="amount", label="Amount", kind="number"),
            Control(key="method", label="Method", kind="select", value="Post", options=("Post", "Courier")),
            Control(key="gift", label="Gift", kind="checkbox"),
            Control(key="day", label="Day", kind="radio", options=("Mon", "Tue")),
            Control(key="send", label="Send", kind="submit"),
        ),
    ),
    expectation=Expectation(values={"amount": "5", "method": "Courier", "gift": "on", "day": "Tue"}, final="send"),
)


def test_figures(capsys):
    tasks = [generate(f, "small", 0) for f in families()][:4]
    figures = measure(tasks, seconds=0.05, repeats=1, browser=False, models=False)
    assert {*BARS, "browser_steps_per_s", "floor_transitions_per_s"} <= set(figures)
    assert {k for k, v in figures.items() if v is None} == {
        k for k in figures if k.startswith(("browser", "rollout", "learner"))
    }
    # Far below the bars, so that a busy machine passes; a figure in the wrong unit would not.
    assert figures["world_transitions_per_s"] > 3000
    assert figures["env_steps_per_s"] > 1000
    assert 0 < figures["fork_per_step"] < 1
    assert figures["floor_transitions_per_s"] > figures["world_transitions_per_s"]
    table = capsys.readouterr().out
    assert "≥ 30,000" in table
    assert "not measured" in table


def test_a_missing_environment_is_a_hint(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(browser, "_BROWSERGYM_PYTHON", tmp_path / "python")
    assert browser.browsergym([TASK]) is None
    assert "make bench-browsergym" in capsys.readouterr().err


def test_without_the_train_extra_there_is_a_hint(capsys, monkeypatch):
    monkeypatch.setattr(speed.importlib.util, "find_spec", lambda name: None)
    figures = measure([TASK], seconds=0.01, repeats=1, browser=False)
    assert figures["rollout_speedup"] is None
    assert figures["learner_memory_ratio"] is None
    assert "advsim[train]" in capsys.readouterr().err


def test_a_program_that_fails_is_not_measured_and_says_why(capsys, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "", "Traceback\nRuntimeError: not the same work\n")
    monkeypatch.setattr(speed.subprocess, "run", lambda *args, **kwargs: failed)
    monkeypatch.setattr(speed, "_available_mb", lambda: 100_000)
    assert speed._rollouts() == {}
    assert speed._learner() == {}
    assert "not the same work" in capsys.readouterr().err


def test_the_learner_waits_for_memory(capsys, monkeypatch):
    monkeypatch.setattr(speed, "_available_mb", lambda: 100)
    assert speed._learner() == {}
    assert "100 are free" in capsys.readouterr().err


def test_actions_for_the_comparison_name_elements_by_label():
    assert browsergym_actions(TASK) == [
        {"kind": "fill", "label": "Amount", "value": "5"},
        {"kind": "select_option", "label": "Method", "value": "Courier"},
        {"kind": "click", "label": "Gift"},
        {"kind": "click", "label": "Tue", "group": "Day"},
        {"kind": "click", "label": "Send"},
    ]
