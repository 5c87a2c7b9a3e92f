"""A real language model through the same code: loads, generates, acts in the world, and is adapted.

`make test` has fetched the weights before (`scripts/get_smollm2.py`); the imitation adapter is in `configs/`.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import math
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.train

from advsim.action import ActionError  # noqa: E402
from advsim.agents import executor  # noqa: E402
from advsim.config import load  # noqa: E402
from advsim.training.rollouts import Input, play, sample  # noqa: E402
from advsim.training.team import Team  # noqa: E402
from benchmark_forms import stream  # noqa: E402

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "configs" / "smollm2.yaml"


@pytest.fixture(scope="module")
def config():
    found = load(CONFIG)
    folder = ROOT / found.backbone.path
    if not (folder / "config.json").is_file():
        pytest.skip("SmolLM2 is not here: `make test` fetches it, or run scripts/get_smollm2.py")
    backbone = found.backbone.model_copy(update={"path": str(folder), "adapter": str(ROOT / found.backbone.adapter)})
    return found.model_copy(update={"backbone": backbone})


def logprob(team, tokens):
    """Log-probability of what the executor wrote, by the trained model alone."""
    ids = torch.tensor([[*tokens.prompt_ids, *tokens.completion_ids]])
    team._peft.set_adapter("executor")
    with torch.no_grad():
        scores = team._peft(input_ids=ids).logits[0, len(tokens.prompt_ids) - 1 : -1].log_softmax(-1)
    wanted = torch.tensor(tokens.completion_ids)
    kept = scores.gather(-1, wanted[:, None])[:, 0][torch.tensor(tokens.mask)]
    return float(kept.mean())


def test_smollm2_loads_acts_and_is_adapted(config, tmp_path):
    team = Team(config, tmp_path)
    tasks = list(itertools.islice(stream(3, settings=("tiny",), exclude_families=config.tasks.held_out), 3))
    done = asyncio.run(play(config, team.executor(), [Input(task) for task in tasks], 2, ("smollm2",)))
    assert len(done) == 6
    assert all(rollout.row.error is None for rollout in done)
    replies = [step.completion for rollout in done for step in rollout.row.steps]
    actions = [executor.parse(reply) for reply in replies]
    # It writes actions, on the page that it was given: no model of this size does so without having learned to.
    assert sum(not isinstance(a, ActionError) for a in actions) >= 0.8 * len(actions)
    assert any(a.name in ("fill", "select_option", "click") for a in actions if not isinstance(a, ActionError))
    assert any(rollout.row.outcome.submitted for rollout in done)

    # What is rewarded becomes more likely, what is punished less; the other roles stay as they were.
    first, second = done[0].tokens, done[2].tokens
    before = logprob(team, first), logprob(team, second)
    others = team.checkpoints["adversary"], team.checkpoints["curriculum"]
    old = team.checkpoints["executor"]
    report = team.train("executor", [sample(first, 1.0, "a"), sample(second, -1.0, "b")], 0)
    assert math.isfinite(dataclasses.asdict(report)["loss"])
    after = logprob(team, first), logprob(team, second)
    assert after[0] > before[0]
    assert after[1] < before[1]
    assert team.checkpoints["executor"] != old
    assert (team.checkpoints["adversary"], team.checkpoints["curriculum"]) == others
