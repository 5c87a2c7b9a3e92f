"""Studies: which runs they are, that each switch does something, and a miniature one from command to results."""

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.train

from advsim.cli import main  # noqa: E402
from advsim.config import ABLATIONS, Switches, load, parse  # noqa: E402
from advsim.llm.policies import Tokens  # noqa: E402
from advsim.task import Attack, Task  # noqa: E402
from advsim.training import proposals, stage2, team  # noqa: E402
from advsim.training.steps import RunFolder, write_json  # noqa: E402
from advsim.training.study import ablated, jobs, seeded  # noqa: E402

CONFIGS = Path(__file__).parents[2] / "configs"
TOKENS = Tokens((1, 2), (3, 4), (True, True), (-1.0, -1.0))


def test_every_switch_but_the_mode_of_attack_has_an_ablation():
    turned = {key for values in ABLATIONS.values() for key in values}
    assert turned == set(Switches.model_fields) - {"adversary_mode"}
    for values in ABLATIONS.values():
        assert Switches(**values) != Switches()


def test_the_help_names_every_ablation(capsys):
    assert main(["ablate", "--help"]) == 0
    shown = capsys.readouterr().out
    assert [name for name in ABLATIONS if name not in shown] == []


def test_the_runs_of_a_study():
    config = load(CONFIGS / "tiny.yaml")
    work = jobs(config, Path("x"), train_seeds=2, rollout_seeds=3, switches=["no-kl", "no-stage1"])
    assert [str(folder) for _, folder in work] == [
        "x/seed0",
        "x/seed1",
        "x/ablate/no-kl/seed0",
        "x/ablate/no-kl/seed1",
        "x/ablate/no-stage1/seed0",
        "x/ablate/no-stage1/seed1",
    ]
    assert [one.seed for one, _ in work] == [0, 1] * 3
    assert all(block.seeds == (0, 1, 2) for one, _ in work for block in one.evaluation)
    assert config.difference(work[0][0]) == [
        f"evaluation.{n}.seeds: {list(block.seeds)} -> [0, 1, 2]"
        for n, block in enumerate(config.evaluation)
        if block.seeds != (0, 1, 2)
    ]
    # Without a number each block keeps its own, and the first run is what `advsim run` does.
    assert seeded(config, 2, None)[0] == config


@pytest.mark.parametrize("name", ABLATIONS)
def test_an_ablation_turns_its_switch_and_nothing_else_of_the_training(name):
    (full,) = seeded(load(CONFIGS / "tiny.yaml"), 1, 3)
    without = ablated(full, name)
    assert parse(without.model_dump(mode="json")) == without
    assert without.switches == full.switches.model_copy(update=ABLATIONS[name])
    assert without.model_copy(update={"switches": full.switches, "evaluation": full.evaluation}) == full
    assert {block.world for block in without.evaluation} == {"symbolic"}
    assert {block.checkpoints for block in without.evaluation} == {("robust",)}


def test_without_stage_1_the_adversaries_are_spread_over_the_rounds():
    (full,) = seeded(load(CONFIGS / "tiny.yaml"), 1, 1)
    more = stage2.rounds(ablated(full, "no-stage1"))
    # Stage 1 plans 3 x 60 x (6 + 6 + 6) = 3,240 rollouts, a round of stage 2 90 x (6 + 6 + 6 x 4 + 6 + 6 + 6) = 4,860.
    assert more == 3 + 1
    found = [block.attackers for block in ablated(full, "no-stage1").evaluation]
    # The first, second and last third of four rounds.
    assert found == [("none",), ("template",), ("adversary1", "adversary3", "adversary4")]
    kept = [block.attackers for block in full.evaluation if block.world == "symbolic"]
    assert [block.attackers for block in ablated(full, "no-kl").evaluation] == kept


def test_an_unknown_or_useless_switch_is_refused_before_any_work(tmp_path, capsys):
    config = tmp_path / "c.yaml"
    config.write_text("switches: {kl: false}")
    for name, said in (("no-such", "expected one of uniform-reward"), ("no-kl", "has it off already")):
        out = tmp_path / "study"
        assert main(["ablate", str(config), "--switch", name, "--out", str(out), "--docs", str(tmp_path / "d")]) == 2
        assert said in capsys.readouterr().err
        assert not out.exists()
    assert main(["study", str(tmp_path / "none.yaml"), "--docs", str(tmp_path / "d")]) == 2
    assert main(["study", str(config), "--train-seeds", "0"]) == 2


