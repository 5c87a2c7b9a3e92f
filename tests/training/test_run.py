"""A miniature run on the shipped backbone: killed and resumed it ends bit for bit as without; its ledger adds up."""

import os
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from random import Random

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.train

from advsim.config import ConfigError, load, parse  # noqa: E402
from advsim.ledger import Ledger  # noqa: E402
from advsim.llm import backbone as weights  # noqa: E402
from advsim.rewards.advantage import difficulty_scale, group_advantages  # noqa: E402
from advsim.training.evaluation import labels  # noqa: E402
from advsim.training.run import run  # noqa: E402
from advsim.training.stage2 import rounds  # noqa: E402
from advsim.training.steps import RunError  # noqa: E402
from advsim.training.team import Team  # noqa: E402

MINI = """
name: mini
tasks: {setting: tiny, min_valid: 1.0}
episode: {max_tokens: 2048, max_new_tokens: 64, max_actions: 6}
proposer: {curriculum_tokens: 160, adversary_tokens: 96}
temperatures: {executor: 1.2}
learner: {lr: 1.0e-3, batch_groups: 3, micro_batch: 8}
lora: {rank: 4, alpha: 8}
stage1: {rounds: 1, proposals: 5, rollouts: 3, group: 3, executor_epochs: 2, reuse: true}
stage2: {rounds: 2, proposals: 5, rollouts: 2, adversary_group: 3, executor_group: 4, eta: 0.3}
switches: {adversary_mode: both}
evaluation:
  - {world: symbolic, limit: 4, checkpoints: [base, robust], attackers: [none, adversary]}
engine: {threads: 1}
"""


@pytest.fixture(scope="module")
def config_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("config") / "mini.yaml"
    path.write_text(MINI)
    return path


@pytest.fixture(scope="module")
def finished(config_file, tmp_path_factory):
    out = tmp_path_factory.mktemp("run")
    run(load(config_file), out)
    return out


def digests(out):
    found = {"ledger": Ledger(out / "ledger").digest()}
    for folder in sorted((out / "adapters").iterdir()):
        found[folder.name] = (folder / weights.WEIGHTS).read_bytes()
    return found


# Runs the command with a limit of processor time from where the work begins; there the kernel sends SIGKILL.
DOOMED = """
import resource, sys, time
import advsim.training.run  # what is loaded before the work does not count
from advsim.cli import main
seconds = int(time.process_time()) + int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
sys.exit(main())
"""


def test_killed_ten_times_a_run_goes_on_and_ends_bit_for_bit_alike(config_file, finished, tmp_path):
    rng = Random(20)
    environment = os.environ | {"CI": "1"}
    folder, arguments, kills = tmp_path / "run", ["run", str(config_file), "--out", str(tmp_path / "run")], 0
    reached = []
    while kills < 10:
        seconds = str(rng.choice((1, 1, 2, 2, 3)))  # of processor time, so that it is another moment each time
        done = subprocess.run(
            [sys.executable, "-c", DOOMED, seconds, *arguments], env=environment, capture_output=True, check=False
        )
        reached.append(len(list((folder / "steps").glob("*"))) if (folder / "steps").is_dir() else 0)
        if done.returncode != -signal.SIGKILL:
            assert done.returncode == 0, done.stderr
            break
        kills += 1
    assert kills == 10, f"the run was done after {kills} kills: {reached}"
    assert len(set(reached)) > 2, reached
    command = [sys.executable, "-m", "advsim.cli", *arguments]
    last = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert last.returncode == 0, last.stderr
    assert digests(folder) == digests(finished)
    assert not list(folder.rglob("*.tmp"))


def test_a_finished_run_does_nothing_again(config_file, finished):
    before = {file: file.stat().st_mtime_ns for file in (finished / "steps").rglob("*")}
    run(load(config_file), finished)
    assert {file: file.stat().st_mtime_ns for file in (finished / "steps").rglob("*")} == before


