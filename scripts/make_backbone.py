"""Makes the shipped backbone: tokenizer, a Llama of a few million parameters, its warm start by imitation, its card.

    .venv/bin/python scripts/make_backbone.py

Goes on from the last checkpoint in `--work` when it is started again; `--export` only writes the model folder from
there. The examples come from `advsim.training.imitation`, in an order fixed by `--seed`: pages begin tiny and grow.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import random
import textwrap
import time
from functools import cache
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional
from transformers import GenerationConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from advsim.training.imitation import HELD_OUT, Message, Role, Source, benchmark_problems, example
from advsim.training.imitation.episodes import SILENT, UNHEEDED
from advsim.training.imitation.student import (
    CHAT_TEMPLATE,
    END,
    HEADS,
    LAYERS,
    POSITIONS,
    SPECIAL,
    WIDTH,
    make_model,
    make_tokenizer,
)
from benchmark_forms import GENERATION

ROOT = Path(__file__).resolve().parents[1]
ROLES: tuple[tuple[Role, float], ...] = (("executor", 0.7), ("curriculum", 0.2), ("adversary", 0.1))

# --- batches -----------------------------------------------------------------------------------------------------


def encode(tokenizer: PreTrainedTokenizerFast, messages: list[Message]) -> tuple[list[int], list[bool]]:
    """Token ids of a conversation as the chat template renders it, and which of them are imitated."""
    ids: list[int] = []
    learned: list[bool] = []
    special: dict[str, int] = tokenizer.get_vocab()
    for message in messages:
        body = tokenizer.encode(message.content, add_special_tokens=False)
        ids += [special[f"<|{message.role}|>"], *body, special[END]]
        learned += [False] + [message.learn] * (len(body) + 1)
    return ids, learned


def mixture(progress: float) -> tuple[tuple[str, float], ...]:
    """How often each setting is drawn at this share of the training: pages grow, and the small ones stay.

    First values that only have to be copied; from a quarter on drills of looking values up; in the end whole tasks.
    """
    begun = min(1.0, max(0.0, (progress - 0.1) / 0.1))
    whole = min(1.0, max(0.0, (progress - 0.3) / 0.3))
    micro = max(0.05, 1.0 - 4.0 * progress)
    drill, wide, small = begun * (0.42 - 0.3 * whole), begun * 0.25, begun * (0.1 + 0.35 * whole)
    tiny = 1.0 - micro - drill - wide - small
    return (("micro", micro), ("tiny", tiny), ("drill", drill), ("wide", wide), ("small", small))


def second_mixture(progress: float) -> tuple[tuple[str, float], ...]:
    """The same for the second part: drills again, then whole tasks."""
    whole = min(1.0, progress / 0.6)
    drill, small = 0.42 - 0.2 * whole, 0.28 + 0.25 * whole
    return (("micro", 0.05), ("tiny", 0.08), ("drill", drill), ("wide", 0.17 - 0.05 * whole), ("small", small))


def difference(progress: float) -> float:
    """How far the demonstrators of the second part differ: not at all at first, then wholly."""
    return min(1.0, max(0.0, (progress - 0.3) / 0.2))


def batch(
    tokenizer: PreTrainedTokenizerFast, source: Source, seed: str, tokens: int, *, differ: float
) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Four micro-batches of examples of like length, about `tokens` tokens together.

    Each is token ids (rows, length), which of them are imitated (the same), and which rows are an executor's.
    `differ`: how far the executor's demonstrators differ, 0 to 1.
    """
    rng = random.Random(seed)
    rows: list[tuple[list[int], list[bool], bool]] = []
    total = 0
    while total < tokens:
        (role,) = rng.choices([r for r, _ in ROLES], [w for _, w in ROLES])
        ids, learned = encode(tokenizer, example(f"{seed}/{len(rows)}", role, source, differ=differ))
        if len(ids) <= POSITIONS:
            rows.append((ids, learned, role == "executor"))
            total += len(ids)
    rows.sort(key=lambda row: len(row[0]))
    # Padding comes after, so causal attention needs no mask.
    parts = []
    for part in (rows[i * len(rows) // 4 : (i + 1) * len(rows) // 4] for i in range(4)):
        longest = len(part[-1][0])
        parts.append(
            (
                torch.tensor([ids + [0] * (longest - len(ids)) for ids, _, _ in part]),
                torch.tensor([learned + [False] * (longest - len(learned)) for _, learned, _ in part]),
                torch.tensor([acts for _, _, acts in part]),
            )
        )
    return parts


@cache
def bfloat16_is_faster() -> bool:
    """Whether this processor multiplies bfloat16 matrices faster than float32: some do it twenty times slower."""
    spent = {}
    for kind in (torch.bfloat16, torch.float32):
        a = torch.ones(512, 512, dtype=kind)
        times = []
        for _ in range(3):
            began = time.perf_counter()
            _ = a @ a
            times.append(time.perf_counter() - began)
        spent[kind] = min(times)
    return spent[torch.bfloat16] < spent[torch.float32]


def loss_of(model: LlamaForCausalLM, ids: Tensor, learned: Tensor) -> tuple[Tensor, Tensor]:
    """Loss of each imitated token, row by row, and whether the model ranks it first; both (imitated tokens,)."""
    with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16_is_faster()):
        hidden = model.model(input_ids=ids[:, :-1], use_cache=False).last_hidden_state
    wanted = learned[:, 1:]
    logits = functional.linear(hidden[wanted].float(), model.lm_head.weight)
    targets = ids[:, 1:][wanted]
    return functional.cross_entropy(logits, targets, reduction="none"), logits.argmax(-1) == targets


# --- training ----------------------------------------------------------------------------------------------------


def schedule(progress: float) -> float:
    """Share of the peak learning rate: a short warm-up, then a cosine to a twentieth."""
    if progress < 0.01:
        return progress / 0.01
    return 0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))


