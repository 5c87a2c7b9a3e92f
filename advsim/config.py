"""One schema for a run: every switch, size and rate, checked before anything starts.

The defaults are the published values where there are such (`docs/method.md` §3); `configs/` holds the runs people use.
Unknown keys are refused, so a misspelt switch cannot silently leave its mechanism on.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from advsim.world.faults import FaultModel

Role = Literal["curriculum", "adversary", "executor"]
ROLES: tuple[Role, ...] = ("curriculum", "adversary", "executor")
Rate = Field(ge=0.0, le=1.0)


class ConfigError(ValueError):
    """A configuration that cannot be used. The message is one line: file, key, what was expected, what came."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Backbone(_Section):
    """The frozen model below all three policies.

    Attributes:
        path: `embedded` (the one that ships) or a local folder in Hugging Face's layout; never a name to download.
        adapter: Folder of a LoRA adapter that is merged into the backbone first (an imitation warm start), if any.
        device, dtype: Where and in what precision it runs; `auto` takes a GPU if there is one.
        verbose: Whether prompts explain the formats in words: for a model that was not trained on them.
    """

    path: str = "embedded"
    adapter: str | None = None
    device: Literal["auto", "cpu", "cuda"] = "auto"
    dtype: Literal["float32", "bfloat16"] = "float32"
    verbose: bool = False


class WorldConfig(_Section):
    """The world that training happens in.

    Attributes:
        name: Which.
        faults: Rates at which it errs as a learned world does; all zero: exact semantics.
    """

    name: Literal["symbolic"] = "symbolic"
    faults: FaultModel = FaultModel()


class Tasks(_Section):
    """Which tasks are generated for training.

    Attributes:
        setting: Size of generated forms, as `benchmark_forms` names it (`tiny`, `small`, `easy-short`, …).
        held_out: Families that training never sees; the report has a table of its own for them.
        top_up: Whether a round with too few valid proposals is filled up from the seeded generator (recorded as such).
        min_valid: Share of a round's proposals that must be valid before no top-up is needed.
    """

    setting: str = Field("small", pattern=r"^[a-z]+(-[a-z]+)*$")
    held_out: tuple[str, ...] = ()
    top_up: bool = True
    min_valid: float = Field(0.5, ge=0, le=1)


class Episode(_Section):
    """One attempt at a task.

    Attributes:
        observation: `full` shows each page whole, `diff` the first page and then the changed lines.
        max_actions: Actions before the episode ends by itself.
        max_tokens: Longest trajectory; whole turns are cut before that, never the goal.
        max_new_tokens: Longest completion of the executor in one turn.
        judge: Who decides that a training rollout was good.
        retries: Attempts at an episode whose infrastructure failed, before it becomes an error row.
    """

    observation: Literal["diff", "full"] = "diff"
    max_actions: int = Field(12, ge=1, le=100)
    max_tokens: int = Field(4096, ge=128, le=131072)
    max_new_tokens: int = Field(96, ge=8, le=4096)
    judge: Literal["strict"] = "strict"
    retries: int = Field(2, ge=0, le=10)


class Proposer(_Section):
    """Limits of the two proposing roles, and how a reactive adversary is asked (`docs/method.md` §3.11)."""

    curriculum_tokens: int = Field(512, ge=16, le=8192)
    adversary_tokens: int = Field(256, ge=16, le=4096)
    max_queries: int = Field(11, ge=1, le=100)


class Temperatures(_Section):
    """Sampling temperature of each role; 0 is greedy. `evaluation` is the executor's outside training."""

    executor: float = Field(0.7, ge=0, le=2)
    evaluation: float = Field(0.7, ge=0, le=2)
    curriculum: float = Field(1.0, ge=0, le=2)
    adversary: float = Field(1.0, ge=0, le=2)


class Lora(_Section):
    """The adapters (`docs/method.md` §3.10). `targets` are module names, or `all-linear`."""

    rank: int = Field(16, ge=1, le=256)
    alpha: int = Field(32, ge=1, le=1024)
    dropout: float = Field(0.0, ge=0, lt=1)
    targets: Literal["all-linear"] | tuple[str, ...] = "all-linear"


