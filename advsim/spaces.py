"""A gymnasium space for any text.

`gymnasium.spaces.Text` holds texts over a fixed, small alphabet, and an `AsyncVectorEnv` with shared memory never
shows a second one (it reads texts once, when it is built). `Unicode` holds every text up to a length and works in
vector environments of both kinds, with shared memory or without.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Any, overload

import numpy as np
from gymnasium.spaces import Space
from gymnasium.vector.utils import (
    concatenate,
    create_empty_array,
    create_shared_memory,
    read_from_shared_memory,
    write_to_shared_memory,
)

_HEADER = 8  # bytes that hold a text's length in shared memory
_SAMPLE = 64  # longest sampled text: what a sample is for is a test, and a page of noise is none


class Unicode(Space[str]):
    """Texts of at most `max_length` characters, the empty one included; no shape.

    Args:
        max_length: Most characters.
        seed: For `sample`, which gives short texts of printable characters of all scripts.
    """

    def __init__(self, max_length: int, *, seed: int | np.random.Generator | None = None) -> None:
        if max_length < 1:
            raise ValueError(f"expected max_length >= 1, got {max_length}")
        self.max_length = int(max_length)
        super().__init__(shape=None, dtype=str, seed=seed)

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> str:
        """A random text; masks are not supported."""
        if mask is not None or probability is not None:
            raise ValueError("Unicode samples without mask and probability")
        length = int(self.np_random.integers(0, min(self.max_length, _SAMPLE) + 1))
        codes = self.np_random.integers(0x20, 0x3000, length)
        return "".join(c for c in map(chr, codes.tolist()) if c.isprintable())

    def contains(self, x: Any) -> bool:
        """Whether it is a text that is not too long."""
        return isinstance(x, str) and len(x) <= self.max_length

    @property
    def is_np_flattenable(self) -> bool:
        """False: texts have no fixed shape."""
        return False

    def fit(self, text: str) -> str:
        """The text, cut with an ellipsis if it is too long."""
        return text if len(text) <= self.max_length else text[: self.max_length - 1] + "…"

    def __repr__(self) -> str:
        return f"Unicode({self.max_length})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unicode) and self.max_length == other.max_length

    @property
    def _slot(self) -> int:
        """Bytes of one text in shared memory: at most four a character in UTF-8."""
        return _HEADER + 4 * self.max_length


class LiveTexts(Sequence[str]):
    """The texts of a batch, read from shared memory when asked for. Copying gives a plain tuple, as it is now."""

    def __init__(self, memory: Any, slot: int, n: int) -> None:
        self._memory, self._slot, self._n = memory, slot, n

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(self._n)))
        if not -self._n <= index < self._n:
            raise IndexError(f"expected an index below {self._n}, got {index}")
        at = (index % self._n) * self._slot
        view = memoryview(self._memory.get_obj()).cast("B")
        length = int.from_bytes(view[at : at + _HEADER], "little")
        return bytes(view[at + _HEADER : at + _HEADER + length]).decode("utf-8", "surrogatepass")

    def __deepcopy__(self, memo: dict[int, Any]) -> tuple[str, ...]:
        return tuple(self)

    def __repr__(self) -> str:
        return repr(tuple(self))


@create_shared_memory.register(Unicode)
def _create(space: Unicode, n: int = 1, ctx: ModuleType = multiprocessing) -> Any:
    return ctx.Array("B", n * space._slot)


@write_to_shared_memory.register(Unicode)
def _write(space: Unicode, index: int, value: str, shared_memory: Any) -> None:
    data = value.encode("utf-8", "surrogatepass")
    if len(data) > space._slot - _HEADER:
        raise ValueError(f"expected a text of at most {space.max_length} characters, got {len(value)}")
    at = index * space._slot
    view = memoryview(shared_memory.get_obj()).cast("B")
    view[at : at + _HEADER] = len(data).to_bytes(_HEADER, "little")
    view[at + _HEADER : at + _HEADER + len(data)] = data


@read_from_shared_memory.register(Unicode)
def _read(space: Unicode, shared_memory: Any, n: int = 1) -> LiveTexts:
    return LiveTexts(shared_memory, space._slot, n)


@concatenate.register(Unicode)
def _concatenate(space: Unicode, items: Iterable[str], out: Any) -> tuple[str, ...]:
    return tuple(items)


@create_empty_array.register(Unicode)
def _create_empty(space: Unicode, n: int = 1, fn: Callable[..., Any] = np.zeros) -> tuple[str, ...]:
    return ("",) * n


# `iterate` stays unregistered: for a batch of texts (a Tuple space) gymnasium then iterates over the texts, which is
# right, and with a registration it would iterate over their characters.
