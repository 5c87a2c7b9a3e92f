"""What a reader sees: the page's lines taken apart again, without a word from the code that made them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

LINE = re.compile(r"""\t*(?:\[\d+\] )?(\w+) ('[^']*'|"[^"]*")((?:, [^\t]*)?)$""")
VALUE = re.compile(r"""value=('[^']*'|"[^"]*")""")


@dataclass
class Seen:
    """Paragraphs, tables (caption -> rows as dicts by lower-case header) and fields (label -> role)."""

    texts: list[str] = field(default_factory=list)
    tables: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    fields: dict[str, str] = field(default_factory=dict)
    first: dict[str, str] = field(default_factory=dict)
    options: dict[str, list[str]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """What fields ask for: their labels without ` for whom`, longest first."""
        return sorted({label.split(" for ")[0] for label in self.fields}, key=len, reverse=True)

    def answer(self, label: str, value: str) -> str:
        """A value as the field takes it: a tick for a yes."""
        if self.fields[label] == "checkbox":
            assert value in ("yes", "no"), (label, value)
            return "on" if value == "yes" else ""
        return value


@dataclass
class Found:
    """The answer, and how it was found.

    `decisions`: for each record that was looked for, its place among its like, how many those are, and, for each column
    of numbers there, all of the column's values.
    """

    values: dict[str, str]
    decisions: list[tuple[int, int, list[list[float]]]] = field(default_factory=list)


def see(page: str) -> Seen:
    seen = Seen()
    header: list[str] | None = None
    caption = label = ""
    for line in page.split("\n"):
        m = LINE.match(line)
        assert m, f"unreadable line {line!r}"
        role, name, props = m[1], m[2][1:-1], m[3]
        if role == "StaticText":
            seen.texts.append(name)
        elif role == "table":
            caption, header = name, None
            seen.tables[caption] = []
        elif role == "row":
            cells = name.split(" | ")
            if header is None:
                header = [c.lower() for c in cells]
            else:
                seen.tables[caption].append(dict(zip(header, cells, strict=True)))
        elif role in ("textbox", "spinbutton", "Date", "combobox", "radiogroup", "checkbox"):
            label = name
            seen.fields[label] = role
            value = VALUE.search(props)
            seen.first[label] = value[1][1:-1] if value else ""
        elif role in ("option", "radio"):
            seen.options.setdefault(label, []).append(name)
    return seen


def pairs(text: str, names: list[str], sep: str = ", ") -> dict[str, str]:
    """`Fee 6.48, Desk back office` -> {'fee': '6.48', 'desk': 'back office'}; parts with no known name are left out."""
    out = {}
    for part in text.rstrip(".").split(sep):
        for name in names:
            if part.lower().startswith(name.lower() + " "):
                out[name.lower()] = part[len(name) + 1 :]
                break
    return out


def only(found: list[int]) -> int:
    """The one candidate; anything else is no well-posed task."""
    assert len(found) == 1, f"{len(found)} candidates instead of one"
    return found[0]


def numbers(rows: list[dict[str, str]]) -> list[list[float]]:
    """The columns that hold nothing but numbers."""
    out = []
    for key in rows[0]:
        values = [r.get(key, "") for r in rows]
        if all(re.fullmatch(r"\d+(\.\d+)?", v) for v in values):
            out.append([float(v) for v in values])
    return out


def decide(rows: list[dict[str, str]], at: int) -> tuple[int, int, list[list[float]]]:
    return at, len(rows), numbers(rows)


def take(seen: Seen, row: dict[str, str], whose: str = "") -> dict[str, str]:
    """The row's values for the fields that ask for them, `whose` being the case that they belong to."""
    out = {}
    for label in seen.fields:
        name, _, case = label.partition(" for ")
        if case == whose and name.lower() in row:
            out[label] = seen.answer(label, row[name.lower()])
    return out


def within(value: int, span: str) -> bool:
    """`7` within `3 to 9` or `7`."""
    low, _, high = span.partition(" to ")
    return int(low) <= value <= int(high or low)
