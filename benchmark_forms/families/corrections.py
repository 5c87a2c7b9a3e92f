"""Ordered repair, third family: a log whose entries can be withdrawn, and hold again."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from advsim.form import Table, Text
from benchmark_forms import words
from benchmark_forms.assemble import Draft, assemble, names, records_block
from benchmark_forms.families.repair import entry_count, field_count, repaired, shares, tiny_repair
from benchmark_forms.fields import Attribute, Wanted, draw_column
from benchmark_forms.setting import Setting

_RECORD = (
    Attribute("Street", "choice", words.PLACES),
    Attribute("House number", "int", low=1, high=240),
    Attribute("Meter code", "code", prefix="M"),
    Attribute("Tenant", "choice", words.SURNAMES),
    Attribute("Moved in", "date"),
    Attribute("Rent", "money", low=300, high=900),
    Attribute("Access note", "phrase", words.PHRASES),
    Attribute("Keys handed out", "int", low=1, high=12),
    Attribute("Pets", "flag"),
)
_RECORD_SMALL = (
    Attribute("Room", "int", low=1, high=90),
    Attribute("Rent", "int", low=10, high=99),
    Attribute("Name", "choice", words.SHORT_PEOPLE),
    Attribute("Street", "choice", words.SHORT_PLACES),
)


def corrections_log(rng: Random, setting: Setting) -> Draft:
    """A log of numbered corrections, some of which later ones withdraw: the last that still holds counts."""
    title = rng.choice(("Tenancy record", "Tenant file", "Record correction"))
    if setting.level == "tiny":
        return tiny_repair(rng, setting, title, _RECORD_SMALL)
    chosen = rng.sample(
        _RECORD_SMALL if setting.small else _RECORD, field_count(rng, setting, 2 if setting.small else 6)
    )
    total = entry_count(rng, setting, len(chosen))
    again = setting.hard and rng.random() < 0.5
    sets = max(total - 1 - again, len(chosen) + (not setting.small or total > len(chosen)))
    sets = min(sets, 8 - again)
    numbers = list(range(1, sets + 1))
    rng.shuffle(numbers)
    entries: list[tuple[int, str]] = []
    items: list[Wanted] = []
    dropped: list[int] = []
    holding: list[int] = []
    for attribute, share in zip(chosen, shares(rng, sets, len(chosen)), strict=True):
        own = sorted(numbers.pop() for _ in range(share))
        # Which of the field's corrections holds is drawn first; the later ones get withdrawn.
        right = rng.randrange(share)
        values = draw_column(rng, attribute, share + 2, range(share + 2)).values
        items.append(repaired(attribute, values[:share], right, values[share:]))
        said = "{} {}" if setting.small else "{} becomes {}"
        entries += [(n, said.format(attribute.name, v)) for n, v in zip(own, values, strict=False)]
        dropped += own[right + 1 :]
        holding.append(own[right])
        dropped += [n for n in own[:right] if rng.random() < 0.3]
    restored = rng.choice(holding) if again else None
    drawn = sorted([*dropped, *([restored] if restored else [])])
    rng.shuffle(drawn)
    if drawn:
        entries.append((sets + 1, _withdrawal(drawn, small=setting.small)))
    if restored:
        entries.append((sets + 2, f"entry {restored} holds again"))
    order = rng.choice(("up", "down", "mixed"))
    entries.sort(reverse=order == "down")
    if order == "mixed":
        rng.shuffle(entries)
    table = not setting.small and rng.random() < 0.5
    blocks: list[Text | Table]
    if table:
        blocks = [records_block("Corrections", ("Entry", "Correction"), [(str(n), text) for n, text in entries])]
    else:
        blocks = [Text(text=f"{n}: {text}" if setting.small else f"Entry {n}: {text}.") for n, text in entries]
    listed = names(rng, [i.label for i in items], setting)
    if setting.small:
        goal = f"Set {listed} by the last entry that is not dropped."
    else:
        goal = rng.choice(
            (
                "Correct {} by the log: for each, the entry with the highest number that still holds counts.",
                "Put {} right. Withdrawn entries do not count; of the others, the one with the highest number does.",
            )
        ).format(listed)
    shape = ("table" if table else "lines", sets, len(drawn), again, order, len(items))
    return assemble(rng, setting, title=title, blocks=blocks, items=items, goal=goal, shape=shape, repair=True)


def _withdrawal(numbers: Sequence[int], *, small: bool) -> str:
    listed = " and ".join(map(str, numbers))
    if small:
        return f"drop {listed}"
    return f"entry {listed} is withdrawn" if len(numbers) == 1 else f"entries {listed} are withdrawn"
