"""The engine in this process: transformers models on a CPU or GPU, batched, with key-value caches that last over turns.

Batching is continuous: between two tokens requests that came meanwhile join the rows that sample already, and rows that
are done leave. Each adapter has a batch of its own; the one that can fill its passes best goes on. Each distinct prompt
is read once (its remembered beginning not at all).

Everything runs in the event loop's own thread, and no clock decides who samples together, so the batches, and with them
the last bits of the logits, depend on nothing but the requests. Where answers take real time (a browser's), a `Crowd`
keeps it so: the engine then waits until everyone waits for it.
"""

from __future__ import annotations

import asyncio
import copy
import time
import weakref
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from transformers import PreTrainedTokenizerBase

from advsim.agents.protocol import Crowd, EngineError
from advsim.llm.batch import Batch, Row
from advsim.llm.engine import Completion, Memory, Stats

_SETTLE = 12  # rounds of the event loop without a new request before the next token
_PATIENCE_S = 5.0  # how long a crowd is waited for after its last request
_POLL_S = 0.002
_WORTH = 4  # requests join when they are at least one to so many rows that sample already
_MODELS = 4  # merged models kept at a time


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
        max_batch: Most rows of a batch.
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
        self._batches: dict[str | None, Batch] = {}  # those with rows
        self._serving: dict[int, _Request] = {}  # by row
        self._current: str | None = None  # whose batch went on last
        self._crowd: Crowd | None = None
        self._answered = True  # whether anyone was since the event loop last settled
        self._pump_task: asyncio.Task[None] | None = None
        self._memories: OrderedDict[int, weakref.ref[Memory]] = OrderedDict()
        self._spare: list[torch.Tensor] = []  # buffers of batches that ended
        self._stop = _end_ids(model, tokenizer)

    def add(self, name: str, tensors: Mapping[str, torch.Tensor]) -> None:
        """Makes an adapter known by name, or gives the name new weights. Names of checkpoints avoid stale ones."""
        self._adapters[name] = tensors
        self._merged.pop(name, None)

    def forget(self) -> None:
        """Drops all that earlier requests left: a step that begins so does not depend on the step before.

        Buffers stay, since new ones cost as much as many tokens; how large one is and what it held changes no result.
        """
        for reference in self._memories.values():
            memory = reference()
            if memory is not None:
                memory.state, memory.ids = None, ()
        self._memories.clear()

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

    @contextmanager
    def together(self, crowd: Crowd) -> Iterator[None]:
        """Until the end of the block, serve only when all of the crowd wait, and then all of them.

        Worlds whose answers take real time would otherwise decide by chance who samples together, and with few
        episodes nearly everyone would sample alone. Who keeps the others waiting for too long is not waited for.
        """
        self._crowd = crowd
        try:
            yield
        finally:
            self._crowd = None

    async def _pump(self) -> None:
        while self._pending or self._batches:
            crowd = self._crowd
            await (self._settle() if crowd is None else self._assemble(crowd))
            self._pending = [request for request in self._pending if not request.future.done()]  # cancelled ones
            while self._pending or self._batches:
                self._turn()
                if crowd is None:
                    break

    async def _settle(self) -> None:
        """Lets everyone who can ask now do so. While nobody was answered nobody has more to ask, and one round does."""
        quiet = 0 if self._answered else _SETTLE - 1
        self._answered = False
        while quiet < _SETTLE:
            before = len(self._pending)
            await asyncio.sleep(0)
            quiet = quiet + 1 if len(self._pending) == before else 0

    async def _assemble(self, crowd: Crowd) -> None:
        """Waits until all of a crowd wait."""
        await self._settle()
        clock = asyncio.get_running_loop().time
        before, since = len(self._pending), clock()
        while len(self._pending) < crowd.present and clock() < since + _PATIENCE_S:
            await asyncio.sleep(_POLL_S)
            if len(self._pending) != before:
                before, since = len(self._pending), clock()

    def _turn(self) -> None:
        """Lets waiting requests join a batch, or a batch sample its next token."""
        waiting: dict[str | None, list[_Request]] = {}
        for request in self._pending:
            waiting.setdefault(request.adapter, []).append(request)
        adapter = self._choose(waiting)
        size = len(self._batches.get(adapter, ()))
        joining = waiting.get(adapter, [])[: self._max_batch - size]
        if len(joining) * _WORTH < size:
            joining = []  # reading for a few would hold up many
        chosen = {id(request) for request in joining}
        self._pending = [request for request in self._pending if id(request) not in chosen]
        self._serving |= {id(request.row): request for request in joining}
        began = time.perf_counter()
        try:
            self._advance(adapter, joining)
        except torch.OutOfMemoryError as failure:
            reason = str(failure).partition("\n")[0]
            self._fail(adapter, EngineError(f"out of memory in a batch of {size + len(joining)}: {reason}"))
        except Exception as defect:  # handed to whoever waits: they would wait for ever otherwise
            self._fail(adapter, defect)
        self.stats.seconds += time.perf_counter() - began

    def _choose(self, waiting: Mapping[str | None, Sequence[_Request]]) -> str | None:
        """Whose turn it is: the present adapter's, until another one could fill twice as many rows."""
        demand = {adapter: len(batch) for adapter, batch in self._batches.items()}
        for adapter, requests in waiting.items():
            demand[adapter] = min(demand.get(adapter, 0) + len(requests), self._max_batch)
        largest = max(demand, key=demand.__getitem__)
        if 2 * demand.get(self._current, 0) < demand[largest] or self._current not in demand:
            self._current = largest
        return self._current

    @torch.inference_mode()
    def _advance(self, adapter: str | None, joining: Sequence[_Request]) -> None:
        batch = self._batches.get(adapter)
        if batch is None:
            spare = self._spare.pop() if self._spare else None
            batch = self._batches[adapter] = Batch(self._model(adapter), len(self._tokenizer), spare, self._max_batch)
        before = batch.read
        if joining:
            for request in joining:
                memory = request.memory
                if memory is not None and memory.state is not None and memory.adapter == adapter:
                    request.row.known = _common(memory.ids, request.row.prompt)
                    request.row.state = memory.state
            done = batch.join([request.row for request in joining])
            self.stats.requests += len(joining)
            self.stats.sampled += len(joining)
            self.stats.read += batch.read - before
            self.stats.remembered += sum(len(request.row.prompt) for request in joining) - (batch.read - before)
        else:
            self.stats.sampled += len(batch)
            done = batch.step()
        self.stats.passes += 1
        for row in done:
            self._finish(self._serving.pop(id(row)))
        if not batch:
            del self._batches[adapter]
            if batch.buffer is not None:
                self._spare.append(batch.buffer)

    def _finish(self, request: _Request) -> None:
        row = request.row
        if request.memory is not None:
            self._remember(request.memory, request.adapter, row)
        ended = row.sampled[-1] in row.stop
        text = self._tokenizer.decode(row.sampled[:-1] if ended else row.sampled, skip_special_tokens=True)
        assert isinstance(text, str)
        if not request.future.done():
            finish: Literal["stop", "length"] = "stop" if ended else "length"
            self._answered = True
            request.future.set_result(Completion(tuple(row.sampled), tuple(row.logprobs), text, finish))

    def _fail(self, adapter: str | None, error: Exception) -> None:
        """Ends a batch: all of its rows fail."""
        self._batches.pop(adapter, None)
        for key, request in list(self._serving.items()):
            if request.adapter == adapter:
                del self._serving[key]
                self._answered = True
                if not request.future.done():
                    request.future.set_exception(error)

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


