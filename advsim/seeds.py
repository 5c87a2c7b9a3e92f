"""Every random stream of a run, derived from one seed by name.

A name is a path such as `("stage1", 2, "assess", task_id, 5)`. The same path gives the same stream wherever and in
whatever order it is asked for: a step done again after a crash draws the same numbers, and no two steps share any.
"""

from __future__ import annotations

import hashlib
import random


def derive(seed: int, *path: str | int) -> int:
    """The seed of a named stream.

    Args:
        seed: The run's (or a parent stream's) seed.
        path: The stream's name, in parts; `1` and `"1"` are different parts.

    Returns:
        A number in `[0, 2**63)`, uniform over names (SHA-256).
    """
    text = "\x1f".join([repr(seed), *(repr(part) for part in path)])
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big") >> 1


def stream(seed: int, *path: str | int) -> random.Random:
    """A generator for a named stream."""
    return random.Random(derive(seed, *path))
