"""One wave of the local engine: read the new part of each prompt, then sample all rows together.

Keys and values live in one buffer of shape (layers, 2, rows, heads, positions, head size). Row r's token p is at
position p, with no padding before it; what lies beyond a row's length is masked. The buffer is reused from wave to
wave: stale numbers in it are finite and masked, so they change nothing.
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


class Wave:
    """Serves rows together.

    Args:
        model: A decoder of transformers.
        rows: What to serve; results are written into them.
        buffers: Where the buffer is kept between waves.
        vocabulary: Ids from here on are padding of the embedding matrix and are never sampled.
    """

    def __init__(self, model: Any, rows: Sequence[Row], buffers: dict[str, torch.Tensor], vocabulary: int) -> None:
        self.read = 0
        self._model = model
        self._decoder = model.base_model
        self._cache_name = (
            "cache" if "cache" in inspect.signature(self._decoder.forward).parameters else "past_key_values"
        )
        self._device = model.device
        self._vocabulary = vocabulary
        # Distinct prompts first, in order of new tokens, so that those read together are neighbours.
        first: dict[tuple[int, ...], Row] = {}
        for row in rows:
            kept = first.setdefault(row.prompt, row)
            if row.known > kept.known:
                first[row.prompt] = row
        distinct = sorted(first.values(), key=lambda r: len(r.prompt) - r.known)
        chosen = {id(row) for row in distinct}
        self._distinct = distinct
        self._rows = distinct + [row for row in rows if id(row) not in chosen]
        place = {row.prompt: index for index, row in enumerate(distinct)}
        self._source = [place[row.prompt] for row in self._rows]
        longest = max(len(row.prompt) + row.max_tokens for row in rows)
        self._buffer = self._allocate(buffers, len(rows), longest + _ALONE)
        self._random = {id(row): random.Random(row.seed) for row in rows}

    def run(self) -> None:
        """Reads, samples, and leaves each row's result in it."""
        for index, row in enumerate(self._distinct):
            if row.known and row.state is not None:
                self._buffer[:, :, index, :, : row.known] = row.state[:, :, :, : row.known]
        logits = torch.cat([self._read(start, end) for start, end in self._portions()])
        count, longest = len(self._distinct), max(len(row.prompt) for row in self._rows)
        if len(self._rows) > count:
            copies = torch.tensor(self._source[count:], device=self._device)
            self._buffer[:, :, count : len(self._rows), :, :longest] = self._buffer[:, :, copies, :, :longest]
            logits = logits[torch.tensor(self._source, device=self._device)]
        self._sample_all(logits)

    def _allocate(self, buffers: dict[str, torch.Tensor], rows: int, length: int) -> torch.Tensor:
        config = self._model.config.get_text_config()
        layers, heads = config.num_hidden_layers, config.num_key_value_heads
        size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        key = f"{self._device}/{self._model.dtype}/{layers}/{heads}/{size}"
        buffer = buffers.pop(key, None)
        held = (0, 0) if buffer is None else (buffer.shape[2], buffer.shape[4])
        if buffer is None or held[0] < rows or held[1] < length:
            del buffer  # before there is another
            shape = (layers, 2, max(held[0], rows), heads, max(held[1], length + _ROOM), size)
            buffer = torch.zeros(shape, dtype=self._model.dtype, device=self._device)
        buffers[key] = buffer
        return buffer[:, :, :rows]

    def _portions(self) -> list[tuple[int, int]]:
        """Ranges of distinct rows that are read in one pass: long ones alone, short ones of like length together."""
        sizes = [len(row.prompt) - row.known for row in self._distinct]
        ranges: list[tuple[int, int]] = []
        start = 0
        while start < len(sizes):
            end = start + 1
            while end < len(sizes) and sizes[end] < _ALONE and sizes[end] <= sizes[start] * 3 // 2 + 8:
                end += 1
            ranges.append((start, end))
            start = end
        return ranges

    def _read(self, start: int, end: int) -> torch.Tensor:
        """Reads the new tokens of distinct rows start..end; the logits after each one's last, (rows, vocabulary)."""
        rows = self._distinct[start:end]
        new = [row.prompt[row.known :] for row in rows]
        self.read += sum(map(len, new))
        width = max(map(len, new))
        ids = torch.tensor([[*part, *[0] * (width - len(part))] for part in new], device=self._device)
        known = torch.tensor([row.known for row in rows], device=self._device)
        hidden = self._forward(ids, known[:, None] + torch.arange(width, device=self._device), start, end)
        last = torch.tensor([len(part) - 1 for part in new], device=self._device)
        return self._logits(hidden[torch.arange(len(rows), device=self._device), last])

    def _forward(self, ids: torch.Tensor, positions: torch.Tensor, start: int, end: int) -> torch.Tensor:
        """Hidden states of tokens (rows, n) at positions (rows, n) of buffer rows start..end."""
        length = int(positions.max()) + 1
        mask = torch.arange(length, device=self._device) <= positions[:, None, :, None]
        slots = _Slots(self._buffer[:, :, start:end], positions, length)
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

    def _sample_all(self, logits: torch.Tensor) -> None:
        active = list(self._rows)  # by buffer row
        lengths = [len(row.prompt) for row in active]
        while True:
            tokens = self._sample(active, logits)
            keep = []
            for index, row in enumerate(active):
                if row.sampled[-1] not in row.stop and len(row.sampled) < row.max_tokens:
                    keep.append(index)
                elif row.keep:
                    row.state = self._buffer[:, :, index, :, : lengths[index]].clone()
            if not keep:
                return
            keep = self._close_ranks(keep, lengths)
            active, lengths, tokens = [active[i] for i in keep], [lengths[i] for i in keep], [tokens[i] for i in keep]
            ids = torch.tensor(tokens, device=self._device)[:, None]
            positions = torch.tensor(lengths, device=self._device)[:, None]
            logits = self._logits(self._forward(ids, positions, 0, len(active))[:, 0])
            lengths = [length + 1 for length in lengths]

    def _close_ranks(self, keep: list[int], lengths: list[int]) -> list[int]:
        """Moves the last of the rows to keep into the places of finished ones; which row is now in each place."""
        count = len(keep)
        order = list(range(count))
        movers = [index for index in keep if index >= count]
        free = sorted(set(order) - set(keep))
        for place, mover in zip(free, movers, strict=True):
            self._buffer[:, :, place, :, : lengths[mover]] = self._buffer[:, :, mover, :, : lengths[mover]]
            order[place] = mover
        return order

    def _sample(self, active: list[Row], logits: torch.Tensor) -> list[int]:
        """Samples one token a row by inverting its distribution at a number of the row's own stream."""
        heat = torch.tensor([row.temperature for row in active], device=self._device)
        scaled = logits / heat.clamp(min=1e-6)[:, None]
        cumulative = torch.softmax(scaled, -1).double().cumsum(-1)
        drawn = [self._random[id(row)].random() for row in active]
        point = torch.tensor(drawn, dtype=torch.float64, device=self._device)[:, None] * cumulative[:, -1:]
        sampled = torch.searchsorted(cumulative, point, right=True)[:, 0].clamp(max=self._vocabulary - 1)
        tokens = torch.where(heat == 0, logits.argmax(-1), sampled)
        log_probs = torch.log_softmax(logits, -1).gather(-1, tokens[:, None])[:, 0].tolist()
        chosen: list[int] = tokens.tolist()
        for row, token, log_prob in zip(active, chosen, log_probs, strict=True):
            row.sampled.append(token)
            row.logprobs.append(log_prob)
        return chosen
