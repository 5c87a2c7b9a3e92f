"""Executors and attackers by the names that the command line and configurations use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from advsim.agents import scripted, template
from advsim.agents.protocol import Attacker, Executor
from advsim.task import Task

ATTACKERS = ("none", "template", "reactive")


def agents(
    executor: str, attacker: str, tasks: Sequence[Task], *, backbone: str = "embedded"
) -> tuple[Executor, Attacker | None]:
    """The two sides of an evaluation.

    Args:
        executor: A scripted one (`scripted.NAMES`), `base` (the backbone without an adapter), or an adapter's folder.
        attacker: `none`, `template`, `reactive`, or an adapter's folder.
        tasks: The tasks of the evaluation, over which the template attacker deals its goals evenly.
        backbone: The model below adapters.

    Raises:
        ValueError: A name that is neither known nor a folder with an adapter.
        ModuleNotFoundError: A model is asked for and the `train` extra is not installed.
    """
    models: dict[str, Path | None] = {}
    if executor not in scripted.NAMES:
        models["executor"] = None if executor == "base" else _adapter("executor", executor, (*scripted.NAMES, "base"))
    if attacker not in ATTACKERS:
        models["adversary"] = _adapter("attacker", attacker, ATTACKERS)
    played: Executor | None = scripted.make(executor) if "executor" not in models else None
    attacking: Attacker | None = template.make_attacker(attacker, tasks) if "adversary" not in models else None
    if models:
        from advsim.llm.policies import load_policies

        loaded = load_policies(backbone, models)
        played = loaded.executor if played is None else played
        attacking = loaded.attacker if "adversary" in models else attacking
    assert played is not None
    return played, attacking


def _adapter(role: str, name: str, known: Sequence[str]) -> Path:
    path = Path(name)
    if (path / "adapter_config.json").is_file():
        return path
    if path.is_dir():
        raise ValueError(f"--{role} {name}: the folder holds no adapter (expected adapter_config.json)")
    raise ValueError(f"--{role}: expected one of {', '.join(known)} or an adapter's folder, got {name!r}")