def test_every_policy_was_trained_and_every_checkpoint_is_there(finished):
    names = {"capability1", "robust1", "robust2", "adversary1", "adversary2"}
    assert {folder.name for folder in (finished / "adapters").iterdir()} == names
    states = {name: weights.digest(weights.read(finished / "adapters" / name)) for name in names}
    assert len(set(states.values())) >= 4  # a round whose groups all agree may leave one as it was
    assert (finished / "report.html").is_file()


def test_the_ledger_adds_up(finished):
    rows = list(Ledger(finished / "ledger").rows())
    assert {row.role for row in rows} == {"executor", "curriculum", "adversary"}
    phases = Counter((row.stage, row.role, row.phase) for row in rows)
    assert phases["stage1", "curriculum", "propose"] == phases["stage1", "curriculum", "fresh"] == 5
    assert phases["stage2", "curriculum", "propose"] == 10
    assert phases["stage2", "executor", "control"] > 0
    assert phases["eval", "executor", "eval"] == 2 * 2 * 4
    groups = defaultdict(list)
    for row in rows:
        assert row.config_hash
        assert (row.error is None) or (row.reward is None and row.good is None)
        assert row.max_actions == (6 if row.role == "executor" else None)
        if row.role == "executor" and row.phase == "update":
            groups[row.stage, row.round, row.update, row.group].append(row)
    assert any(row.advantage for group in groups.values() for row in group), "no group teaches anything"
    for group in groups.values():
        assert len({row.checkpoint for row in group}) == 1
        expected = group_advantages([row.reward for row in group], difficulty_scale(group[0].p_hat))
        assert [row.advantage for row in group] == pytest.approx(expected)
    attacked = {row.attack is not None for row in rows if row.phase == "update" and row.stage == "stage2"}
    assert True in attacked, "no executor met an attack"


def test_stage_2_alone_needs_stage_1(config_file, tmp_path):
    with pytest.raises(RunError, match="stage 1 is not done here"):
        run(load(config_file), tmp_path / "run", ("stage2",))


def test_without_stage_1_as_many_rollouts_are_planned():
    off = parse({"switches": {"stage1": False}})
    assert rounds(parse({})) == 3
    # The paper's sizes: stage 1 has 3 x 150 x (6 + 6 + 2 x 6) = 10,800 rollouts, a round of stage 2
    # 40 x (4 for p̂ + 4 controls + 6 x 4 forks + 4 for p̂ under attack + 4 to learn from) = 1,600.
    assert rounds(off) == 3 + round(10_800 / 1_600)
    assert labels(off, ("base", "capability", "robust"), "checkpoint") == ["base", "robust10"]


def test_evaluation_names_are_resolved():
    config = parse({})
    assert labels(config, ("base", "capability", "capability1", "robust"), "checkpoint") == [
        "base",
        "capability3",
        "capability1",
        "robust3",
    ]
    none = parse({"stage2": {"rounds": 0}})
    assert labels(none, ("robust", "capability"), "checkpoint") == ["capability3"]
    assert labels(none, ("none", "template", "adversary"), "attacker") == ["none", "template"]
    with pytest.raises(ConfigError, match="'robust4' is asked for, but the run has 3 such rounds"):
        labels(config, ("robust4",), "checkpoint")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"evaluation": [{"checkpoints": ["capability9"]}]}, "'capability9' is asked for, but the run has 3"),
        ({"evaluation": [{"attackers": ["adversary9"]}]}, "'adversary9' is asked for, but the run has 3"),
        ({"tasks": {"setting": "nosuch"}}, "tasks.setting: expected one of .*small"),
        ({"tasks": {"held_out": ["nosuch"]}}, "tasks.held_out: expected families .*got 'nosuch'"),
        ({"episode": {"max_tokens": 2048}, "lora": {"targets": ["nosuch"]}}, "lora.targets: .*nosuch"),
    ],
)
def test_what_a_run_could_not_do_is_found_out_before_it_begins(data, says, tmp_path):
    with pytest.raises(ConfigError, match=says):
        run(parse(data), tmp_path / "run")
    assert not list((tmp_path / "run").glob("steps/*"))


def test_a_window_longer_than_the_backbones_is_refused():
    with pytest.raises(ConfigError, match=r"episode\.max_tokens: expected at most"):
        Team(parse({"episode": {"max_tokens": 131072}}))
