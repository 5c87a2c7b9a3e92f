"""Executors and attackers by the names that the command line and configurations use."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from advsim.agents import scripted, template
from advsim.agents.protocol import Attacker, Executor
from advsim.config import Backbone, RunConfig
from advsim.task import Task

ATTACKERS = ("none", "template", "reactive")


def agents(
    executor: str, attacker: str, tasks: Sequence[Task], *, backbone: str = "embedded"
) -> tuple[Executor, Attacker | None]:
    """The two sides of an evaluation.

    Args:
        executor: A scripted one (`scripted.NAMES`), `base` (the backbone without an adapter), or an adapter's folder.
        attacker: `none`, `template`, `reactive`, or an adapter's folder.
        tasks: The tasks of the evaluation, over which the template attacker deals its goals evenly.
        backbone: The model below adapters.

    Raises:
        ValueError: A name that is neither known nor a folder with an adapter.
        ModuleNotFoundError: A model is asked for and the `train` extra is not installed.
    """
    played = scripted.make(executor) if executor in scripted.NAMES else None
    attacking = template.make_attacker(attacker, tasks) if attacker in ATTACKERS else None
    own, other = None, None
    if played is None and executor != "base":
        own = _adapter("executor", executor, (*scripted.NAMES, "base"))
    if attacker not in ATTACKERS:
        other = _adapter("attacker", attacker, ATTACKERS)
    if played is None or other is not None:
        model = _Model(backbone)
        played = played or model.executor(own)
        attacking = model.attacker(other) if other is not None else attacking
    return played, attacking


class _Model:
    """The backbone in one engine, for both sides.

    Args:
        backbone: `embedded` or a folder.

    Raises:
        ConfigError: There is no usable model.
    """

    def __init__(self, backbone: str) -> None:
        # torch and transformers take seconds to import: only those wait who ask for a model.
        from advsim.llm.backbone import load
        from advsim.llm.chat import ChatFormat
        from advsim.llm.local import LocalEngine

        config = RunConfig(backbone=Backbone(path=backbone))
        model, tokenizer = load(config.backbone)
        self._config = config
        self._chat = ChatFormat(tokenizer)
        self._engine = LocalEngine(model, tokenizer, scale=1.0)

    def executor(self, adapter: Path | None) -> Executor:
        from advsim.llm.policies import ModelExecutor, Sampling

        limits = self._config.episode
        sampling = Sampling(self._config.temperatures.executor, limits.max_new_tokens, limits.max_tokens)
        name, checkpoint = self._add(adapter)
        return ModelExecutor(self._engine, name, checkpoint, self._chat, sampling, limits.observation, name or "base")

    def attacker(self, adapter: Path) -> Attacker:
        from advsim.llm.policies import ModelAttacker, Sampling

        limits = self._config.proposer
        tokens = self._config.episode.max_tokens
        sampling = Sampling(self._config.temperatures.adversary, limits.adversary_tokens, tokens)
        name, checkpoint = self._add(adapter)
        return ModelAttacker(self._engine, name, checkpoint, self._chat, sampling, "reactive", limits.max_queries, name)

    def _add(self, adapter: Path | None) -> tuple[str | None, str]:
        """Give the engine an adapter; its name and the hash of its weights."""
        if adapter is None:
            return None, "base"
        from safetensors import SafetensorError

        from advsim.llm.backbone import digest, read

        try:
            config = json.loads((adapter / "adapter_config.json").read_text(encoding="utf-8"))
            scale = float(config["lora_alpha"] / config["r"])
            tensors = read(adapter)
        except (SafetensorError, ValueError, LookupError, TypeError, ZeroDivisionError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise ValueError(f"{adapter}: no adapter that can be read ({reason}); was it copied whole?") from error
        # The engine has one scale for all adapters; these may differ, so theirs goes into the weights.
        scaled = {key: value * scale if ".lora_B." in key else value for key, value in tensors.items()}
        name = _label(adapter)
        self._engine.add(name, scaled)
        return name, digest(tensors)


def _label(adapter: Path) -> str:
    """What tables call an adapter: `run/checkpoint`; every run keeps its own below a folder `adapters`."""
    *above, folder, name = ("", *adapter.resolve().parts)
    run = above[-1] if folder == "adapters" and above else folder
    return f"{run}/{name}"


def _adapter(role: str, name: str, known: Sequence[str]) -> Path:
    path = Path(name)
    if (path / "adapter_config.json").is_file():
        return path
    if name and path.is_dir():
        raise ValueError(f"--{role} {name}: the folder holds no adapter (expected adapter_config.json)")
    raise ValueError(f"--{role}: expected one of {', '.join(known)} or an adapter's folder, got {name!r}")
