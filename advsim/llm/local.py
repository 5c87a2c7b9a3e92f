"""The engine in this process: transformers models on a CPU or GPU, batched, with key-value caches that last over turns.

Whoever waits is served together in *waves*: all waiting requests of one adapter, in the order in which they came. In a
wave each distinct prompt is read once (its remembered beginning not at all), equal prompts share the result, and then
all rows sample token by token. Everything runs in the event loop's own thread, so the waves, and with them the last
bits of the logits, depend on nothing but the requests.
"""

from __future__ import annotations

import asyncio
import copy
import time
import weakref
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from transformers import PreTrainedTokenizerBase

from advsim.agents.protocol import EngineError
from advsim.llm.engine import Completion, Memory
from advsim.llm.wave import Row, Wave

_SETTLE = 12  # rounds of the event loop without a new request before a wave starts
_MODELS = 4  # merged models kept at a time


@dataclass(slots=True)
class Stats:
    """Work since the last `reset`.

    Attributes:
        seconds: Inside waves. waves, requests: How many. sampled: Tokens generated. read: Prompt tokens computed.
        remembered: Prompt tokens that a memory or an equal prompt saved.
    """

    seconds: float = 0.0
    waves: int = 0
    requests: int = 0
    sampled: int = 0
    read: int = 0
    remembered: int = 0


@dataclass(slots=True)
class _Request:
    adapter: str | None
    row: Row
    memory: Memory | None
    future: asyncio.Future[Completion] = field(repr=False)


