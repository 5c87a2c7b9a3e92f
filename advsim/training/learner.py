"""One update of one adapter: the loss of `docs/method.md` §3.6, through TRL's trainer.

    L = 1/N Σ_i Σ_u m_iu [ −Â_i ℓ_iu + β (e^{ℓ0−ℓ} − (ℓ0−ℓ) − 1) ]

ℓ is the policy's log-probability of token u of sample i, ℓ0 that of the backbone with every adapter off, m marks the
tokens that the role generated, and N counts them over the whole step, accumulation included. `GRPOTrainer` gives
exactly that with the settings in `_arguments` (`tests/training/test_objective.py`): with an unbounded CISPO weight and
one iteration the likelihood ratio is 1. Rollouts were collected before; the trainer is handed the token ids sampled.
"""

from __future__ import annotations

import logging
import random
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from peft import PeftModel
from transformers import PreTrainedTokenizerBase, PrinterCallback, TrainerCallback
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from advsim.config import Learner
from advsim.training.log_probs import alike, log_probs

_NOTHING = 1e-6  # an advantage of equal rewards, but for the last bits of their mean


@dataclass(frozen=True, slots=True)
class Sample:
    """One trajectory (or proposal) as the learner sees it.

    Attributes:
        prompt_ids: Tokens before the first generated one.
        completion_ids: All tokens after that, as sampled; pages and template tokens between turns included.
        mask: For each completion token, whether the role generated it.
        advantage: Â of the whole sample.
        group: Samples of one name are put into one step together.
    """

    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]
    mask: tuple[bool, ...]
    advantage: float
    group: str = ""

    def __post_init__(self) -> None:
        if len(self.mask) != len(self.completion_ids) or not self.prompt_ids:
            raise ValueError(
                "expected a prompt, and a mask as long as the completion; got "
                f"{len(self.prompt_ids)}, {len(self.completion_ids)} and {len(self.mask)} tokens"
            )


@dataclass(frozen=True, slots=True)
class UpdateReport:
    """What an update did.

    Attributes:
        steps: Optimizer steps. samples, tokens: What they saw; tokens counts the masked ones (the Ns' sum).
        empty: Samples left out because their role generated nothing.
        decided: Samples left out because nothing in their group tells better from worse (`Learner.skip_decided`).
        loss: Mean of L over the steps. kl: Mean penalty a token. grad_norm: Mean norm of the gradient, unclipped.
        seconds: Wall time.
    """

    steps: int
    samples: int
    tokens: int
    empty: int
    decided: int
    loss: float
    kl: float
    grad_norm: float
    seconds: float


