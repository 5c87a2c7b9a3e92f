"""Rows of the local engine that sample together: some join, all go on by a token, those that are done leave.

Keys and values live in one buffer of shape (layers, 2, rows, heads, positions, head size). Row r's token p is at
position p, with no padding before it; what lies beyond a row's length is masked. The places of rows that left are
used again: stale numbers in them are finite and masked, so they change nothing.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

_ALONE = 64  # prompts with this many new tokens are read one by one: padding would cost more than batching saves
_ROOM = 256  # spare positions in a new buffer: conversations grow every turn, and zeroing one costs as much as a wave


@dataclass(slots=True)
class Row:
    """A request while it is served.

    Attributes:
        prompt, max_tokens, temperature, seed, stop: What was asked.
        keep: Whether the state is wanted at the end.
        known: How many tokens of the prompt `state` holds already.
        state: Keys and values (layers, 2, heads, tokens, head size); at the end those of the prompt and the completion
            but for the last sampled token.
        sampled, logprobs: The result so far.
    """

    prompt: tuple[int, ...]
    max_tokens: int
    temperature: float
    seed: int
    stop: set[int]
    keep: bool = False
    known: int = 0
    state: torch.Tensor | None = None
    sampled: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)


def cache_argument(decoder: Any) -> str:
    """What a decoder of transformers calls its cache: the name changed within the versions that we take."""
    return "cache" if "cache" in inspect.signature(decoder.forward).parameters else "past_key_values"


class _Slots:
    """The part of transformers' cache protocol that decoder models call: store new keys and values, return all."""

    def __init__(self, buffer: torch.Tensor, positions: torch.Tensor, length: int) -> None:
        self._buffer = buffer[:, :, :, :, :length]
        self._positions = positions
        self._rows = torch.arange(len(positions), device=positions.device)[:, None]

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer: int, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        stored = self._buffer[layer]
        stored[0][self._rows, :, self._positions] = keys.transpose(1, 2)
        stored[1][self._rows, :, self._positions] = values.transpose(1, 2)
        return stored[0], stored[1]

    def get_seq_length(self, layer: int = 0) -> int:
        return int(self._positions[0, 0])