class Learner(_Section):
    """How a batch of rollouts becomes a step (`docs/method.md` §3.6).

    Attributes:
        lr: Learning rate of AdamW, constant.
        beta: Weight of the penalty towards the backbone.
        batch_groups: Groups whose masked tokens share one step and its N; 0 puts the whole epoch into one step.
        skip_decided: Leaves out groups whose samples all earned the same, in which only the penalty towards the
            backbone acts. Cheaper where most groups are such; not as published, since N then counts fewer tokens.
        micro_batch: Trajectories in one forward pass; does not change the result, only memory and speed.
        max_grad_norm: Gradient clipping; 0 for none.
        gradient_checkpointing: Trades time for memory.
    """

    lr: float = Field(1e-5, gt=0, le=1)
    beta: float = Field(0.01, ge=0, le=10)
    batch_groups: int = Field(8, ge=0, le=100_000)
    skip_decided: bool = False
    micro_batch: int = Field(4, ge=1, le=1024)
    max_grad_norm: float = Field(1.0, ge=0)
    gradient_checkpointing: bool = False


class Rewards(_Section):
    """The constants of `docs/method.md` §3.2 to §3.5."""

    lambda_c: float = Field(0.3, ge=0, le=10)
    lambda_a: float = Field(0.3, ge=0, le=10)
    min_solve_rate: float = Field(0.1, ge=0, lt=1)
    min_scale: float = Field(0.1, ge=0, le=1)
    similarity: float = Field(0.8, gt=0, le=1)
    w_g: float = Field(0.5, ge=0, le=1)
    w_r: float = Field(0.5, ge=0, le=1)


class Switches(_Section):
    """Each mechanism of the method, on as published; an ablation turns one.

    Attributes:
        uncertainty: Curriculum paid by `q(p̂)`; off: every solvable proposal is paid alike.
        adversary_reward: `flip` compares with clean controls; `any_failure` counts every bad continuation; `constant`
            pays every well-formed proposal alike (no judge).
        history: Earlier rounds' attacks in the executor's mixture; off: fresh ones in their place.
        stage1: Off: stage 2 starts from the base, with as many rounds more as plan the rollouts that stage 1 would have
            had; the executor is updated less often for them (`docs/results-format.md`).
        difficulty_scale: Executor advantages scaled by `f(p̂)`; off: 1.
        kl: The penalty towards the backbone.
        repetition: The repetition penalties of both proposers.
        adversary_mode: How the adversary attacks in training: on the first page, step by step, or half each.
    """

    uncertainty: bool = True
    adversary_reward: Literal["flip", "any_failure", "constant"] = "flip"
    history: bool = True
    stage1: bool = True
    difficulty_scale: bool = True
    kl: bool = True
    repetition: bool = True
    adversary_mode: Literal["static", "reactive", "both"] = "static"


ABLATIONS: dict[str, dict[str, Any]] = {
    "uniform-reward": {"uncertainty": False},
    "any-failure": {"adversary_reward": "any_failure"},
    "constant-reward": {"adversary_reward": "constant"},
    "no-history": {"history": False},
    "no-stage1": {"stage1": False},
    "no-difficulty-scale": {"difficulty_scale": False},
    "no-kl": {"kl": False},
    "no-repetition": {"repetition": False},
}
"""Each mechanism switched off, by the name that `advsim ablate` gives it: what it sets in `Switches`."""


class Stage1(_Section):
    """Curriculum and executor (`docs/method.md` §3.8).

    Attributes:
        rounds, proposals, rollouts: T₁, proposals a round, and K rollouts of each.
        group: G, rollouts of one task that share a baseline; also the size of a curriculum replay group.
        curriculum_epochs, executor_epochs: Passes of each update. Every executor epoch has rollouts of its own.
        reuse: Whether the executor's first epoch learns from the very rollouts that measured p̂ (on-policy as well; it
            saves half of the rollouts, and G is then K), instead of G rollouts of its own.
    """

    rounds: int = Field(3, ge=0, le=100)
    proposals: int = Field(150, ge=1, le=100_000)
    rollouts: int = Field(6, ge=1, le=1000)
    group: int = Field(6, ge=2, le=1000)
    curriculum_epochs: int = Field(1, ge=1, le=100)
    executor_epochs: int = Field(2, ge=1, le=100)
    reuse: bool = False


