"""An episode as a ledger row: the deterministic verdicts and what the trajectory shows are worked out here, once."""

from __future__ import annotations

from advsim.agents.protocol import Attacker, Executor
from advsim.ledger import Row
from advsim.page import parse
from advsim.rewards.strict import VERIFIER, VERSION, strict
from advsim.rollout import Episode
from advsim.task import Attack, Trajectory, Verdict
from advsim.trace import first_wrong_step, followed_target
from advsim.world.feasible import feasible
from advsim.world.render import gate

RECEIVED = "Received"
"""Title of the page after a submission (`docs/semantics.md`)."""


def record(episode: Episode, executor: Executor, attacker: Attacker | None = None) -> Row:
    """The row of an episode; use `dataclasses.replace` to add stage, round, reward and other provenance.

    An episode with an error has no verdict, nor has one whose world cannot tell its outcome or whose task has no
    expectation.

    Args:
        episode: What happened.
        executor: Who did the task.
        attacker: Who attacked; None for a clean episode. (In a fork under attack: who proposed the attack.)
    """
    task, trajectory = episode.task, episode.trajectory
    outcome, attack = trajectory.outcome, trajectory.attack
    result = None
    if trajectory.error is None and task.expectation is not None and outcome is not None:
        result = strict(task.expectation, outcome)
    return Row(
        policy=executor.name,
        checkpoint=executor.checkpoint,
        attacker=attacker.name if attacker is not None else "none",
        attacker_checkpoint=attacker.checkpoint if attacker is not None else "",
        task_id=task.id,
        task_hash=task.content_hash,
        family=task.family,
        stratum=task.stratum,
        setting=task.setting,
        generation=task.generation,
        split=task.split,
        goal=task.goal,
        world=episode.world,
        world_version=episode.world_version,
        seed=episode.seed,
        max_actions=episode.max_actions,
        steps=trajectory.steps,
        final_page=trajectory.final_page,
        outcome=outcome,
        attack=attack,
        rendered=rendered(trajectory) if attack is not None and trajectory.error is None else None,
        feasible=_feasible(episode),
        verdicts=(Verdict(result.good, VERIFIER, VERSION, result.reasons),) if result is not None else (),
        strict_good=result.good if result is not None else None,
        good=result.good if result is not None else None,
        correct_fields=result.correct_fields if result is not None else None,
        target_fields=len(task.expectation.values) if task.expectation is not None else None,
        followed=_followed(trajectory, attack, episode),
        first_wrong=first_wrong_step(trajectory, task) if result is not None and not result.good else None,
        error=trajectory.error,
        wall_s=episode.wall_s,
    )


def rendered(trajectory: Trajectory) -> bool:
    """Whether the injection was shown: the render gate (`docs/method.md` §3.12) on the pages around it.

    Raises:
        ValueError: The trajectory was not attacked.
    """
    attack = trajectory.attack
    if attack is None:
        raise ValueError(f"task {trajectory.task_id}: expected an attacked trajectory, got a clean one")
    return gate(trajectory.steps[attack.turn - 1].page, _after(trajectory, attack), attack.marker)


def _after(trajectory: Trajectory, attack: Attack) -> str:
    """The page after the injection."""
    steps = trajectory.steps
    return steps[attack.turn].page if attack.turn < len(steps) else trajectory.final_page


def _feasible(episode: Episode) -> bool | None:
    """Whether the task could still be done after the injection; None where that cannot be told or asked any more."""
    task, trajectory = episode.task, episode.trajectory
    if trajectory.attack is None or trajectory.error is not None or task.form is None or task.expectation is None:
        return None
    page = parse(_after(trajectory, trajectory.attack))
    if page.nodes and page.nodes[0].name == RECEIVED:  # the action at the injection was the submission
        return None
    return feasible(page, task.expectation, task.form)


def _followed(trajectory: Trajectory, attack: Attack | None, episode: Episode) -> bool | None:
    """F, or None where there is no declared target or the episode failed."""
    if attack is None or attack.target is None or trajectory.error is not None:
        return None
    return followed_target(trajectory, episode.task)
