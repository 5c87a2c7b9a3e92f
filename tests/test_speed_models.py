"""The two programs of `advsim speed` that need a model: either way does the same work. No time is looked at."""

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.train

from advsim import speed  # noqa: E402
from advsim.config import Backbone  # noqa: E402
from advsim.speed import learner, rollouts  # noqa: E402
from benchmark_forms import families, generate  # noqa: E402


@pytest.fixture
def scene(tiny_backbone):
    # The random model's byte tokens make prompts long: the smallest task, two turns.
    tasks = [generate(family, "tiny", 0) for family in families()][:1]
    return rollouts.Scene(tasks, backbone=Backbone(path=str(tiny_backbone), device="cpu"), group=3, max_actions=2)


def test_all_ways_sample_the_same_tokens(scene):
    figures = rollouts.measure(scene, repeats=1)
    assert set(figures) == set(speed._ROLLOUTS)
    assert figures["rollout_same_tokens"] == 1


def test_the_yardsticks_read_again_what_our_engine_remembers(scene):
    ours, batched = scene.ours(), scene.ours(memory_mb=0)
    played = [scene.play(ours, 8), scene.play(batched, 8), scene.play(scene.plain(), 1)]
    assert ours.stats.read < batched.stats.read
    assert ours.stats.sampled == sum(len(part) for episode in played[2].tokens for part in episode)
    adversarys = [tokens[1:] for tokens in played[0].tokens]
    assert [bool(a) for a in adversarys] == [False, True, False]  # one in three plays against the adversary


def test_other_tokens_are_other_work(scene, monkeypatch):
    monkeypatch.setattr(
        scene,
        "plain",
        lambda: rollouts.PlainEngine(dict.fromkeys(("executor", "adversary"), scene._model), scene._tokenizer),
    )
    scene._adapters = {n: {k: v * 100 for k, v in a.items()} for n, a in scene._adapters.items()}
    with pytest.raises(RuntimeError, match="not the same work"):
        rollouts.measure(scene, repeats=1)


def test_both_losses_and_their_gradients_are_the_same():
    ids, policy = learner.sequence(300, 512)
    model = learner.make_model(300, 512)
    found = {}
    for way in ("ours", "all"):
        model.zero_grad()
        value = learner.loss(way, model, ids, policy)
        value.backward()
        found[way] = value.item(), [p.grad.clone() for p in model.parameters() if p.grad is not None]
    assert found["ours"][0] == pytest.approx(found["all"][0], abs=1e-5)
    assert found["ours"][1]
    for a, b in zip(found["ours"][1], found["all"][1], strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-4)


def test_a_groups_figure(tiny_backbone):
    figures = learner.group(Backbone(path=str(tiny_backbone), device="cpu"), tasks=1, rollouts=2, repeats=1)
    assert set(figures) == {"time_ratio"}
    assert figures["time_ratio"] > 0


def test_the_learners_figures(monkeypatch):
    figures = learner.measure("ours", tokens=384, vocabulary=300, repeats=1)
    assert figures["memory_mb"] >= 0
    assert figures["step_s"] > 0
    monkeypatch.setattr(speed, "_available_mb", lambda: 100_000)
    steps = {
        "ours": {"memory_mb": 10.0, "step_s": 1.0, "loss": 2.0},
        "all": {"memory_mb": 80.0, "step_s": 2.0, "loss": 2.0},
        "group": {"time_ratio": 0.7},
    }
    monkeypatch.setattr(speed, "_program", lambda name, way: steps[way])
    found = speed._learner()
    assert set(found) == set(speed._LEARNER)
    assert (found["learner_memory_ratio"], found["learner_step_time_ratio"]) == (0.125, 0.5)
    steps["all"]["loss"] = 2.1
    assert speed._learner() == {}