# --- each switch takes effect where it is read ------------------------------------------------------------------


def curriculum_rewards(**switches):
    def proposed(goal):
        task = Task(id=goal, goal=goal, page="x 'y'", family="proposal")
        return proposals.Proposal("prompt", "text", TOKENS, task, "", 3)

    config = parse({"switches": switches})
    who = SimpleNamespace(checkpoints={"curriculum": "cc"})
    rates = {"aaaa": 0.5, "aaaa ": 0.5, "kkkk": 1.0}
    rows, samples = proposals.learn(config, who, [proposed(goal) for goal in rates], rates, ("s",))
    assert len(samples) == 3  # as much is learned from, whatever it earns
    return [row.reward for row in rows]


def test_uncertainty_and_repetition_of_the_curriculum():
    assert curriculum_rewards() == pytest.approx([1 - 0.3 * 2 / 3, 1 - 0.3 * 2 / 3, 0])
    assert curriculum_rewards(uncertainty=False) == pytest.approx([1 - 0.3 * 2 / 3, 1 - 0.3 * 2 / 3, 1 - 0.3 / 3])
    assert curriculum_rewards(repetition=False) == [1, 1, 0]


def adversary_rewards(monkeypatch, **switches):
    from advsim.ledger import Row
    from advsim.training import attacks
    from advsim.training.rollouts import Rollout

    blank = Row(policy="e", checkpoint="c", task_id="t", task_hash="h", world="symbolic", world_version="1", seed=0)
    monkeypatch.setattr(attacks, "record", lambda done, executor, attacker: done)
    attack = Attack("z", "m", 1, "click(2)")
    bad = dataclasses.replace(blank, good=False, rendered=True, feasible=True, attack=attack)
    good = dataclasses.replace(bad, good=True)
    controls = [[Rollout(0, dataclasses.replace(blank, good=ok), TOKENS) for ok in (True, True, False)]]
    tried = [attacks.Proposal(0, "static", attack, False, (TOKENS,), ("p",), ("t",), "", n) for n in range(2)]
    who = SimpleNamespace(checkpoints={"adversary": "ca"}, executor=lambda: SimpleNamespace(name="e", checkpoint="c"))
    forks = [[bad, good, bad], [good, good, good]]
    task = Task(id="t", goal="g", page="x 'y'")
    rows, samples = attacks.score(parse({"switches": switches}), who, [task], tried, controls, forks, ("s",))
    assert len(samples) == 2
    return [row.reward for row in rows if row.role == "adversary"]


def test_reward_and_repetition_of_the_adversary(monkeypatch):
    penalty = 0.3 / 2  # two alike of two
    assert adversary_rewards(monkeypatch) == pytest.approx([1 / 2 - penalty, 0 - penalty])
    assert adversary_rewards(monkeypatch, adversary_reward="any_failure") == pytest.approx([2 / 3 - penalty, -penalty])
    assert adversary_rewards(monkeypatch, adversary_reward="constant") == pytest.approx([1 - penalty, 1 - penalty])
    assert adversary_rewards(monkeypatch, repetition=False) == pytest.approx([1 / 2, 0])


def test_history_of_attacks(tmp_path):
    tasks = [Task(id=f"t{n}", goal=f"g{n}", page="x 'y'").model_dump(mode="json") for n in range(8)]
    attack = dataclasses.asdict(Attack("z", "m", 1, None))

    def kinds(**switches):
        run = RunFolder(tmp_path, parse({"switches": switches}))
        for round_ in (1, 2):
            for step, name, value in (
                ("1-propose", "tasks.json", {"proposed": tasks, "generated": []}),
                ("2-assess", "rates.json", [1.0] * 8),
                ("4-attacks", "attacks.json", [{"task": task, "attack": attack} for task in tasks]),
            ):
                folder = run.folder(f"stage2.{round_:02d}.{step}")
                folder.mkdir(parents=True, exist_ok=True)
                write_json(folder / name, value)
        return [item.kind for item in stage2.inputs(run, 2)]

    on, off = kinds(), kinds(history=False)
    assert (on.count("fresh"), on.count("history"), on.count("clean")) == (4, 2, 2)
    assert (off.count("fresh"), off.count("history"), off.count("clean")) == (6, 0, 2)


