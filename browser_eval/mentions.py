"""Whether a page's source could make a control of a key."""

from __future__ import annotations

import re
from collections.abc import Sequence

_PARTS = re.compile(r"[^\W\d_]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Mentions:
    """What texts mention: `key in Mentions(texts)`.

    Scripts put keys together (`"ch" + i`, `kind + "Name"`), so a key is mentioned where each of its words stands
    somewhere. A key without a word could be anything's.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._text = "\n".join(texts).casefold()

    def __contains__(self, key: str) -> bool:
        return all(part.casefold() in self._text for part in _PARTS.findall(_CAMEL.sub(" ", key)))
