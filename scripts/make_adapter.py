"""Makes the imitation adapter of `configs/smollm2.yaml`: SmolLM2-135M-Instruct learns this project's formats.

    .venv/bin/python scripts/get_smollm2.py
    .venv/bin/python scripts/make_adapter.py

A LoRA adapter trained on `advsim.training.imitation`'s examples, as the embedded backbone was; the loss is on the right
assistant turns only. Writes the adapter and its card.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import functional

from advsim.config import Backbone, Lora
from advsim.llm import backbone as weights
from advsim.llm.chat import ChatFormat
from advsim.training.imitation import HELD_OUT, Message, Source, benchmark_problems, example

ROOT = Path(__file__).resolve().parents[1]
NAME = "executor"  # of the adapter while it is trained; saved adapters have no name
CARD = """\
# An imitation adapter for SmolLM2-135M-Instruct

Rank {rank}, alpha {alpha}, all linear layers; bfloat16. With it the model knows the executor's and both proposers'
formats without their being explained. `configs/smollm2.yaml` merges it into the backbone. Apache-2.0.

- **Made by** `.venv/bin/python scripts/make_adapter.py --steps {steps} --batch {batch} --rate {rate} --seed {seed}`
  in {minutes:.0f} minutes on two CPU cores, on the weights that `scripts/get_smollm2.py` fetches.
- **Data**: `advsim/training/imitation`, by seed, settings {settings}; no instance of a frozen benchmark and none of the
  held-out families ({held}).
- **Loss** of an imitated token, means of ten steps: {curve}.
- **Weights**: SHA-256 of the tensors begins {digest}.
"""


def encode(chat: ChatFormat, messages: list[Message]) -> tuple[list[int], list[bool]]:
    """A conversation's ids as a run would have them, and which of them are imitated."""
    ids = chat.opening(messages[0].content)
    learned = [False] * len(ids)
    for said, heard in zip(messages[1::2], [*messages[2::2], None], strict=False):
        body = chat.encode(said.content)
        end = chat.reply((), "")[:1]  # the token that ends a turn
        ids += [*body, *end]
        learned += [said.learn] * (len(body) + 1)
        if heard is not None:
            rest = chat.reply((*body, *end), heard.content)
            ids += rest
            learned += [False] * len(rest)
    return ids, learned


def loss_of(model: Any, rows: list[tuple[list[int], list[bool]]]) -> Tensor:
    """Mean loss of the imitated tokens of some conversations."""
    longest = max(len(ids) for ids, _ in rows)
    ids = torch.tensor([row + [0] * (longest - len(row)) for row, _ in rows])
    wanted = torch.tensor([mask + [False] * (longest - len(mask)) for _, mask in rows])[:, 1:]
    inner = model.get_base_model()
    with torch.autocast("cpu", torch.bfloat16):
        hidden = inner.model(input_ids=ids[:, :-1], use_cache=False).last_hidden_state
        logits = inner.lm_head(hidden[wanted])
    return functional.cross_entropy(logits.float(), ids[:, 1:][wanted])


def main() -> None:
    """Train from a fresh adapter, write it and its card."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=ROOT / "models" / "SmolLM2-135M-Instruct")
    parser.add_argument("--out", type=Path, default=ROOT / "configs" / "smollm2-adapter")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch", type=int, default=4, help="conversations a step")
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(2)
    base, tokenizer = weights.load(Backbone(path=str(args.model)))
    chat = ChatFormat(tokenizer)
    lora = Lora(rank=args.rank, alpha=2 * args.rank)
    model = weights.with_adapters(base, lora, args.seed, (NAME,))
    model.set_adapter(NAME)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=args.rate, weight_decay=0.0)
    settings = (("micro", 0.4), ("tiny", 0.6))
    source = Source(excluded=benchmark_problems(), settings=settings)
    began, losses = time.monotonic(), []
    for step in range(args.steps):
        progress = step / args.steps
        optimizer.param_groups[0]["lr"] = (
            args.rate * min(1.0, (step + 1) / 5) * 0.5 * (1 + math.cos(math.pi * progress))
        )
        rng = random.Random(f"{args.seed}/{step}")
        roles = rng.choices(("executor", "curriculum", "adversary"), (8, 1, 1), k=args.batch)
        rows = [
            encode(chat, example(f"{args.seed}/{step}/{n}", role, source, differ=0.0)) for n, role in enumerate(roles)
        ]
        loss = loss_of(model, rows)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(float(loss.detach()))
        if (step + 1) % 10 == 0:
            minutes = (time.monotonic() - began) / 60
            print(
                json.dumps({"step": step + 1, "minutes": round(minutes, 2), "loss": sum(losses[-10:]) / 10}), flush=True
            )
    weights.save(model, NAME, args.out)
    file = args.out / weights.WEIGHTS
    tensors = {key: value.bfloat16() for key, value in load_file(file).items()}
    save_file(tensors, file, metadata={"format": "pt"})
    file.chmod(0o644)
    config = json.loads((args.out / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = "SmolLM2-135M-Instruct"  # not where it lay on this machine
    (args.out / "adapter_config.json").write_text(json.dumps(config, indent=1, sort_keys=True) + "\n")
    (args.out / "README.md").write_text(
        CARD.format(
            **vars(args) | {"alpha": lora.alpha, "digest": weights.digest(tensors), "held": ", ".join(HELD_OUT)},
            settings=" and ".join(name for name, _ in settings),
            minutes=(time.monotonic() - began) / 60,
            curve=", ".join(f"{sum(losses[i : i + 10]) / 10:.2f}" for i in range(0, len(losses) - 9, 10)),
        )
    )


if __name__ == "__main__":
    main()
