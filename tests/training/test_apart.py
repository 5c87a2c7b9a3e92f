"""Evaluation in several processes: the same rows, and nobody is left behind."""

import asyncio
import os
import signal
import subprocess
import sys
from dataclasses import dataclass

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.train

from advsim.config import load  # noqa: E402
from advsim.ledger import Ledger  # noqa: E402
from advsim.llm.backbone import fingerprint  # noqa: E402
from advsim.training.apart import players  # noqa: E402
from advsim.training.evaluation import Cell, missing  # noqa: E402
from advsim.training.run import run  # noqa: E402
from advsim.training.steps import RunError, open_run  # noqa: E402
from advsim.training.team import Team  # noqa: E402

# Nothing is trained, so the base is all there is to evaluate: one quick cell and three longer ones.
UNTRAINED = """
name: untrained
episode: {max_tokens: 2048, max_new_tokens: 48, max_actions: 4}
stage1: {rounds: 0}
stage2: {rounds: 0}
evaluation:
  - {world: symbolic, limit: 1, checkpoints: [base], attackers: [none]}
  - {world: symbolic, limit: 6, checkpoints: [base], attackers: [none, template]}
  - {world: symbolic, limit: 6, checkpoints: [base], attackers: [template], seeds: [3, 4]}
  - {world: browser, limit: 4, checkpoints: [base], attackers: [template]}
engine: {threads: 1}
"""


@pytest.fixture(scope="module")
def config_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("config") / "untrained.yaml"
    path.write_text(UNTRAINED)
    return path


@pytest.fixture(scope="module")
def alone(config_file, tmp_path_factory):
    out = tmp_path_factory.mktemp("run")
    run(load(config_file), out)
    return out


def parts(out):
    return {
        file.name: file.read_bytes() for kind in ("rollouts", "pages") for file in (out / "ledger" / kind).iterdir()
    }


def test_a_killed_parent_leaves_nobody_and_the_resumed_run_is_bit_for_bit_as_in_one_process(
    config_file, alone, tmp_path
):
    out = tmp_path / "run"
    command = [sys.executable, "-m", "advsim.cli", "run", str(config_file), "--out", str(out), "--jobs", "2"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("symbolic base")
        process.kill()
        # Its children hold the same pipe: it ends when the last of them has.
        process.stderr.read()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    table = [line.split()[:3] for line in done.stdout.splitlines() if " base " in f" {line}"]
    assert table == [["base", "symbolic", "none"], ["base", "symbolic", "template"], ["base", "browser", "template"]]
    assert Ledger(out / "ledger").digest() == Ledger(alone / "ledger").digest()
    assert parts(out) == parts(alone)
    assert not list(out.rglob("*.tmp"))


@dataclass(frozen=True)
class Deadly(Cell):
    """A cell that kills whoever plays it, as the kernel does when memory runs out."""

    owner: int = 0

    def __getattribute__(self, name):
        if name == "block" and os.getpid() != object.__getattribute__(self, "owner"):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getattribute__(name)


def test_a_killed_process_is_one_clear_line(config_file, tmp_path):
    config = load(config_file)
    with open_run(tmp_path / "run", config, fingerprint(config.backbone)) as folder:
        first, second, *_ = missing(folder)
        deadly = Deadly(first.number, first.block, first.label, owner=os.getpid())
        with (
            pytest.raises(RunError, match="a process of the evaluation was killed"),
            players(folder, Team(config), [deadly, second], processes=2) as rows_of,
        ):
            asyncio.run(rows_of(deadly))  # type: ignore[arg-type]
