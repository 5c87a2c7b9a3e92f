"""A run's folder: done once, whole or not at all, by one process, with one configuration."""

import asyncio
import shutil
import subprocess
import sys

import pytest

from advsim.config import RunConfig, parse
from advsim.ledger import Row
from advsim.training import steps
from advsim.training.steps import RunError, open_run, read_json, write_json

CONFIG = RunConfig()


def write(value, log=None):
    async def work(folder):
        if log is not None:
            log.append(value)
        write_json(folder / "value.json", value)

    return work


def test_a_step_is_done_once(tmp_path):
    log = []
    for value in (1, 2):
        with open_run(tmp_path, CONFIG, "w") as run:
            folder = asyncio.run(run.step("first", write(value, log)))
            assert read_json(folder / "value.json") == 1
            assert run.done("first")
    assert log == [1]


def test_a_step_that_fails_leaves_nothing_and_is_done_again(tmp_path):
    async def broken(folder):
        write_json(folder / "half.json", 1)
        raise OSError("no space left")

    with open_run(tmp_path, CONFIG, "w") as run:
        with pytest.raises(OSError, match="no space"):
            asyncio.run(run.step("first", broken))
        assert not run.done("first")
    with open_run(tmp_path, CONFIG, "w") as run:
        assert not list((tmp_path / "steps").iterdir())
        folder = asyncio.run(run.step("first", write(3)))
    assert sorted(file.name for file in folder.iterdir()) == ["files.json", "value.json"]


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (lambda step: [shutil.rmtree(step), step.mkdir()], r"first/files\.json: cannot be read \(.*No such file"),
        (lambda step: (step / "value.json").unlink(), r"first/value\.json: missing"),
        (lambda step: shutil.rmtree(step / "executor"), r"first/executor/adapter\.bin: missing"),
        (lambda step: (step / "value.json").write_text("2\n"), r"first/value\.json: not as the step left it"),
    ],
)
def test_a_step_that_lost_files_is_refused(tmp_path, harm, says):
    async def work(folder):
        write_json(folder / "value.json", 1)
        (folder / "executor").mkdir()
        (folder / "executor" / "adapter.bin").write_bytes(b"\0\1")

    with open_run(tmp_path, CONFIG, "w") as run:
        step = asyncio.run(run.step("first", work))
    harm(step)
    wanted = says + ".*delete the folder .*first and the steps after it"
    with pytest.raises(RunError, match=wanted) as caught, open_run(tmp_path, CONFIG, "w"):
        pass
    assert "\n" not in str(caught.value)
    shutil.rmtree(step)  # as the line says
    with open_run(tmp_path, CONFIG, "w") as run:
        asyncio.run(run.step("first", work))
    with open_run(tmp_path, CONFIG, "w") as run:
        assert run.done("first")


@pytest.mark.parametrize("kind", ["rollouts", "pages"])
def test_a_step_that_lost_its_part_of_the_ledger_is_refused(tmp_path, kind):
    row = Row(
        policy="executor", checkpoint="c", task_id="t", task_hash="h", world="symbolic", world_version="1", seed=0
    )

    def work(run):
        async def play(folder):
            run.write_rows("first", [row])

        return play

    with open_run(tmp_path, CONFIG, "w") as run:
        asyncio.run(run.step("first", work(run)))
        asyncio.run(run.step("second", write(1)))  # without rows
    lost = tmp_path / "ledger" / kind / "first.parquet"
    held = lost.read_bytes()
    lost.unlink()
    with (
        pytest.raises(RunError, match=rf"ledger/{kind}/first\.parquet: missing; .*delete the folder .*steps/first and"),
        open_run(tmp_path, CONFIG, "w"),
    ):
        pass
    lost.write_bytes(held)
    with open_run(tmp_path, CONFIG, "w") as run:
        assert run.done("first")
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(RunError, match="is no manifest of a run"), open_run(tmp_path, CONFIG, "w"):
        pass


def test_an_emptied_checkpoint_is_published_again(tmp_path):
    from advsim.training.executor_update import publish

    with open_run(tmp_path, CONFIG, "w") as run:
        folder = asyncio.run(run.step("first", write(1)))
        target = tmp_path / "adapters" / "robust1"
        for _ in range(2):
            publish(run, "robust1", folder)
            assert read_json(target / "value.json") == 1
            (target / "value.json").unlink()


def test_what_a_killed_process_left_is_removed(tmp_path):
    with open_run(tmp_path, CONFIG, "w") as run:
        left = run.scratch / ".trainer-abc.tmp"
        left.mkdir(parents=True)
        (left / "checkpoint").write_text("")
    with open_run(tmp_path, CONFIG, "w"):
        assert not left.exists()


def test_another_configuration_is_refused_with_the_difference(tmp_path):
    with open_run(tmp_path, CONFIG, "w"):
        pass
    other = parse({"seed": 4, "stage1": {"rounds": 1}, "evaluation": [{"limit": 5}, {"world": "browser"}]})
    with pytest.raises(RunError) as caught, open_run(tmp_path, other, "w"):
        pass
    assert "seed: 0 -> 4; stage1.rounds: 3 -> 1; evaluation.0.limit: 0 -> 5" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_another_backbone_or_version_is_refused(tmp_path, monkeypatch):
    with open_run(tmp_path, CONFIG, "w"):
        pass
    with pytest.raises(RunError, match=r"another backbone \(w -> v\)"), open_run(tmp_path, CONFIG, "v"):
        pass
    monkeypatch.setattr(steps, "__version__", "99")
    with pytest.raises(RunError, match="another version"), open_run(tmp_path, CONFIG, "w"):
        pass


def test_a_second_process_is_refused(tmp_path):
    code = (
        "import sys; from pathlib import Path; from advsim.config import RunConfig\n"
        "from advsim.training.steps import open_run\n"
        f"with open_run(Path({str(tmp_path)!r}), RunConfig(), 'w'): pass\n"
    )
    with open_run(tmp_path, CONFIG, "w"):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "another process is working in this folder" in done.stderr
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_steps_without_a_manifest_are_not_taken_over(tmp_path):
    (tmp_path / "steps" / "first").mkdir(parents=True)
    with pytest.raises(RunError, match=r"no manifest\.json"), open_run(tmp_path, CONFIG, "w"):
        pass


def test_a_damaged_artifact_says_what_to_do(tmp_path):
    (tmp_path / "value.json").write_text("{")
    with pytest.raises(RunError, match="delete the folder"):
        read_json(tmp_path / "value.json")


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be a run's folder"), open_run(tmp_path / "file" / "run", CONFIG, "w"):
        pass
