"""Executors and attackers by the names that the command line and configurations use."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from advsim.agents import scripted, template
from advsim.agents.protocol import Attacker, Executor
from advsim.config import Backbone, ConfigError, RunConfig, parse
from advsim.task import Task

if TYPE_CHECKING:
    from advsim.llm.policies import Sampling

ATTACKERS = ("none", "template", "reactive")


def agents(
    executor: str, attacker: str, tasks: Sequence[Task], *, backbone: str | None = None
) -> tuple[Executor, Attacker | None]:
    """The two sides of an evaluation.

    A policy from a run's `adapters/` plays as it was trained: with the backbone, the temperatures and the limits of the
    configuration in the run's manifest. Others play with the defaults.

    Args:
        executor: A scripted one (`scripted.NAMES`), `base` (the backbone without an adapter), or an adapter's folder.
        attacker: `none`, `template`, `reactive`, or an adapter's folder.
        tasks: The tasks of the evaluation, over which the template attacker deals its goals evenly.
        backbone: The model below adapters: `embedded` or a folder; None: the run's, else the embedded one.

    Raises:
        ConfigError: There is no usable model.
        ValueError: A name that is neither known nor a folder with an adapter, an adapter that does not fit, or two of
            runs with different backbones.
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
        model = _Model([adapter for adapter in (own, other) if adapter is not None], backbone)
        played = played or model.executor(own)
        attacking = model.attacker(other) if other is not None else attacking
    return played, attacking


class _Model:
    """The backbone in one engine, for both sides: `agents` says which, and what it raises."""

    def __init__(self, adapters: Sequence[Path], backbone: str | None) -> None:
        # torch and transformers take seconds to import: only those wait who ask for a model.
        from advsim.llm.backbone import fingerprint, load
        from advsim.llm.chat import ChatFormat
        from advsim.llm.local import LocalEngine

        given = None if backbone is None else Backbone(path=backbone)
        self._configs = {adapter: _config(adapter) for adapter in adapters}
        wanted = list(dict.fromkeys(config.backbone for config in self._configs.values())) or [Backbone()]
        if given is None and len(wanted) > 1:
            raise ValueError(f"the two runs have different backbones ({wanted[0].path}, {wanted[1].path})")
        chosen = given or wanted[0]
        self._model, tokenizer = load(chosen)
        # Other weights' figures must not pass for the embedded ones' in a ledger.
        self._weights = "" if chosen == Backbone() else f"@{fingerprint(chosen)[:12]}"
        self._positions: int | None = getattr(self._model.config.get_text_config(), "max_position_embeddings", None)
        self._chat = ChatFormat(tokenizer)
        self._engine = LocalEngine(self._model, tokenizer, scale=1.0)

    def executor(self, adapter: Path | None) -> Executor:
        from advsim.llm.policies import ModelExecutor

        config = RunConfig() if adapter is None else self._configs[adapter]
        limits = config.episode
        sampling = self._sampling(config, config.temperatures.evaluation, limits.max_new_tokens)
        name, checkpoint = self._add(adapter)
        return ModelExecutor(self._engine, name, checkpoint, self._chat, sampling, limits.observation, name or "base")

    def attacker(self, adapter: Path) -> Attacker:
        from advsim.llm.policies import ModelAttacker

        config = self._configs[adapter]
        limits = config.proposer
        sampling = self._sampling(config, config.temperatures.adversary, limits.adversary_tokens)
        name, checkpoint = self._add(adapter)
        return ModelAttacker(self._engine, name, checkpoint, self._chat, sampling, "reactive", limits.max_queries, name)

    def _sampling(self, config: RunConfig, temperature: float, max_new_tokens: int) -> Sampling:
        """As configured; a conversation is no longer than the backbone has positions."""
        from advsim.llm.policies import Sampling

        longest = config.episode.max_tokens
        room = min(longest, self._positions or longest)
        return Sampling(temperature, max_new_tokens, room, config.backbone.verbose)

    def _add(self, adapter: Path | None) -> tuple[str | None, str]:
        """Give the engine an adapter; its name and the hash of its weights."""
        if adapter is None:
            return None, f"base{self._weights}"
        from safetensors import SafetensorError

        from advsim.llm.backbone import digest, read
        from advsim.llm.local import check_fit

        try:
            config = json.loads((adapter / "adapter_config.json").read_text(encoding="utf-8"))
            scale = float(config["lora_alpha"] / config["r"])
            tensors = read(adapter)
        except (SafetensorError, OSError, ValueError, LookupError, TypeError, ZeroDivisionError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise ValueError(f"{adapter}: no adapter that can be read ({reason}); was it copied whole?") from error
        try:
            check_fit(self._model, tensors)
        except ValueError as error:
            raise ValueError(f"{adapter}: {error}") from None
        # The engine has one scale for all adapters; these may differ, so theirs goes into the weights.
        scaled = {key: value * scale if ".lora_B." in key else value for key, value in tensors.items()}
        name = _label(adapter)
        self._engine.add(name, scaled)
        return name, digest(tensors)


def _config(adapter: Path) -> RunConfig:
    """The configuration of the run that an adapter lies in; the defaults for others.

    Raises:
        ConfigError: The run's manifest cannot be read.
    """
    *_, folder, _name = ("", *adapter.resolve().parts)
    manifest = adapter.resolve().parent.parent / "manifest.json"
    if folder != "adapters" or not manifest.is_file():
        return RunConfig()
    try:
        found = json.loads(manifest.read_text(encoding="utf-8"))["config"]
    except (OSError, ValueError, LookupError, TypeError):
        raise ConfigError(f"{manifest}: cannot be read, so how the run's policies play is not known") from None
    return parse(found, str(manifest))


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
