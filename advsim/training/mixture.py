"""The executor's inputs in stage 2: fresh attacks, earlier rounds' attacks, clean tasks (`docs/method.md` §3.9)."""

from __future__ import annotations

from collections.abc import Sequence

from advsim.config import Mixture
from advsim.seeds import stream
from advsim.task import Attack, Task
from advsim.training.rollouts import Input

Attacked = tuple[Task, Attack]


def mix(
    shares: Mixture,
    tasks: Sequence[Task],
    fresh: Sequence[Attacked],
    history: Sequence[Attacked],
    *,
    use_history: bool,
    seed: int,
) -> list[Input]:
    """As many inputs as tasks, in shares as near as whole numbers allow, drawn without repetition where possible.

    Only task inputs are taken over, never old trajectories: all are rolled out anew with the present executor.
    Where earlier rounds' attacks are lacking (or switched off), fresh ones take their place; where
    these are lacking too, clean tasks.

    Args:
        shares: Of the three kinds.
        tasks: The round's tasks.
        fresh: The round's attacks, at most one a task.
        history: All attacks of earlier rounds.
        use_history: Whether the history has its share.
        seed: Decides what is drawn.
    """
    total = len(tasks)
    n_history = min(round(shares.history * total), len(history)) if use_history else 0
    n_clean = min(round(shares.clean * total), total - n_history)  # both shares may have been rounded up
    n_fresh = min(total - n_history - n_clean, len(fresh))
    n_clean = total - n_history - n_fresh
    draw = stream(seed, "mixture")
    chosen = [Input(task, attack, "fresh") for task, attack in draw.sample(list(fresh), n_fresh)]
    chosen += [Input(task, attack, "history") for task, attack in draw.sample(list(history), n_history)]
    attacked = {item.task.id for item in chosen}
    # Clean tasks that are not among the attacked ones come first.
    order = draw.sample(list(tasks), total)
    order.sort(key=lambda task: task.id in attacked)
    chosen += [Input(task) for task in order[:n_clean]]
    return chosen