def check_fit(base: Any, tensors: Mapping[str, torch.Tensor]) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """The pairs (B, A) of an adapter by the name of the weight that they change.

    Raises:
        ValueError: The adapter is of another model.
    """
    pairs = {}
    for key, down in tensors.items():
        if key.endswith(".lora_A.weight"):
            stem = key.removesuffix(".lora_A.weight")
            up = tensors.get(f"{stem}.lora_B.weight")
            if up is None:
                raise ValueError(f"the adapter has {key} but no {stem}.lora_B.weight")
            pairs[stem.removeprefix("base_model.model.") + ".weight"] = (up, down)
    weights = dict(base.named_parameters(remove_duplicate=False))
    for name, (up, down) in sorted(pairs.items()):
        if name not in weights:
            raise ValueError(f"the adapter changes weights that the backbone lacks, such as {name}")
        if weights[name].shape != (up.shape[0], down.shape[1]) or up.shape[1] != down.shape[0]:
            raise ValueError(f"the adapter is of a model of other sizes, as of {name}")
    return pairs


def merge(base: Any, tensors: Mapping[str, torch.Tensor], scale: float) -> Any:
    """A copy of the model with an adapter merged in: W + scale · B A. Weights without an adapter are shared."""
    deltas = {name: scale * (up.float() @ down.float()) for name, (up, down) in check_fit(base, tensors).items()}
    shared = dict(base.named_parameters(remove_duplicate=False)) | dict(base.named_buffers(remove_duplicate=False))
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