@pytest.mark.parametrize("on", [True, False])
def test_the_penalty_towards_the_backbone(tiny_backbone, monkeypatch, on):
    given = []
    monkeypatch.setattr(team, "update", lambda *args, kl, **more: given.append(kl))
    plan = {"backbone": {"path": str(tiny_backbone)}, "switches": {"kl": on}, "lora": {"rank": 2, "alpha": 4}}
    team.Team(parse(plan)).train("executor", [], 0)
    assert given == [on]


# --- a whole one, on a random backbone ---------------------------------------------------------------------------

MINIATURE = """
name: miniature
backbone: {{path: {backbone}}}
tasks: {{setting: tiny, min_valid: 1.0}}
episode: {{max_tokens: 4096, max_new_tokens: 8, max_actions: 1}}
proposer: {{curriculum_tokens: 16, adversary_tokens: 16, max_queries: 1}}
lora: {{rank: 2, alpha: 4}}
learner: {{batch_groups: 0}}
stage1: {{rounds: 1, proposals: 1, rollouts: 2, group: 2, executor_epochs: 1, reuse: true}}
stage2: {{rounds: 1, proposals: 1, rollouts: 1, adversary_group: 2, executor_group: 2, eta: 0.0}}
evaluation:
  - {{world: symbolic, limit: 2, checkpoints: [base, capability, robust], attackers: [none, template, adversary1]}}
engine: {{threads: 1}}
"""


def test_a_miniature_study_and_an_ablation_of_it(tiny_backbone, tmp_path, capsys):
    config, out, docs = tmp_path / "miniature.yaml", tmp_path / "study", tmp_path / "docs"
    config.write_text(MINIATURE.format(backbone=tiny_backbone))
    where = ["--rollout-seeds", "2", "--out", str(out), "--docs", str(docs)]
    assert main(["study", str(config), "--train-seeds", "2", "--jobs", "2", *where]) == 0
    data = json.loads((docs / "results.json").read_text())
    assert {row["executor"] for row in data["rows"]} == {"base", "capability1", "robust1"}
    assert {row["attacker"] for row in data["rows"]} == {"none", "template", "adversary1", "learned"}
    assert all((row["n"], row["errors"]) == (2 * 2 * 2, 0) for row in data["rows"])  # seeds, rollout seeds, tasks
    assert {(row["from"], row["to"]) for row in data["differences"]} == {
        ("base", "capability1"),
        ("base", "robust1"),
        ("capability1", "robust1"),
    }
    assert data["provenance"]["training seeds"] == "0, 1"
    assert data["ablations"] == []
    finished = {file: file.stat().st_mtime_ns for file in out.glob("seed*/ledger/rollouts/*")}
    assert main(["ablate", str(config), "--switch", "no-kl", "--train-seeds", "1", *where]) == 0
    assert {file: file.stat().st_mtime_ns for file in out.glob("seed*/ledger/rollouts/*")} == finished
    data = json.loads((docs / "results.json").read_text())
    assert {(row["switch"], row["seeds"]) for row in data["ablations"]} == {("no-kl", 1)}
    full, without = ({k: v for k, v in cost.items() if k != "switch"} for cost in data["compute"])
    assert full == without
    written = (docs / "RESULTS.md").read_bytes()
    (docs / "RESULTS.md").unlink()
    assert main(["results", str(out), "--docs", str(docs)]) == 0
    assert (docs / "RESULTS.md").read_bytes() == written
    changed = ["study", str(config), "--train-seeds", "1", "--rollout-seeds", "1", *where[2:]]
    assert main(changed) == 1  # begun with 2
    assert main([*changed, "--jobs", "2"]) == 1
    assert "seed0" in capsys.readouterr().err
    assert "evaluation" in (out / "seed0.log").read_text()
