"""The frozen backbone and its three named adapters: load, save, hash.

Weights are read and written as safetensors only; nothing is unpickled, nothing is downloaded, no remote code runs.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerBase
from transformers.utils import logging as transformers_logging

from advsim.config import ROLES, Backbone, ConfigError, Lora
from advsim.seeds import derive

EMBEDDED = Path(__file__).parents[1] / "backbone"
WEIGHTS = "adapter_model.safetensors"


def locate(backbone: Backbone) -> Path:
    """The folder of the backbone's weights. Raises ConfigError when there is no model in it."""
    folder = EMBEDDED if backbone.path == "embedded" else Path(backbone.path).expanduser()
    if not (folder / "config.json").is_file():
        what = "the embedded backbone is not in this installation" if backbone.path == "embedded" else "no model there"
        raise ConfigError(f"backbone.path: expected a folder with config.json and safetensors, got {folder} ({what})")
    return folder


def fingerprint(backbone: Backbone) -> str:
    """Sixteen hex digits of all that the backbone is read from. Raises ConfigError as `locate` does."""
    folders = [locate(backbone)]
    if backbone.adapter is not None:
        folders.append(Path(backbone.adapter))
    sha = hashlib.sha256()
    for folder in folders:
        for file in sorted(folder.iterdir()):
            if file.suffix in (".safetensors", ".json", ".jinja", ".txt", ".model"):
                sha.update(f"{file.name}\0".encode())
                sha.update(hashlib.sha256(file.read_bytes()).digest())
    return sha.hexdigest()[:16]


def load(backbone: Backbone) -> tuple[Any, PreTrainedTokenizerBase]:
    """The backbone in evaluation mode, frozen, and its tokenizer.

    Raises:
        ConfigError: The folder holds no usable model.
    """
    folder = locate(backbone)
    if backbone.adapter is not None and not (Path(backbone.adapter) / WEIGHTS).is_file():
        # PEFT would look for a pickle instead.
        raise ConfigError(f"backbone.adapter: expected a folder with {WEIGHTS}, got {backbone.adapter}")
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    device = backbone.device
    if device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("backbone.device: expected auto or cpu, since torch finds no GPU here, got 'cuda'")
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        model: Any = AutoModelForCausalLM.from_pretrained(
            folder,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            dtype=getattr(torch, backbone.dtype),
            attn_implementation="sdpa",
        )
        if backbone.adapter is not None:
            model = PeftModel.from_pretrained(model, backbone.adapter, local_files_only=True).merge_and_unload()
    except (OSError, ValueError, KeyError) as error:
        raise ConfigError(f"backbone.path: {folder} cannot be loaded: {' '.join(str(error).split())[:300]}") from error
    if tokenizer.chat_template is None:
        raise ConfigError(f"backbone.path: {folder} has no chat template in its tokenizer")
    model.requires_grad_(False)
    return model.to(device).eval(), tokenizer


def with_adapters(model: Any, lora: Lora, seed: int, names: tuple[str, ...] = ROLES) -> PeftModel:
    """Puts one fresh adapter a name on the backbone; each begins as the backbone itself (B = 0).

    Raises:
        ConfigError: The backbone has no layer of the names that are to be adapted.
    """
    config = LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=lora.targets if isinstance(lora.targets, str) else list(lora.targets),
        bias="none",
        task_type="CAUSAL_LM",
    )
    peft: PeftModel | None = None
    for name in names:
        torch.manual_seed(derive(seed, "adapter", name))
        if peft is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # PEFT asks transformers by an old name
                try:
                    peft = get_peft_model(model, config, adapter_name=name)
                except ValueError as error:
                    reason = str(error).partition(". ")[0]
                    raise ConfigError(f"lora.targets: {reason}") from None
        else:
            peft.add_adapter(name, config)
    assert peft is not None
    return peft.eval()


def state(model: PeftModel, name: str) -> dict[str, torch.Tensor]:
    """The adapter's tensors under PEFT's own names (without the adapter's), on the CPU, independent of the model."""
    marker = f".{name}."
    return {
        key.replace(marker, "."): value.detach().to("cpu", copy=True).contiguous()
        for key, value in sorted(model.state_dict().items())
        if marker in key and "lora_" in key
    }


def set_state(model: PeftModel, name: str, tensors: Mapping[str, torch.Tensor]) -> None:
    """Gives the adapter these tensors. Raises ValueError if they are not exactly the adapter's."""
    marker = f".{name}."
    mine = {key.replace(marker, "."): value for key, value in model.state_dict().items() if marker in key}
    mine = {key: value for key, value in mine.items() if "lora_" in key}
    if set(mine) != set(tensors) or any(mine[key].shape != tensors[key].shape for key in mine):
        raise ValueError(f"expected the tensors of adapter {name!r} ({len(mine)}), got others ({len(tensors)})")
    with torch.no_grad():
        for key, value in mine.items():
            value.copy_(tensors[key])


def digest(tensors: Mapping[str, torch.Tensor]) -> str:
    """Sixteen hex digits that identify an adapter's weights: the checkpoint's name in the ledger."""
    sha = hashlib.sha256()
    for key in sorted(tensors):
        value = tensors[key]
        sha.update(f"{key}\0{value.dtype}\0{tuple(value.shape)}\0".encode())
        sha.update(value.contiguous().view(torch.uint8).numpy().tobytes())
    return sha.hexdigest()[:16]


def save(model: PeftModel, name: str, folder: Path) -> str:
    """Writes an adapter as PEFT and vLLM read it; its digest.

    The caller makes the folder appear atomically (`training.steps`).
    """
    folder.mkdir(parents=True, exist_ok=True)
    tensors = state(model, name)
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
    config = model.peft_config[name].to_dict()
    config["target_modules"] = sorted(config["target_modules"])
    config["inference_mode"] = True
    text = json.dumps(config, indent=1, sort_keys=True, default=str)
    (folder / "adapter_config.json").write_text(text + "\n", encoding="utf-8")
    return digest(tensors)


def restore(model: PeftModel, name: str, folder: Path) -> str:
    """Reads a saved adapter into the named one; its digest. Raises ValueError if it does not fit."""
    tensors = read(folder)
    set_state(model, name, tensors)
    return digest(tensors)


def read(folder: Path) -> dict[str, torch.Tensor]:
    """A saved adapter's tensors."""
    tensors: dict[str, torch.Tensor] = load_file(folder / WEIGHTS)
    return tensors
