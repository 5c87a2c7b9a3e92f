"""A second solver: reads a page's text and the goal, knows nothing of the generator, and finds the values to enter."""

from __future__ import annotations

import re

from formsolver import choice, links, log, policy, sums
from formsolver.seen import Found, Seen, see

SOLVERS = {
    f.__name__: f
    for f in (
        policy.returns_policy,
        policy.shipping_rule,
        policy.room_booking,
        sums.whole_packs,
        sums.invoice_total,
        sums.quote_tiers,
        choice.catalogue_choice,
        choice.venue_choice,
        choice.supplier_choice,
        links.asset_owner,
        links.billing_account,
        links.oncall_contact,
        log.contact_override,
        log.dated_patches,
        log.corrections_log,
    )
}


def _stated(seen: Seen, goal: str) -> Found:
    """The simplest setting: the values stand in the goal or in one line."""
    listed = (
        next((t.removeprefix("Values: ") for t in seen.texts), "") or re.split(r"\.(?: |$)", goal)[0].split(" ", 1)[1]
    )
    values = {}
    for part in listed.split(", "):
        label = next(n for n in seen.fields if part.startswith(n + " "))
        values[label] = seen.answer(label, part[len(label) + 1 :])
    return Found(values)


def solve(family: str, setting: str, page: str, goal: str) -> Found:
    """Values by field label. Raises AssertionError where the page leaves no answer or more than one."""
    seen = see(page)
    return _stated(seen, goal) if setting == "tiny" else SOLVERS[family](seen, goal)
