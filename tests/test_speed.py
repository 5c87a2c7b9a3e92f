"""`advsim speed`: that it measures what it says. The bars themselves are for a quiet machine, not for a test."""

from advsim import speed
from advsim.form import Control, FormSpec
from advsim.speed import BARS, browsergym_actions, measure
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
    figures = measure(tasks, seconds=0.05, repeats=1, browser=False)
    assert {*BARS, "browser_steps_per_s", "floor_transitions_per_s"} <= set(figures)
    assert {k for k, v in figures.items() if v is None} == {k for k in figures if k.startswith("browser")}
    # Far below the bars, so that a busy machine passes; a figure in the wrong unit would not.
    assert figures["world_transitions_per_s"] > 3000
    assert figures["env_steps_per_s"] > 1000
    assert 0 < figures["fork_per_step"] < 1
    assert figures["floor_transitions_per_s"] > figures["world_transitions_per_s"]
    table = capsys.readouterr().out
    assert "≥ 30,000" in table
    assert "not measured" in table


def test_a_missing_environment_is_a_hint(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(speed, "_BROWSERGYM_PYTHON", tmp_path / "python")
    assert speed._browsergym([TASK]) is None
    assert "make bench-browsergym" in capsys.readouterr().err


def test_actions_for_the_comparison_name_elements_by_label():
    assert browsergym_actions(TASK) == [
        {"kind": "fill", "label": "Amount", "value": "5"},
        {"kind": "select_option", "label": "Method", "value": "Courier"},
        {"kind": "click", "label": "Gift"},
        {"kind": "click", "label": "Tue", "group": "Day"},
        {"kind": "click", "label": "Send"},
    ]