class Mixture(_Section):
    """Shares of the executor's task inputs in stage 2; they sum to 1."""

    fresh: float = Field(0.5, ge=0, le=1)
    history: float = Field(0.25, ge=0, le=1)
    clean: float = Field(0.25, ge=0, le=1)

    @model_validator(mode="after")
    def _sum(self) -> Mixture:
        if abs(self.fresh + self.history + self.clean - 1) > 1e-9:
            raise ValueError(f"expected shares that sum to 1, got {self.fresh} + {self.history} + {self.clean}")
        return self


class Stage2(_Section):
    """Adversary and executor (`docs/method.md` §3.9).

    Attributes:
        rounds, proposals, rollouts: T₂, proposals a round, K clean rollouts of each and K controls.
        adversary_group, executor_group: G of either update.
        adversary_epochs, executor_epochs: As in stage 1.
        eta: Least clean solve rate of a task that is attacked.
        mixture: What the executor then trains on.
        reuse: As in stage 1.
    """

    rounds: int = Field(3, ge=0, le=100)
    proposals: int = Field(40, ge=1, le=100_000)
    rollouts: int = Field(4, ge=1, le=1000)
    adversary_group: int = Field(6, ge=2, le=1000)
    executor_group: int = Field(4, ge=2, le=1000)
    adversary_epochs: int = Field(1, ge=1, le=100)
    executor_epochs: int = Field(1, ge=1, le=100)
    eta: float = Field(0.5, ge=0, le=1)
    mixture: Mixture = Mixture()
    reuse: bool = False


class Evaluation(_Section):
    """One block of the evaluation: every checkpoint under every attacker, in one world.

    Attributes:
        world: Where; `browser` is the real one.
        checkpoints: `base`, `capability1`… (after round n of stage 1), `robust1`… (stage 2); without a number the last.
        attackers: `none`, `template` and `reactive` (scripted), `adversary1`… or `adversary` (the last learned one).
        tasks: `bench`, `bench-small`, or a task file.
        limit: Tasks taken, spread evenly over the file; 0 for all.
        seeds: Rollout seeds; each is one more pass.
    """

    world: Literal["symbolic", "browser"] = "symbolic"
    checkpoints: tuple[str, ...] = ("base", "capability", "robust")
    attackers: tuple[str, ...] = ("none", "template", "adversary")
    tasks: str = "bench-small"
    limit: int = Field(0, ge=0)
    seeds: tuple[Annotated[int, Field(ge=0, lt=2**63)], ...] = Field((0,), min_length=1)

    @model_validator(mode="after")
    def _names(self) -> Evaluation:
        for what, values, known in (
            ("checkpoint", self.checkpoints, ("base", "capability", "robust")),
            ("attacker", self.attackers, ("none", "template", "reactive", "adversary")),
        ):
            for value in values:
                stem = value.rstrip("0123456789")
                if stem not in known or (stem in ("base", "none", "template", "reactive") and stem != value):
                    raise ValueError(f"expected a {what} like {', '.join(known)} or {known[-1]}2, got {value!r}")
        return self


class Engine(_Section):
    """How policies are run.

    Attributes:
        max_batch: Most requests in one forward pass.
        memory_mb: What the key-value caches of all waiting conversations may hold.
        episodes: Episodes in flight in the symbolic world; browser: contexts in flight in the browser.
        threads: Threads of torch; 0 leaves its choice. A run resumes bit for bit only with the same number.
    """

    max_batch: int = Field(64, ge=1, le=4096)
    memory_mb: int = Field(2048, ge=0)
    episodes: int = Field(128, ge=1, le=100_000)
    browser: int = Field(4, ge=1, le=256)
    threads: int = Field(2, ge=0, le=1024)