class Batch:
    """Rows of one model that sample together.

    Args:
        model: A decoder of transformers.
        vocabulary: Ids from here on are padding of the embedding matrix and are never sampled.
        buffer: One that an earlier batch of the same backbone left.
        most: How many rows there can be.

    Attributes:
        buffer: Where keys and values are; None before the first row.
        read: Prompt tokens computed so far.
    """

    def __init__(self, model: Any, vocabulary: int, buffer: torch.Tensor | None = None, most: int = 64) -> None:
        self.buffer = buffer
        self._most = most
        self.read = 0
        self._model = model
        self._decoder = model.base_model
        self._cache_name = cache_argument(self._decoder)
        self._device = model.device
        self._vocabulary = vocabulary
        self._rows: list[Row] = []  # by place in the buffer
        self._lengths: list[int] = []  # how many of each row's tokens the buffer holds
        self._random: dict[int, random.Random] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def join(self, rows: Sequence[Row]) -> list[Row]:
        """Reads the new part of each prompt (equal ones once) and samples each row's first token; who is done."""
        # Distinct prompts first, in order of new tokens, so that those read together are neighbours.
        first: dict[tuple[int, ...], Row] = {}
        for row in rows:
            kept = first.setdefault(row.prompt, row)
            if row.known > kept.known:
                first[row.prompt] = row
        distinct = sorted(first.values(), key=lambda r: len(r.prompt) - r.known)
        chosen = {id(row) for row in distinct}
        ordered = distinct + [row for row in rows if id(row) not in chosen]
        place = {row.prompt: index for index, row in enumerate(distinct)}
        start = len(self._rows)
        buffer = self._make_room(start + len(rows), max(len(row.prompt) + row.max_tokens for row in rows) + _ALONE)
        for index, row in enumerate(distinct, start):
            if row.known and row.state is not None:
                buffer[:, :, index, :, : row.known] = row.state[:, :, :, : row.known]
        logits = torch.cat([self._read(distinct[i:j], start + i) for i, j in _portions(distinct)])
        source = [place[row.prompt] for row in ordered]
        copies = len(distinct)
        if len(ordered) > copies:
            longest = max(len(row.prompt) for row in ordered)
            origin = torch.tensor(source[copies:], device=self._device) + start
            buffer[:, :, start + copies : start + len(ordered), :, :longest] = buffer[:, :, origin, :, :longest]
            logits = logits[torch.tensor(source, device=self._device)]
        for row in ordered:
            row.state = None  # it is in the buffer now
            self._random[id(row)] = random.Random(row.seed)
        self._rows += ordered
        self._lengths += [len(row.prompt) for row in ordered]
        self._sample(ordered, logits)
        return self._leave()

    def step(self) -> list[Row]:
        """Samples one more token of every row; who is done."""
        ids = torch.tensor([row.sampled[-1] for row in self._rows], device=self._device)[:, None]
        positions = torch.tensor(self._lengths, device=self._device)[:, None]
        logits = self._logits(self._forward(ids, positions, 0, len(self._rows))[:, 0])
        self._lengths = [length + 1 for length in self._lengths]
        self._sample(self._rows, logits)
        return self._leave()

    def _make_room(self, rows: int, length: int) -> torch.Tensor:
        """The buffer, with places for so many rows of so many tokens."""
        old = self.buffer
        if old is None or old.shape[2] < rows or old.shape[4] < length:
            config = self._model.config.get_text_config()
            layers, heads = config.num_hidden_layers, config.num_key_value_heads
            size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
            held = (0, 0) if old is None else (old.shape[2], old.shape[4])
            if held[0]:
                rows = max(rows, min(rows + rows // 2, self._most))  # more will join, and each time all would move
            shape = (layers, 2, max(held[0], rows), heads, max(held[1], length + _ROOM), size)
            self.buffer = torch.zeros(shape, dtype=self._model.dtype, device=self._device)
            if old is not None and self._rows:
                used = max(self._lengths)
                self.buffer[:, :, : len(self._rows), :, :used] = old[:, :, : len(self._rows), :, :used]
        assert self.buffer is not None
        return self.buffer

    def _read(self, rows: Sequence[Row], start: int) -> torch.Tensor:
        """Reads the new tokens of rows at places from `start` on; the logits after each one's last, (rows, ids)."""
        new = [row.prompt[row.known :] for row in rows]
        self.read += sum(map(len, new))
        width = max(map(len, new))
        ids = torch.tensor([[*part, *[0] * (width - len(part))] for part in new], device=self._device)
        known = torch.tensor([row.known for row in rows], device=self._device)
        hidden = self._forward(ids, known[:, None] + torch.arange(width, device=self._device), start, start + len(rows))
        last = torch.tensor([len(part) - 1 for part in new], device=self._device)
        return self._logits(hidden[torch.arange(len(rows), device=self._device), last])

    def _forward(self, ids: torch.Tensor, positions: torch.Tensor, start: int, end: int) -> torch.Tensor:
        """Hidden states of tokens (rows, n) at positions (rows, n) of buffer rows start..end."""
        length = int(positions.max()) + 1
        mask = torch.arange(length, device=self._device) <= positions[:, None, :, None]
        assert self.buffer is not None
        slots = _Slots(self.buffer[:, :, start:end], positions, length)
        output = self._decoder(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            use_cache=True,
            **{self._cache_name: slots},
        )
        hidden: torch.Tensor = output.last_hidden_state
        return hidden

    def _logits(self, hidden: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self._model.get_output_embeddings()(hidden).float()
        logits[:, self._vocabulary :] = -torch.inf
        return logits

    def _leave(self) -> list[Row]:
        """Takes out the rows that are done, with their state where it is wanted, and closes the ranks."""
        assert self.buffer is not None
        keep, done = [], []
        for index, row in enumerate(self._rows):
            if row.sampled[-1] not in row.stop and len(row.sampled) < row.max_tokens:
                keep.append(index)
                continue
            done.append(row)
            del self._random[id(row)]
            if row.keep:
                row.state = self.buffer[:, :, index, :, : self._lengths[index]].clone()
        if done:
            # The last of those that stay move into the places of those that left.
            count, order = len(keep), list(range(len(keep)))
            free = sorted(set(order) - set(keep))
            for place, mover in zip(free, (index for index in keep if index >= count), strict=True):
                length = self._lengths[mover]
                self.buffer[:, :, place, :, :length] = self.buffer[:, :, mover, :, :length]
                order[place] = mover
            self._rows, self._lengths = [self._rows[i] for i in order], [self._lengths[i] for i in order]
        return done

    def _sample(self, rows: Sequence[Row], logits: torch.Tensor) -> None:
        """Samples one token a row by inverting its distribution at a number of the row's own stream."""
        heat = torch.tensor([row.temperature for row in rows], device=self._device)
        scaled = logits / heat.clamp(min=1e-6)[:, None]
        cumulative = torch.softmax(scaled, -1).double().cumsum(-1)
        drawn = [self._random[id(row)].random() for row in rows]
        point = torch.tensor(drawn, dtype=torch.float64, device=self._device)[:, None] * cumulative[:, -1:]
        sampled = torch.searchsorted(cumulative, point, right=True)[:, 0].clamp(max=self._vocabulary - 1)
        tokens = torch.where(heat == 0, logits.argmax(-1), sampled)
        log_probs = torch.log_softmax(logits, -1).gather(-1, tokens[:, None])[:, 0].tolist()
        for row, token, log_prob in zip(rows, tokens.tolist(), log_probs, strict=True):
            row.sampled.append(token)
            row.logprobs.append(log_prob)


def _portions(rows: Sequence[Row]) -> list[tuple[int, int]]:
    """Ranges of rows that are read in one pass: long ones alone, short ones of like length together."""
    sizes = [len(row.prompt) - row.known for row in rows]
    ranges: list[tuple[int, int]] = []
    start = 0
    while start < len(sizes):
        end = start + 1
        while end < len(sizes) and sizes[end] < _ALONE and sizes[end] <= sizes[start] * 3 // 2 + 8:
            end += 1
        ranges.append((start, end))
        start = end
    return ranges