def update(
    model: PeftModel,
    tokenizer: PreTrainedTokenizerBase,
    adapter: str,
    samples: Sequence[Sample],
    settings: Learner,
    *,
    seed: int,
    kl: bool = True,
    callbacks: Sequence[TrainerCallback] = (),
    folder: Path | None = None,
) -> UpdateReport:
    """Trains one named adapter on samples, each seen once; all other weights stay as they are, bit for bit.

    The optimizer begins anew: an update is a function of the adapter, the samples and the seed, so that a killed
    run can do it again. Groups are shuffled by the seed and dealt evenly over the steps.

    Args:
        model: The backbone with its adapters; on return the trained adapter is active and the model in evaluation mode.
        tokenizer: The backbone's.
        adapter: Name of the adapter.
        samples: Those without a generated token are left out; if none remains, nothing happens.
        settings: Rates and sizes.
        seed: Decides the order.
        kl: False leaves the penalty towards the backbone out.
        callbacks: For tests and progress.
        folder: Where the trainer's scratch folder, `.trainer-*.tmp`, lies meanwhile; None: with the system's own.
    """
    began = time.perf_counter()
    generated = [sample for sample in samples if any(sample.mask)]
    kept = undecided(generated) if settings.skip_decided else generated
    empty, decided = len(samples) - len(generated), len(generated) - len(kept)
    steps = deal_steps(kept, settings.batch_groups, seed)
    if not steps:
        return UpdateReport(0, 0, 0, empty, decided, 0.0, 0.0, 0.0, time.perf_counter() - began)
    micro = min(settings.micro_batch, max(map(len, steps)))
    rows = -(-max(map(len, steps)) // micro) * micro
    if rows % 2:  # the trainer wants at least two generations a prompt; we hand it pairs that mean nothing
        micro, rows = (2, rows + 1) if micro == 1 else (micro, rows + micro)
    # Set before the trainer is built: it takes the parameters that require a gradient at that moment.
    model.set_adapter(adapter)
    scratch = tempfile.TemporaryDirectory(prefix=".trainer-", suffix=".tmp", dir=folder)
    with scratch as output, _quiet(), _unpatched(model):
        trainer = _Trainer(
            model=model,
            reward_funcs=_no_reward,
            args=_arguments(output, settings, micro, rows, seed, model),
            train_dataset=Dataset.from_dict({"prompt": [""] * (len(steps) * rows // 2)}),
            processing_class=tokenizer,
            rollout_func=_Rollouts([_pad_step(step, rows, tokenizer.pad_token_id) for step in steps]),
            callbacks=list(callbacks),
        )
        trainer.remove_callback(PrinterCallback)
        # Only now: built with beta > 0 the trainer copies (or fails to find) an adapter named "default".
        trainer.beta = settings.beta if kl else 0.0
        try:
            trainer.train()
        finally:
            model.zero_grad(set_to_none=True)
            model.eval()
    tokens = sum(sum(sample.mask) for sample in kept)
    count = len(steps)
    return UpdateReport(
        steps=count,
        samples=len(kept),
        tokens=tokens,
        empty=empty,
        decided=decided,
        loss=trainer.loss_sum / count,
        kl=trainer.kl_sum / tokens,
        grad_norm=sum(trainer.norms) / count,
        seconds=time.perf_counter() - began,
    )


def undecided(samples: Sequence[Sample]) -> list[Sample]:
    """The samples of groups in which some advantage is not zero; the others only hold the policy to the backbone."""
    teaching = {sample.group for sample in samples if abs(sample.advantage) > _NOTHING}
    return [sample for sample in samples if sample.group in teaching]


def deal_steps(samples: Sequence[Sample], batch_groups: int, seed: int) -> list[list[Sample]]:
    """Divides samples into steps of about `batch_groups` whole groups (0: one step); the seed decides the order."""
    groups: dict[str, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(sample.group, []).append(sample)
    order = list(groups.values())
    random.Random(seed).shuffle(order)
    count = -(-len(order) // batch_groups) if batch_groups else min(1, len(order))
    steps = [[sample for group in order[start::count] for sample in group] for start in range(count)]
    # Neighbours with one prompt are read once, and those of like length waste less on padding; the order within a step
    # does not change its sum.
    return [sorted(step, key=lambda s: (len(s.prompt_ids), s.prompt_ids, len(s.completion_ids))) for step in steps]


def _pad_step(step: list[Sample], rows: int, pad: int) -> list[Sample]:
    """Fills a step up with samples whose masks are empty: they add nothing to the sum and nothing to N."""
    return step + [Sample((pad,), (pad,), (False,), 0.0)] * (rows - len(step))


def _arguments(folder: str, settings: Learner, micro: int, rows: int, seed: int, model: PeftModel) -> GRPOConfig:
    return GRPOConfig(
        output_dir=folder,
        # The loss of §3.6.
        loss_type="cispo",
        epsilon_high=1e9,
        use_bias_correction_kl=False,
        num_iterations=1,
        importance_sampling_level="token",
        temperature=1.0,
        scale_rewards="none",
        beta=0.0,
        # One generation batch is one optimizer step, so N spans the accumulation.
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=rows // micro,
        num_generations=2,
        num_train_epochs=1,
        shuffle_dataset=False,
        optim="adamw_torch",
        learning_rate=settings.lr,
        lr_scheduler_type="constant",
        weight_decay=0.0,
        max_grad_norm=settings.max_grad_norm,
        disable_dropout=False,
        gradient_checkpointing=settings.gradient_checkpointing,
        bf16=False,  # the default would be autocast; the backbone's own precision is the configured one
        seed=seed % 2**32,
        use_cpu=model.device.type == "cpu",
        dataloader_pin_memory=False,
        report_to="none",
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
    )


class _Rollouts:
    """Hands the trainer one step's samples at a time, whatever prompts it names."""

    def __init__(self, steps: list[list[Sample]]) -> None:
        self._steps = iter(steps)
        self.step: list[Sample] = []

    def __call__(self, prompts: list[str], trainer: Any) -> dict[str, Any]:
        self.step = next(self._steps)
        assert len(self.step) == len(prompts)
        return {
            "prompt_ids": [list(s.prompt_ids) for s in self.step],
            "completion_ids": [list(s.completion_ids) for s in self.step],
            "logprobs": None,  # only corrections for another sampler's probabilities would read them
            "env_mask": [[int(m) for m in s.mask] for s in self.step],
        }


def _no_reward(prompts: list[Any], **_: Any) -> list[float]:
    return [0.0] * len(prompts)


class _Trainer(GRPOTrainer):
    """`GRPOTrainer` with our advantages, and with logits at policy tokens only."""

    def __init__(self, **kwargs: Any) -> None:
        self.loss_sum = 0.0
        self.kl_sum = 0.0
        self.norms: list[float] = []
        self._policy_mask: torch.Tensor | None = None
        self._rollouts: _Rollouts = kwargs["rollout_func"]
        super().__init__(**kwargs)

    def _send_telemetry(self) -> None:
        """Nothing leaves the machine."""

    def _generate(self, prompts: list[Any]) -> Any:
        generated = super()._generate(prompts)
        width = max(len(s.completion_ids) for s in self._rollouts.step)
        rows = [[*s.mask, *[False] * (width - len(s.mask))] for s in self._rollouts.step]
        self._policy_mask = torch.tensor(rows, device=self.accelerator.device)
        return generated

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        advantages = [s.advantage for s in self._rollouts.step]
        output["advantages"] = torch.tensor(advantages, device=self.accelerator.device)
        return output

    def compute_loss(self, model: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> torch.Tensor:
        self._policy_mask = (inputs["completion_mask"] * inputs["tool_mask"]).bool()
        loss: torch.Tensor = super().compute_loss(model, inputs, *args, **kwargs)
        self.loss_sum += loss.item()  # already divided by the whole step's N
        if self.beta:
            self.kl_sum += self._metrics["train"]["kl"][-1] * int(self._policy_mask.sum())
        return loss

    def _get_grad_norm(self, model: Any, grad_norm: Any = None) -> Any:
        norm = super()._get_grad_norm(model, grad_norm)  # type: ignore[no-untyped-call]
        self.norms.append(float(norm))
        return norm

    def _get_per_token_logps_and_entropies(
        self,
        model: Any,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        batch_size: int | None = None,
        **_: Any,
    ) -> tuple[torch.Tensor, torch.Tensor, None]:
        """Log-probabilities (rows, logits_to_keep) at policy tokens, zero elsewhere; the entropies are not computed.

        The trainer's own fused head scores every position on a CPU, and pads all rows of a step to the longest.
        """
        mask = self._policy_mask
        assert mask is not None
        assert mask.shape == (len(input_ids), logits_to_keep)
        size = batch_size or len(input_ids)
        order: list[int] = []
        parts = []
        for begin in range(0, len(input_ids), size):
            for part in alike(input_ids[begin : begin + size], attention_mask[begin : begin + size], logits_to_keep):
                rows = [begin + row for row in part]
                order += rows
                parts.append(log_probs(model, input_ids[rows], attention_mask[rows], mask[rows]))
        found = torch.cat(parts)[torch.tensor(order).argsort().to(input_ids.device)]
        return found, torch.zeros_like(found), None


@contextmanager
def _unpatched(model: PeftModel) -> Iterator[None]:
    """Undoes what the trainer does to the backbone: each one would wrap the forward pass of the one before."""
    base = model.get_base_model()
    before = base.__dict__.get("forward")
    try:
        yield
    finally:
        base.__dict__.pop("forward", None)
        if before is not None:
            base.forward = before


@contextmanager
def _quiet() -> Iterator[None]:
    """Silences what the libraries say about each other; errors still come through."""
    loggers = [logging.getLogger(name) for name in ("transformers", "trl", "accelerate")]
    levels = [log.level for log in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for log in loggers:
            log.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for log, level in zip(loggers, levels, strict=True):
                log.setLevel(level)