class RunConfig(_Section):
    """Everything that decides a run's result, but for versions and hardware."""

    name: str = Field("run", pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")
    seed: int = Field(0, ge=0, lt=2**32)
    backbone: Backbone = Backbone()
    world: WorldConfig = WorldConfig()
    tasks: Tasks = Tasks()
    episode: Episode = Episode()
    proposer: Proposer = Proposer()
    temperatures: Temperatures = Temperatures()
    lora: Lora = Lora()
    learner: Learner = Learner()
    rewards: Rewards = Rewards()
    switches: Switches = Switches()
    stage1: Stage1 = Stage1()
    stage2: Stage2 = Stage2()
    evaluation: tuple[Evaluation, ...] = (Evaluation(), Evaluation(world="browser"))
    engine: Engine = Engine()

    @model_validator(mode="after")
    def _lengths(self) -> RunConfig:
        most = self.episode.max_tokens
        for key, tokens in (
            ("episode.max_new_tokens", self.episode.max_new_tokens),
            ("proposer.curriculum_tokens", self.proposer.curriculum_tokens),
            ("proposer.adversary_tokens", self.proposer.adversary_tokens),
        ):
            if tokens >= most:
                raise ValueError(f"{key}: expected less than episode.max_tokens ({most}), got {tokens}")
        return self

    @property
    def hash(self) -> str:
        """SHA-256 (hex) of the canonical JSON form; equal for equal settings however the file was written."""
        return _digest(self)

    def difference(self, other: RunConfig) -> list[str]:
        """One line a key in which another configuration differs: `stage1.rounds: 3 -> 1`."""
        return _difference(self.model_dump(mode="json"), other.model_dump(mode="json"), "")


@lru_cache(maxsize=64)  # every row of a ledger asks for it
def _digest(config: RunConfig) -> str:
    return hashlib.sha256(json.dumps(config.model_dump(mode="json"), sort_keys=True).encode()).hexdigest()


def _difference(old: Any, new: Any, path: str) -> list[str]:
    if old == new:
        return []
    if isinstance(old, dict) and isinstance(new, dict):
        found = []
        for key in [*old, *(key for key in new if key not in old)]:
            found += _difference(old.get(key), new.get(key), f"{path}.{key}" if path else key)
        return found
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [line for i, pair in enumerate(zip(old, new, strict=True)) for line in _difference(*pair, f"{path}.{i}")]
    return [f"{path}: {_short(old)} -> {_short(new)}"]


def load(path: str | Path) -> RunConfig:
    """Reads a YAML configuration.

    Raises:
        ConfigError: One line that names the file, the key, what was expected and what came.
    """
    path = Path(path)
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: expected a configuration file, found none") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: is not valid YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise ConfigError(f"{path}: is nested too deeply for a configuration") from None
    return parse({} if data is None else data, str(path))


def parse(data: Any, source: str = "configuration") -> RunConfig:
    """Checks a configuration given as nested mappings. `source` begins the error's line. Raises ConfigError."""
    if not isinstance(data, dict):
        raise ConfigError(f"{source}: expected a mapping of sections, got {_short(data)}")
    try:
        return RunConfig.model_validate(data)
    except ValidationError as error:
        problems = [_explain(dict(item)) for item in error.errors(include_url=False)]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise ConfigError(f"{source}: {problems[0]}{more}") from None


def _explain(item: dict[str, Any]) -> str:
    location = tuple(item["loc"])
    key = ".".join(str(part) for part in location) or "(top level)"
    if item["type"] == "extra_forbidden":
        close = difflib.get_close_matches(str(location[-1]), _known(location[:-1]), 1)
        return f"{key}: unknown key" + (f"; did you mean {close[0]!r}?" if close else "")
    message = str(item["msg"]).removeprefix("Value error, ")
    if item["type"] == "value_error":
        return f"{key}: {message}" if location else message
    return f"{key}: expected {message.removeprefix('Input should be ')}, got {_short(item['input'])}"


def _known(location: tuple[Any, ...]) -> list[str]:
    model: Any = RunConfig
    for part in location:
        if isinstance(part, str):
            field = model.model_fields[part].annotation
            model = next((a for a in getattr(field, "__args__", ()) if isinstance(a, type)), field)
    return list(getattr(model, "model_fields", {}))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
