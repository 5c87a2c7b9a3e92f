"""Near-copies among a round's proposals, for the repetition penalties (`docs/method.md` §3.2, §3.4)."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher


def fold(text: str) -> str:
    """The text without differences of case and white space."""
    return " ".join(text.casefold().split())


def cluster_sizes(texts: Sequence[str], similarity: float = 0.8) -> list[int]:
    """The size of each text's cluster, in order.

    Greedy: a text joins the first cluster whose first member it resembles (difflib's ratio on folded texts, at
    least `similarity`), else it opens a new one.
    """
    leaders: list[str] = []
    member_of: list[int] = []
    for text in map(fold, texts):
        # autojunk would ignore frequent letters in texts of 200 characters and more: a cliff at that length.
        matcher = SequenceMatcher(None, autojunk=False)
        matcher.set_seq2(text)  # the side that difflib indexes once
        for index, leader in enumerate(leaders):
            matcher.set_seq1(leader)
            # The two quick ratios are upper bounds of the true one, and far cheaper.
            if (
                matcher.real_quick_ratio() >= similarity
                and matcher.quick_ratio() >= similarity
                and matcher.ratio() >= similarity
            ):
                member_of.append(index)
                break
        else:
            member_of.append(len(leaders))
            leaders.append(text)
    sizes = [0] * len(leaders)
    for index in member_of:
        sizes[index] += 1
    return [sizes[index] for index in member_of]
