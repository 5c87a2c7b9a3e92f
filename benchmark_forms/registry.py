"""All families by name, and the task that a seed makes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from advsim.task import Strata, Task
from benchmark_forms.assemble import Draft
from benchmark_forms.families import (
    booking,
    conditional,
    conjunctive,
    corrections,
    derived,
    join,
    oncall,
    quotes,
    repair,
    suppliers,
)
from benchmark_forms.setting import Setting, setting

GENERATION = 1
"""Version of the generator: the same family, setting and seed give the same task within a generation."""


class Signature(NamedTuple):
    """A generated task's structure; words, values, and the places of what is not asked for do not count.

    Attributes:
        family, setting: Provenance.
        shape: The rule's: which parts it has, how many records, what is compared, how it is laid out.
        kinds: Kinds of the fields to fill in, in page order.
    """

    family: str
    setting: str
    shape: tuple[str, ...]
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FamilyInfo:
    """One family.

    Attributes:
        name: As in a task's id.
        stratum: What kind of reasoning it asks for.
        summary: One line.
        draft: Makes the task; pure but for the random generator that it is given.
    """

    name: str
    stratum: Strata
    summary: str
    draft: Callable[[Random, Setting], Draft]


def _family(stratum: Strata, draft: Callable[[Random, Setting], Draft]) -> FamilyInfo:
    return FamilyInfo(draft.__name__, stratum, (draft.__doc__ or "").splitlines()[0], draft)


_FAMILIES = {
    info.name: info
    for info in (
        _family("conditional", conditional.returns_policy),
        _family("conditional", conditional.shipping_rule),
        _family("conditional", booking.room_booking),
        _family("derived", derived.whole_packs),
        _family("derived", derived.invoice_total),
        _family("derived", quotes.quote_tiers),
        _family("conjunctive", conjunctive.catalogue_choice),
        _family("conjunctive", conjunctive.venue_choice),
        _family("conjunctive", suppliers.supplier_choice),
        _family("join", join.asset_owner),
        _family("join", join.billing_account),
        _family("join", oncall.oncall_contact),
        _family("repair", repair.contact_override),
        _family("repair", repair.dated_patches),
        _family("repair", corrections.corrections_log),
    )
}


def families() -> dict[str, FamilyInfo]:
    """All families by name, stratum by stratum."""
    return dict(_FAMILIES)


def draft(family: str, setting_name: str, seed: int) -> Draft:
    """What the family makes of the seed, its rule's shape included.

    The generator is seeded with a hash of the three names, so that the result depends on neither the process nor
    the machine.

    Raises:
        ValueError: For an unknown family or setting.
    """
    if family not in _FAMILIES:
        raise ValueError(f"unknown family {family!r}: expected one of {', '.join(_FAMILIES)}")
    chosen = setting(setting_name)
    digest = hashlib.sha256(f"{GENERATION}/{family}/{setting_name}/{seed}".encode()).digest()
    return _FAMILIES[family].draft(Random(int.from_bytes(digest[:16], "big")), chosen)


def generate(family: str, setting_name: str, seed: int, *, split: str = "train") -> Task:
    """The task of this family, setting and seed; always the same one within a `GENERATION`.

    Raises:
        ValueError: For an unknown family or setting.
    """
    made = draft(family, setting_name, seed)
    return Task(
        id=f"{family}/{setting_name}/{seed}",
        goal=made.goal,
        form=made.form,
        expectation=made.expectation,
        family=family,
        stratum=_FAMILIES[family].stratum,
        setting=setting_name,
        generation=GENERATION,
        split=split,
    )


def signature(task: Task) -> Signature:
    """A generated task's structure.

    Raises:
        ValueError: If the task was not generated, or by another generation.
    """
    family, setting_name, seed = [*task.id.split("/"), "", ""][:3]
    if task.form is None or task.expectation is None or not seed.isdecimal() or task.generation != GENERATION:
        raise ValueError(f"task {task.id!r} is not of this generator (generation {GENERATION})")
    kinds = tuple(c.kind for c in task.form.fields if c.key in task.expectation.values)
    return Signature(family, setting_name, draft(family, setting_name, int(seed)).shape, kinds)
