"""The three policies on one backbone: who plays with which weights, and how one of them is trained."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import torch

from advsim.config import ROLES, ConfigError, Role, RunConfig
from advsim.llm import backbone as weights
from advsim.llm.chat import ChatFormat
from advsim.llm.local import LocalEngine
from advsim.llm.policies import ModelAttacker, ModelExecutor, Sampling
from advsim.training.learner import Sample, UpdateReport, update


class Team:
    """The backbone, an engine to play with, and a trainable adapter for each role.

    Args:
        config: The run's configuration.
        scratch: Where the trainer's temporary folders lie; None: with the system's own.

    Attributes:
        engine: Runs all of them. chat: The backbone's chat format. backbone: Hash of its weights.
        checkpoints: What each role plays with: the hash of its adapter.

    Raises:
        ConfigError: There is no usable backbone.
    """

    def __init__(self, config: RunConfig, scratch: Path | None = None) -> None:
        if config.engine.threads:
            torch.set_num_threads(config.engine.threads)
        model, self._tokenizer = weights.load(config.backbone)
        positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
        if positions is not None and config.episode.max_tokens > positions:
            raise ConfigError(
                f"episode.max_tokens: expected at most {positions} (the backbone's positions), "
                f"got {config.episode.max_tokens}"
            )
        self.backbone = weights.fingerprint(config.backbone)
        self.chat = ChatFormat(self._tokenizer)
        self.engine = LocalEngine(
            model,
            self._tokenizer,
            scale=config.lora.alpha / config.lora.rank,
            max_batch=config.engine.max_batch,
            memory_mb=config.engine.memory_mb,
        )
        self._config = config
        self._scratch = scratch
        self._peft = weights.with_adapters(copy.deepcopy(model), config.lora, config.seed)
        self._initial = {role: weights.state(self._peft, role) for role in ROLES}
        self.checkpoints: dict[Role, str] = {}
        for role in ROLES:
            self.use(role, None)

    def use(self, role: Role, folder: Path | None) -> None:
        """Gives a role the adapter saved in a folder; None: the adapter that it begins with."""
        if folder is None:
            weights.set_state(self._peft, role, self._initial[role])
        else:
            weights.restore(self._peft, role, folder)
        self._publish(role)

    def add(self, label: str, folder: Path | None) -> tuple[str, str]:
        """Makes a saved adapter playable beside the team's own: its name in the engine, and its hash."""
        if folder is None:
            tensors = self._initial["executor"]
        else:
            tensors = weights.read(folder)
        digest = weights.digest(tensors)
        self.engine.add(f"{label}@{digest}", tensors)
        return f"{label}@{digest}", digest

    def executor(self) -> ModelExecutor:
        """The executor, as it is trained."""
        name, checkpoint = self._name("executor"), self.checkpoints["executor"]
        return self._executor(name, checkpoint, "executor", self._config.temperatures.executor)

    def checkpoint(self, adapter: str, checkpoint: str, label: str) -> ModelExecutor:
        """A checkpoint of the executor that was added, as it is evaluated."""
        return self._executor(adapter, checkpoint, label, self._config.temperatures.evaluation)

    def _executor(self, adapter: str, checkpoint: str, label: str, temperature: float) -> ModelExecutor:
        episode = self._config.episode
        sampling = Sampling(temperature, episode.max_new_tokens, episode.max_tokens, self._config.backbone.verbose)
        return ModelExecutor(self.engine, adapter, checkpoint, self.chat, sampling, episode.observation, label)

    def attacker(
        self,
        mode: Literal["static", "reactive"],
        adapter: str | None = None,
        checkpoint: str | None = None,
        name: str = "adversary",
    ) -> ModelAttacker:
        """The adversary, or a checkpoint of it that was added."""
        config = self._config
        return ModelAttacker(
            self.engine,
            adapter or self._name("adversary"),
            checkpoint or self.checkpoints["adversary"],
            self.chat,
            self.sampling("adversary"),
            mode,
            config.proposer.max_queries,
            name,
        )

    def sampling(self, role: Literal["curriculum", "adversary"]) -> Sampling:
        """How a proposer is sampled."""
        config = self._config
        curriculum = role == "curriculum"
        return Sampling(
            config.temperatures.curriculum if curriculum else config.temperatures.adversary,
            config.proposer.curriculum_tokens if curriculum else config.proposer.adversary_tokens,
            config.episode.max_tokens,
            config.backbone.verbose,
        )

    def adapter(self, role: Role) -> str:
        """The name under which the engine knows a role's present weights."""
        return self._name(role)

    def train(self, role: Role, samples: Sequence[Sample], seed: int) -> UpdateReport:
        """Updates a role's adapter."""
        report = update(
            self._peft,
            self._tokenizer,
            role,
            samples,
            self._config.learner,
            seed=seed,
            kl=self._config.switches.kl,
            folder=self._scratch,
        )
        self._publish(role)
        return report

    def save(self, role: Role, folder: Path) -> None:
        """Writes a role's adapter."""
        weights.save(self._peft, role, folder)

    def _publish(self, role: Role) -> None:
        tensors = weights.state(self._peft, role)
        self.checkpoints[role] = weights.digest(tensors)
        self.engine.add(self._name(role), tensors)

    def _name(self, role: Role) -> str:
        return f"{role}@{self.checkpoints[role]}"