class LocalEngine:
    """An `Engine` over a transformers model.

    Adapters are merged into copies of the weights that they touch (the rest is shared), so a forward pass costs what
    the backbone's costs.

    Args:
        model: The plain backbone; it stays as it is.
        tokenizer: Its tokenizer.
        scale: LoRA's alpha / rank.
        max_batch: Most rows of a wave.
        memory_mb: What all memories together may hold; the oldest are forgotten first.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: PreTrainedTokenizerBase,
        *,
        scale: float = 2.0,
        max_batch: int = 64,
        memory_mb: int = 1024,
    ) -> None:
        self.stats = Stats()
        self._base = model
        self._tokenizer = tokenizer
        self._scale = scale
        self._max_batch = max_batch
        self._budget = memory_mb * 2**20
        self._adapters: dict[str, Mapping[str, torch.Tensor]] = {}
        self._merged: OrderedDict[str, Any] = OrderedDict()
        self._pending: list[_Request] = []
        self._pump_task: asyncio.Task[None] | None = None
        self._memories: OrderedDict[int, weakref.ref[Memory]] = OrderedDict()
        self._buffer: dict[str, torch.Tensor] = {}
        self._stop = _end_ids(model, tokenizer)

    def add(self, name: str, tensors: Mapping[str, torch.Tensor]) -> None:
        """Makes an adapter known by name, or gives the name new weights. Names of checkpoints avoid stale ones."""
        self._adapters[name] = tensors
        self._merged.pop(name, None)

    def forget(self) -> None:
        """Drops all that earlier requests left: a step that begins so does not depend on the step before."""
        for reference in self._memories.values():
            memory = reference()
            if memory is not None:
                memory.state, memory.ids = None, ()
        self._memories.clear()
        self._buffer.clear()

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
        """See `Engine.generate`."""
        if adapter is not None and adapter not in self._adapters:
            raise KeyError(
                f"adapter {adapter!r} is not known to the engine; known: {', '.join(self._adapters) or 'none'}"
            )
        if not token_ids or max_tokens < 1:
            raise ValueError(f"expected a prompt and max_tokens >= 1, got {len(token_ids)} tokens and {max_tokens}")
        row = Row(tuple(token_ids), max_tokens, temperature, seed, self._stop | set(stop), memory is not None)
        future: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        self._pending.append(_Request(adapter, row, memory, future))
        if self._pump_task is None or self._pump_task.done():
            self._pump_task = asyncio.create_task(self._pump())
        return await future

    async def _pump(self) -> None:
        while self._pending:
            quiet = 0
            while quiet < _SETTLE and len(self._pending) < self._max_batch:
                before = len(self._pending)
                await asyncio.sleep(0)
                quiet = quiet + 1 if len(self._pending) == before else 0
            self._pending = [request for request in self._pending if not request.future.done()]  # cancelled ones
            if not self._pending:
                return
            adapter = self._pending[0].adapter
            wave = [request for request in self._pending if request.adapter == adapter][: self._max_batch]
            chosen = {id(request) for request in wave}
            self._pending = [request for request in self._pending if id(request) not in chosen]
            self._serve(adapter, wave)

    def _serve(self, adapter: str | None, wave: list[_Request]) -> None:
        began = time.perf_counter()
        try:
            self._run(adapter, wave)
        except torch.OutOfMemoryError as failure:
            reason = str(failure).partition("\n")[0]
            for request in wave:
                request.future.set_exception(EngineError(f"out of memory in a batch of {len(wave)}: {reason}"))
        except Exception as defect:  # handed to whoever waits: they would wait for ever otherwise
            for request in wave:
                if not request.future.done():
                    request.future.set_exception(defect)
        self.stats.seconds += time.perf_counter() - began
        self.stats.waves += 1
        self.stats.requests += len(wave)

    @torch.inference_mode()
    def _run(self, adapter: str | None, requests: list[_Request]) -> None:
        for request in requests:
            memory = request.memory
            if memory is not None and memory.state is not None and memory.adapter == adapter:
                request.row.known = _common(memory.ids, request.row.prompt)
                request.row.state = memory.state
        wave = Wave(self._model(adapter), [request.row for request in requests], self._buffer, len(self._tokenizer))
        wave.run()
        self.stats.read += wave.read
        self.stats.remembered += sum(len(request.row.prompt) for request in requests) - wave.read
        for request in requests:
            row = request.row
            self.stats.sampled += len(row.sampled)
            if request.memory is not None:
                self._remember(request.memory, adapter, row)
            ended = row.sampled[-1] in row.stop
            shown = row.sampled[:-1] if ended else row.sampled
            text = self._tokenizer.decode(shown, skip_special_tokens=True)
            assert isinstance(text, str)
            completion = Completion(tuple(row.sampled), tuple(row.logprobs), text, "stop" if ended else "length")
            if not request.future.done():
                request.future.set_result(completion)

    def _remember(self, memory: Memory, adapter: str | None, row: Row) -> None:
        memory.ids = (*row.prompt, *row.sampled[:-1])  # the last token was sampled but never read
        memory.state, memory.adapter = row.state, adapter
        self._memories.pop(id(memory), None)
        self._memories[id(memory)] = weakref.ref(memory)
        alive = [(key, held) for key, reference in self._memories.items() if (held := reference()) is not None]
        self._memories = OrderedDict((key, weakref.ref(held)) for key, held in alive)
        total = sum(held.state.nbytes for _, held in alive if held.state is not None)
        for key, held in alive:
            if total <= self._budget:
                break
            total -= held.state.nbytes if held.state is not None else 0
            held.state, held.ids = None, ()
            del self._memories[key]

    def _model(self, adapter: str | None) -> Any:
        if adapter is None:
            return self._base
        if adapter not in self._merged:
            self._merged[adapter] = merge(self._base, self._adapters[adapter], self._scale)
            while len(self._merged) > _MODELS:
                self._merged.popitem(last=False)
        self._merged.move_to_end(adapter)
        return self._merged[adapter]


def merge(base: Any, tensors: Mapping[str, torch.Tensor], scale: float) -> Any:
    """A copy of the model with an adapter merged in: W + scale · B A. Weights without an adapter are shared."""
    deltas: dict[str, torch.Tensor] = {}
    for key, down in tensors.items():
        if key.endswith(".lora_A.weight"):
            stem = key.removesuffix(".lora_A.weight")
            up = tensors[f"{stem}.lora_B.weight"]
            deltas[stem.removeprefix("base_model.model.") + ".weight"] = scale * (up.float() @ down.float())
    shared = dict(base.named_parameters(remove_duplicate=False)) | dict(base.named_buffers(remove_duplicate=False))
    missing = deltas.keys() - shared.keys()
    if missing:
        raise ValueError(f"the adapter changes weights that the backbone lacks, such as {min(missing)}")
    touched = {id(shared[name]) for name in deltas}
    memo = {id(tensor): tensor for tensor in shared.values() if id(tensor) not in touched}
    model = copy.deepcopy(base, memo)
    weights = dict(model.named_parameters())
    with torch.no_grad():
        for name, delta in deltas.items():
            weights[name].add_(delta.to(weights[name].device, weights[name].dtype))
    return model.eval()


def _end_ids(model: Any, tokenizer: PreTrainedTokenizerBase) -> set[int]:
    """Every id that the model or its tokenizer says ends a turn."""
    ends = model.generation_config.eos_token_id if model.generation_config is not None else None
    found = {ends} if isinstance(ends, int) else set(ends or ())
    return found | ({tokenizer.eos_token_id} if isinstance(tokenizer.eos_token_id, int) else set())


def _common(old: Sequence[int], new: Sequence[int]) -> int:
    """Length of the common beginning, less one if it is all of `new`: the last token must be read for its logits."""
    limit = min(len(old), len(new) - 1)
    if old[:limit] == new[:limit]:
        return limit
    return next(i for i in range(limit) if old[i] != new[i])
