"""What a policy asks of an engine: token ids in, token ids out, adapters by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol


@dataclass(frozen=True, slots=True)
class Completion:
    """What was sampled.

    Attributes:
        token_ids: Exactly the sampled ids, the one that ended the turn included: never encode the text again.
        logprobs: Each one's log-probability under the policy at temperature 1.
        text: The ids as text, without the token that ended the turn.
        finish: `stop` for an end-of-turn token, `length` when `max_tokens` came first.
    """

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    text: str
    finish: Literal["stop", "length"]


@dataclass(slots=True, weakref_slot=True)
class Memory:
    """What an engine remembers of one conversation, so that its next turn costs only the new tokens.

    Opaque to everybody else. It is only ever a shortcut: an engine may forget it at any time.
    """

    ids: tuple[int, ...] = ()
    state: Any = field(default=None, repr=False)
    adapter: str | None = None

    def fork(self) -> Memory:
        """An independent memory of the same tokens. The state is immutable, so nothing is copied."""
        return Memory(self.ids, self.state, self.adapter)


@dataclass(slots=True)
class Stats:
    """Work since it was put in place.

    Attributes:
        seconds: Inside the model. requests: How many were served. passes: Forward passes that sampled tokens.
        sampled: Tokens generated, so `sampled / passes` is the mean size of a batch. read: Prompt tokens computed.
        remembered: Prompt tokens that a memory or an equal prompt saved.
    """

    seconds: float = 0.0
    requests: int = 0
    passes: int = 0
    sampled: int = 0
    read: int = 0
    remembered: int = 0


class Engine(Protocol):
    """Generates for many conversations at once. Requests are batched across whoever happens to wait.

    Attributes:
        stats: What it has done; a caller may put new ones in their place.
    """

    stats: Stats

    async def generate(
        self,
        adapter: str | None,
        token_ids: Sequence[int],
        *,
        max_tokens: int,
        temperature: float,
        seed: int,
        stop: Sequence[int] = (),
        memory: Memory | None = None,
    ) -> Completion:
        """Samples a continuation.

        Args:
            adapter: Name of the adapter; None for the backbone.
            token_ids: The whole prompt.
            max_tokens: Most tokens to sample.
            temperature: 0 takes the likeliest token.
            seed: Decides the sample, whatever else is in the batch (up to rounding in the logits).
            stop: Further ids that end the turn, beside the model's own.
            memory: Read, and brought up to date.

        Raises:
            EngineError: The engine failed; the request may be tried again.
        """
