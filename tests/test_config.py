from pathlib import Path

import pytest

from advsim.config import ConfigError, RunConfig, load, parse

CONFIGS = sorted((Path(__file__).parents[1] / "configs").glob("*.yaml"))


def test_defaults_are_the_published_values():
    config = RunConfig()
    assert (config.stage1.rounds, config.stage1.proposals, config.stage1.rollouts, config.stage1.group) == (
        3,
        150,
        6,
        6,
    )
    assert (config.stage1.curriculum_epochs, config.stage1.executor_epochs) == (1, 2)
    assert (config.stage2.proposals, config.stage2.rollouts) == (40, 4)
    assert (config.stage2.adversary_group, config.stage2.executor_group) == (6, 4)
    assert config.stage2.mixture.model_dump() == {"fresh": 0.5, "history": 0.25, "clean": 0.25}
    assert (config.lora.rank, config.lora.alpha, config.lora.dropout, config.learner.lr) == (16, 32, 0, 1e-5)
    assert (config.rewards.lambda_c, config.rewards.lambda_a, config.learner.beta) == (0.3, 0.3, 0.01)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: p.stem)
def test_shipped_configurations_load(path):
    assert load(path).name == path.stem


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ({"stage1": {"roundz": 3}}, "configuration: stage1.roundz: unknown key; did you mean 'rounds'?"),
        ({"worlds": {}}, "configuration: worlds: unknown key; did you mean 'world'?"),
        ({"stage1": {"rounds": -1}}, "configuration: stage1.rounds: expected greater than or equal to 0, got -1"),
        (
            {"stage1": {"rounds": "many"}},
            "configuration: stage1.rounds: expected a valid integer, unable to parse string as an integer, got 'many'",
        ),
        (
            {"episode": {"observation": "half"}},
            "configuration: episode.observation: expected 'diff' or 'full', got 'half'",
        ),
        ({"learner": {"lr": float("nan")}}, "configuration: learner.lr: expected a finite number, got nan"),
        (
            {"stage2": {"mixture": {"fresh": 0.9}}},
            "configuration: stage2.mixture: expected shares that sum to 1, got 0.9 + 0.25 + 0.25",
        ),
        (
            {"evaluation": [{"attackers": ["template7"]}]},
            "configuration: evaluation.0.attackers: expected",
        ),
        ([1], "configuration: expected a mapping of sections, got [1]"),
        (
            {"episode": {"max_tokens": 128}, "proposer": {"curriculum_tokens": 64}},
            "configuration: proposer.adversary_tokens: expected less than episode.max_tokens (128), got 256",
        ),
    ],
)
def test_a_wrong_value_is_refused_in_one_line(data, line):
    with pytest.raises(ConfigError) as caught:
        parse(data)
    message = str(caught.value)
    assert "\n" not in message
    if data == {"evaluation": [{"attackers": ["template7"]}]}:
        assert "got 'template7'" in message
    else:
        assert message == line


def test_several_problems_say_how_many_more():
    with pytest.raises(ConfigError, match=r"stage1\.rounds: .* \(and 1 more\)$"):
        parse({"stage1": {"rounds": -1}, "stage2": {"rounds": -1}})


@pytest.mark.parametrize("text", ["stage1: [", "a: b: c", "\x00"])
def test_broken_yaml_is_one_line(tmp_path, text):
    path = tmp_path / "c.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_one_line(tmp_path):
    with pytest.raises(ConfigError, match="expected a configuration file, found none"):
        load(tmp_path / "none.yaml")


def test_hash_depends_on_settings_not_on_how_they_were_written(tmp_path):
    one, two = tmp_path / "1.yaml", tmp_path / "2.yaml"
    one.write_text("seed: 3\nstage1: {rounds: 1}\n")
    two.write_text("# other words\nstage1:\n  rounds: 1\nseed: 3\nname: run\n")
    assert load(one).hash == load(two).hash
    assert load(one).hash != RunConfig().hash


def test_difference_names_each_key():
    assert RunConfig().difference(parse({"seed": 1, "stage1": {"rounds": 1}})) == [
        "seed: 0 -> 1",
        "stage1.rounds: 3 -> 1",
    ]


def test_a_missing_backbone_or_adapter_is_one_line(tmp_path):
    pytest.importorskip("torch")
    from advsim.config import Backbone
    from advsim.llm.backbone import load as load_backbone

    with pytest.raises(ConfigError, match=r"backbone\.path: expected a folder with config\.json"):
        load_backbone(Backbone(path=str(tmp_path)))
    with pytest.raises(ConfigError, match=r"backbone\.adapter: expected a folder with adapter_model\.safetensors"):
        load_backbone(Backbone(adapter=str(tmp_path)))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ConfigError, match="cannot be loaded") as caught:
        load_backbone(Backbone(path=str(tmp_path)))
    assert "\n" not in str(caught.value)
