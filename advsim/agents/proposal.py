"""What the two proposing policies' formats share: lines of `key: value` in a completion, and the error for bad ones."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

_THOUGHT: Final = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_LINE: Final = re.compile(r"[ \t>*-]*+([A-Za-z]++)[ \t]*+:[ \t]*+(.*)")


@dataclass(frozen=True, slots=True)
class ProposalError:
    """Why a completion holds no proposal: a value, not an exception; the proposal's reward says the rest.

    Attributes:
        message: One line: what was expected and what came.
    """

    message: str


def visible(completion: str) -> str:
    """The completion without its `<think>` blocks (one that the chat template opened in the prompt included)."""
    return _THOUGHT.sub("", completion).rpartition("</think>")[2]


def keyed_lines(completion: str, first: str, keys: Collection[str]) -> list[tuple[str, str]] | ProposalError:
    """Reads the block of `key: value` lines that begins with the key `first`.

    Prose and code fences before the block are skipped; it ends at a blank line, a code fence or the end of the text.
    Inside it every line must have one of the `keys` (in any case), so that a misspelt line is an error and not
    silently a different proposal.

    Returns:
        Pairs of key (lower case) and value (outer white space removed), in order, at least one; or what is wrong.
    """
    if _SURROGATE.search(completion):  # no file, hash or page of ours could hold it
        return ProposalError("expected text that can be encoded as UTF-8, got a lone surrogate")
    found: list[tuple[str, str]] = []
    for line in visible(completion).split("\n"):
        match = _LINE.match(line)
        key = match[1].lower() if match else ""
        if not found and key != first:
            continue
        bare = line.strip()
        if not bare or bare.startswith("```"):
            break
        if match is None or key not in keys:
            return ProposalError(f"expected a line beginning with one of {', '.join(keys)}, got {bare[:60]!r}")
        found.append((key, match[2].strip()))
    return found or ProposalError(f"expected a line beginning with '{first}:', got none")


def one_line(text: str) -> str:
    """The text with every run of white space as one space, as the two formats' free text is written."""
    return " ".join(text.split())
