"""Messages as token ids, in pieces that only ever grow at the end.

A conversation keeps the ids that were sampled and adds the template's tokens and the next message after them. What the
template says between turns is found once, by rendering it around marks; contents are encoded apart from it, so that
text which looks like a control token (a page may hold any text) is encoded as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerBase

_MARKS = ("uSeRmArK", "aSsIsTaNtMaRk")


class ChatFormat:
    """One tokenizer's chat template, taken apart.

    Args:
        tokenizer: A fast tokenizer with a chat template.

    Raises:
        ValueError: The template changes or drops what it is given, so no prefix of a conversation would be stable.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        backend: Tokenizer = tokenizer.backend_tokenizer
        self._plain = Tokenizer.from_str(backend.to_str())
        self._plain.encode_special_tokens = True  # contents: control tokens are text
        self._encoded = lru_cache(maxsize=4096)(self._encode)  # rollouts of one task are shown the same pages
        user, assistant = _MARKS

        def render(*messages: tuple[str, str]) -> str:
            chat = [{"role": role, "content": content} for role, content in messages]
            text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
            assert isinstance(text, str)
            return text

        def encode(text: str) -> list[int]:
            ids: list[int] = backend.encode(text, add_special_tokens=False).ids
            return ids

        first = render(("user", user))
        second = render(("user", "x"), ("assistant", assistant), ("user", user))
        for text, marks in ((first, (user,)), (second, (user, assistant))):
            if any(text.count(mark) != 1 for mark in marks):
                raise ValueError(f"the chat template does not give messages as they are: {text[:200]!r}")
        before, after = first.split(user)
        between, end = second.partition(assistant)[2].split(user)
        if end != after:
            raise ValueError("the chat template opens the assistant's turn differently later in a conversation")
        self._before, self._after, self._between = encode(before), encode(after), encode(between)

    def encode(self, content: str) -> list[int]:
        """A content's ids; control tokens in it are text."""
        return list(self._encoded(content))

    def _encode(self, content: str) -> tuple[int, ...]:
        return tuple(self._plain.encode(content, add_special_tokens=False).ids)

    def opening(self, content: str) -> list[int]:
        """A conversation's first user message, up to where the assistant speaks."""
        return [*self._before, *self.encode(content), *self._after]

    def reply(self, said: Sequence[int], content: str) -> list[int]:
        """What follows an assistant's sampled ids: the turn's end (where it was not sampled) and the next message."""
        between = self._between
        if said and between and said[-1] == between[0]:
            between = between[1:]
        return [*between, *self.encode(content), *self._after]
