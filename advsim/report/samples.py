"""Which trajectories a report shows."""

from __future__ import annotations

from collections.abc import Sequence

from advsim.ledger import Row


def choose(rows: Sequence[Row], limit: int = 24) -> list[Row]:
    """A few evaluation episodes a reader should see: of each executor, world and attacker a bad and a good one.

    Under attack the bad one is, where there is such, one that was hijacked. The first in the ledger's order is
    taken, so the same ledger shows the same samples.

    Args:
        rows: The ledger.
        limit: Most samples; attacked ones come first.
    """
    wanted: dict[tuple[str, ...], Row] = {}
    for row in rows:
        if row.phase != "eval" or row.role != "executor":
            continue
        kind = "error" if row.error else "good" if row.strict_good else "hijacked" if row.followed else "bad"
        wanted.setdefault((row.policy, row.world, row.attacker, kind), row)
    # A plain failure under attack says less than a hijacked one.
    kept = {key: row for key, row in wanted.items() if key[3] != "bad" or (*key[:3], "hijacked") not in wanted}
    order = sorted(kept, key=lambda key: (key[2] == "none", key[3] != "hijacked", key))
    return [kept[key] for key in order[:limit]]