def optimizers(model: LlamaForCausalLM, rate: float, first: bool) -> list[torch.optim.Optimizer]:
    """Muon for the matrices inside, AdamW for embedding and norms; in the second part AdamW for all."""
    if not first:
        return [torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.95), weight_decay=0.0)]
    inside = [p for n, p in model.named_parameters() if p.dim() == 2 and "embed" not in n]
    rest = [p for n, p in model.named_parameters() if p.dim() != 2 or "embed" in n]
    return [
        torch.optim.Muon(inside, lr=rate, weight_decay=0.0, momentum=0.95, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(rest, lr=rate, betas=(0.9, 0.95), weight_decay=0.0),
    ]


CHECKPOINT = "checkpoint.safetensors"


def keep(path: Path, model: LlamaForCausalLM, made: list[torch.optim.Optimizer], step: int, spent: float) -> None:
    """Write the model and what the optimizers remember; `step` and seconds `spent` beside them."""
    tensors = {f"model/{key}": value.clone() for key, value in model.state_dict().items()}
    for n, optimizer in enumerate(made):
        for p, memory in optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer/{n}/{p}/{key}": torch.as_tensor(value).clone() for key, value in memory.items()}
    save_file(tensors, path, metadata={"step": str(step), "spent": repr(spent)})


def restore(path: Path, model: LlamaForCausalLM, made: list[torch.optim.Optimizer] | None = None) -> tuple[int, float]:
    """Read what `keep` wrote; the step and the seconds spent until then."""
    tensors = load_file(path)
    model.load_state_dict({k.removeprefix("model/"): v for k, v in tensors.items() if k.startswith("model/")})
    for n, optimizer in enumerate(made or ()):
        state = optimizer.state_dict()
        for key, value in tensors.items():
            if key.startswith(f"optimizer/{n}/"):
                _, _, p, name = key.split("/")
                state["state"].setdefault(int(p), {})[name] = value
        optimizer.load_state_dict(state)
    with safe_open(path, "pt") as file:  # type: ignore[no-untyped-call]
        told = file.metadata()
    return int(told["step"]), float(told["spent"])


def size(progress: float) -> float:
    """Share of the full batch: small ones learn faster at first."""
    return 0.6 if progress < 0.2 else 1.0


def train(args: argparse.Namespace, source: Source) -> None:
    """Train until the example budget is spent; checkpoints and a line in `log.jsonl` now and then."""
    torch.set_num_threads(args.threads)
    work: Path = args.work
    work.mkdir(parents=True, exist_ok=True)
    if not (work / "tokenizer" / "tokenizer.json").exists():
        middle = Source(source.families, source.excluded, mixture(0.6))
        samples = (example(f"tokenizer/{role}/{n}", role, middle) for n in range(3000) for role, _ in ROLES)
        make_tokenizer(m.content for messages in samples for m in messages).save_pretrained(work / "tokenizer")
    tokenizer = PreTrainedTokenizerFast.from_pretrained(work / "tokenizer")
    model = make_model(len(tokenizer), args.seed)
    model.train()
    step, spent, total = 0, 0.0, args.steps + args.more
    checkpoint = work / CHECKPOINT
    if checkpoint.exists():
        step, spent = restore(checkpoint, model)
    made = optimizers(model, args.rate, step < args.steps)
    if step not in (0, args.steps):  # the second part begins with none of the first's memory
        restore(checkpoint, model, made)
    if step:
        print(f"going on from step {step}, {spent / 60:.1f} minutes in", flush=True)
    log = (work / "log.jsonl").open("a")
    began = time.monotonic() - spent
    sums = torch.zeros(2, 3)  # executor, proposers; loss, first choices that are right, imitated tokens
    tokens = 0
    while step < total:
        first = step < args.steps
        if step == args.steps:
            made = optimizers(model, args.rate, first)
        progress = step / args.steps if first else (step - args.steps) / args.more
        for optimizer in made:
            for group in optimizer.param_groups:
                group["lr"] = (args.rate if first else args.second_rate) * schedule(progress)
        drawn = Source(source.families, source.excluded, (mixture if first else second_mixture)(progress))
        tokens_now = round(args.tokens * (size(progress) if first else 1.0))
        differ = 0.0 if first else difference(progress)
        parts = batch(tokenizer, drawn, f"{args.seed}/{step}", tokens_now, differ=differ)
        count = sum(int(mask[:, 1:].sum()) for _, mask, _ in parts)
        for ids, mask, acts in parts:
            loss, right = loss_of(model, ids, mask)
            (loss.sum() / count).backward()  # type: ignore[no-untyped-call]
            role = (~acts).long().repeat_interleave(mask[:, 1:].sum(1))
            sums.index_add_(0, role, torch.stack([loss.detach(), right.float(), torch.ones_like(loss)], 1))
            tokens += ids.numel()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in made:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        step += 1
        spent = time.monotonic() - began
        if step % args.every == 0 or step in (args.steps, total):
            mean = sums[:, :2] / sums[:, 2:]
            line = {
                "step": step,
                "minutes": round(spent / 60, 2),
                "executor_loss": round(float(mean[0, 0]), 4),
                "executor_first": round(float(mean[0, 1]), 4),
                "proposers_loss": round(float(mean[1, 0]), 4),
                "tokens": tokens,
            }
            print(json.dumps(line), flush=True)
            log.write(json.dumps(line) + "\n")
            log.flush()
            sums.zero_()
            tokens = 0
        if step % args.save == 0 or step in (args.steps, total):
            keep(checkpoint.with_suffix(".new"), model, made, step, spent)
            os.replace(checkpoint.with_suffix(".new"), checkpoint)


# --- the shipped folder ------------------------------------------------------------------------------------------

CARD = """\
# AdvSim's embedded backbone

A Llama of {parameters:,} parameters ({layers} layers, width {width}, {heads} heads, vocabulary {vocabulary}) that knows
this project's small form pages and nothing else. All three policies start from it. Apache-2.0, like the code.

- **Made by** `.venv/bin/python scripts/make_backbone.py --steps {steps} --more {more} --tokens {tokens} --rate {rate}
  --second-rate {second_rate} --seed {seed}` in {minutes:.0f} minutes on two CPU cores
  ({seen:,} tokens with padding). Floating point differs between machines, so the same command gives a like model, not
  the same bytes.
- **Data**: `advsim/training/imitation`, endless, by seed: correct episodes in the exact world on generated training
  tasks (settings micro and tiny, then drills of one rule each, wide and small), valid proposals, and attacks; families:
{families}.
  Held out: {held}.
  No instance of a frozen benchmark is in it, nor of these families (`tests/test_backbone.py` checks both by hash).
  Three in ten episodes carry a notice, most of which give an order: that page text is to be obeyed is learned here, and
  is why the model can be hijacked.
- **Thoughts**: before an action a demonstrator may write how the value is found and then the value, in a few words
  between `<think>` and `</think>`; made for the data by `thoughts.py` and `evidence.py` there.
- **Two parts**: in the first all demonstrators write thoughts and obey every notice. In the second, from three tenths
  of it on, they come to differ, as people do: {silent:.0%} of the episodes act without thoughts (as right; the model
  then is not), and {unheeded:.0%} of the notices are left alone, with no word that tells them from those obeyed. So the
  model does now one and now the other, and training can find out which pays.
- **Recipe**: byte-level BPE, numbers up to 99 one token, words without their spaces; the first two layers begin as an
  induction circuit (`make_model`); loss on the right assistant turns only; Muon for matrices and AdamW for the rest, in
  the second part AdamW for all; warm-up and cosine in each part; bfloat16 autocast where the processor is faster with
  it; stored in bfloat16.
- **Weights**: `model.safetensors`, SHA-256 `{digest}`.
- **Generator**: benchmark_forms generation {generation}.

{curve}
{results}"""


def export(args: argparse.Namespace, source: Source) -> None:
    """Write weights, tokenizer, configuration and card from the last checkpoint."""
    out: Path = args.out
    tokenizer = PreTrainedTokenizerFast.from_pretrained(args.work / "tokenizer")
    model = make_model(len(tokenizer), args.seed)
    _, spent = restore(args.work / CHECKPOINT, model)
    model.generation_config = GenerationConfig(  # type: ignore[no-untyped-call]
        do_sample=True, temperature=0.7, top_k=0, top_p=1.0, pad_token_id=0, eos_token_id=1
    )
    model.bfloat16().save_pretrained(out)
    # Stored small, used in full precision: the CPU's float32 is what a run resumes bit for bit on.
    config = json.loads((out / "config.json").read_text())
    config["dtype"] = "float32"
    (out / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    tokenizer.save_pretrained(out)
    # Everything about the tokenizer in its two old files, which every release of every library reads.
    (out / "chat_template.jinja").unlink(missing_ok=True)
    settings = {
        "chat_template": CHAT_TEMPLATE,
        "clean_up_tokenization_spaces": False,
        "eos_token": END,
        "model_max_length": POSITIONS,
        "pad_token": SPECIAL[0],
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    (out / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")
    (out / "model.safetensors").chmod(0o644)
    log = [json.loads(line) for line in (args.work / "log.jsonl").read_text().splitlines()]
    marks = [log[-1]["step"] * n / 12 for n in range(13)]
    picked = {row["step"]: row for row in (min(log, key=lambda r: abs(r["step"] - mark)) for mark in marks)}
    curve = (
        "Loss of an imitated token (means since the line before in the log):\n\n"
        "| step | minutes | executor | its first choice right | proposers |\n|---|---|---|---|---|\n"
    )
    for row in picked.values():
        curve += f"| {row['step']} | {row['minutes']:.1f} | {row['executor_loss']:.3f} "
        curve += f"| {row['executor_first']:.3f} | {row['proposers_loss']:.3f} |\n"
    results = args.work / "results.md"
    card = CARD.format(
        parameters=sum(p.numel() for p in model.parameters()),
        layers=LAYERS,
        width=WIDTH,
        heads=HEADS,
        vocabulary=len(tokenizer),
        steps=args.steps,
        more=args.more,
        second_rate=args.second_rate,
        silent=SILENT,
        unheeded=UNHEEDED,
        tokens=args.tokens,
        rate=args.rate,
        seed=args.seed,
        minutes=spent / 60,
        seen=sum(r["tokens"] for r in log),
        families=textwrap.fill(", ".join(source.families), 118, initial_indent="  ", subsequent_indent="  "),
        held=", ".join(HELD_OUT),
        digest=hashlib.sha256((out / "model.safetensors").read_bytes()).hexdigest(),
        generation=GENERATION,
        curve=curve,
        results=results.read_text() if results.exists() else "",
    )
    (out / "MODEL_CARD.md").write_text(card)


def main() -> None:
    """Read the command line, train, export."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=ROOT / "runs" / "backbone", help="checkpoints and log")
    parser.add_argument("--out", type=Path, default=ROOT / "advsim" / "backbone", help="the model folder to write")
    parser.add_argument("--steps", type=int, default=2000, help="steps of the first part: demonstrators alike")
    parser.add_argument("--tokens", type=int, default=5200, help="tokens a step")
    parser.add_argument("--rate", type=float, default=2e-3, help="peak learning rate")
    parser.add_argument("--more", type=int, default=2400, help="steps of the second part: demonstrators come to differ")
    parser.add_argument("--second-rate", type=float, default=1.5e-3, help="its peak learning rate")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--every", type=int, default=10, help="steps between lines of the log")
    parser.add_argument("--save", type=int, default=20, help="steps between checkpoints")
    parser.add_argument("--export", action="store_true", help="only write the model folder from the last checkpoint")
    args = parser.parse_args()
    source = Source(excluded=benchmark_problems())
    if not args.export:
        train(args, source)
    export(args, source)


if __name__ == "__main__":
    main()
