"""Where a report's numbers come from: read off the ledger's own rows, so that it cannot disagree with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from advsim import __version__
from advsim.ledger import Row
from advsim.row import SCHEMA_VERSION


def provenance(rows: Sequence[Row]) -> dict[str, str]:
    """What the header of a report says, in order; empty facts are left out."""
    errors = sum(row.error is not None for row in rows)
    played = [row for row in rows if row.role == "executor"]  # a proposal is no episode in a world
    tasks = {(row.split, row.generation, row.task_hash) for row in played}
    splits = [
        f"{len({t for t in tasks if t[:2] == (split, generation)})} of {split or 'unnamed'} (generation {generation})"
        for split, generation in sorted({t[:2] for t in tasks})
    ]
    facts = {
        "run": _listed(row.run for row in rows),
        "rollouts": f"{len(rows)}, of which {errors} failed on infrastructure",
        "tasks": ", ".join(splits),
        "configuration": _listed(row.config_hash for row in rows),
        "training seeds": _listed(str(row.train_seed) for row in rows if row.stage != "eval" or row.run),
        "rollout seeds": _listed(str(row.seed) for row in rows if row.phase == "eval"),
        "worlds": _listed(f"{row.world} {row.world_version}" for row in played),
        "verifiers": _listed(f"{v.verifier} {v.version}" for row in rows for v in row.verdicts),
        "policies": _listed(f"{row.policy} {row.checkpoint[:12]}" for row in rows if row.phase == "eval"),
        "attackers": _listed(
            f"{row.attacker} {row.attacker_checkpoint[:12]}" for row in rows if row.attacker != "none"
        ),
        "report": f"AdvSim {__version__}, ledger schema {SCHEMA_VERSION}",
    }
    return {key: value for key, value in facts.items() if value}


def _listed(values: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(value.strip() for value in values if value.strip()))
