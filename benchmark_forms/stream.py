"""An endless stream of training tasks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import cache
from random import Random

from advsim.task import Task
from benchmark_forms.files import shipped
from benchmark_forms.registry import families as all_families
from benchmark_forms.registry import generate
from benchmark_forms.setting import BENCH_SETTINGS, setting


@cache
def benchmark_hashes() -> frozenset[str]:
    """Content hashes of all tasks of the shipped benchmarks. Raises TaskFileError if one is damaged."""
    return frozenset(t.content_hash for t in shipped())


def stream(
    seed: int,
    *,
    settings: Sequence[str] = BENCH_SETTINGS,
    families: Sequence[str] | None = None,
    exclude_families: Sequence[str] = (),
    split: str = "train",
) -> Iterator[Task]:
    """Tasks without end, families and settings uniform, the same for the same arguments.

    No task is an instance of a shipped benchmark: one whose `content_hash` is in either of them is skipped.

    Args:
        seed: Streams with different seeds are different.
        settings: Settings to draw from; repeat one to see it more often.
        families: Families to draw from; all by default.
        exclude_families: Families that are held out.
        split: Recorded in the tasks; streams of different splits are different.

    Raises:
        ValueError: At the call, for an unknown setting or family, or if none is left.
    """
    known = all_families()
    chosen = list(known if families is None else families)
    for name in (*chosen, *exclude_families):
        if name not in known:
            raise ValueError(f"unknown family {name!r}: expected one of {', '.join(known)}")
    chosen = [name for name in chosen if name not in set(exclude_families)]
    if not chosen:
        raise ValueError("no family is left to draw from")
    if not settings:
        raise ValueError("no setting is given to draw from")
    for name in settings:
        setting(name)
    return _draw(seed, tuple(settings), tuple(chosen), split)


def _draw(seed: int, settings: tuple[str, ...], families: tuple[str, ...], split: str) -> Iterator[Task]:
    digest = hashlib.sha256(f"stream/{split}/{seed}".encode()).digest()
    rng = Random(int.from_bytes(digest[:16], "big"))
    kept_out = benchmark_hashes()
    while True:
        task = generate(rng.choice(families), rng.choice(settings), rng.getrandbits(48), split=split)
        if task.content_hash not in kept_out:
            yield task
