"""Who plays the evaluation's cells: this process, or several of their own, from which only rows come back."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from multiprocessing.queues import Queue
from pathlib import Path

from advsim.config import RunConfig
from advsim.console import Bars
from advsim.ledger import Row
from advsim.training.console import console
from advsim.training.evaluation import Cell, play
from advsim.training.steps import RunError, RunFolder
from advsim.training.team import Team

Told = str | tuple[str, int, int, str]
"""What a process says: a line, or what `Bars.show` takes."""


@contextmanager
def players(
    run: RunFolder, team: Team, cells: Sequence[Cell], processes: int
) -> Iterator[Callable[[Cell], Awaitable[list[Row]]]]:
    """What gives a cell's rows, the same ones however many processes there are.

    Args:
        run: The run, held by this process, the only one that writes to it.
        team: Who plays in this process.
        cells: What will be asked for, in this order.
        processes: How many cells at a time; more than one are played in processes of their own, from now on.

    Yields:
        The rows of a cell. Raises what the cell raised, and RunError when its process was killed.
    """
    if min(processes, len(cells)) < 2:
        with Bars() as bars:
            yield lambda cell: play(run, team, cell, bars.show)
        return
    context = multiprocessing.get_context("spawn")  # torch's threads do not survive a fork
    told: Queue[Told] = context.Queue()
    before = set(multiprocessing.active_children())
    with _said(told), ProcessPoolExecutor(processes, context, _begin, (run.path, run.config, told)) as pool:
        futures = {cell: pool.submit(_play, cell) for cell in cells}

        async def rows(cell: Cell) -> list[Row]:
            try:
                return await asyncio.wrap_future(futures[cell])
            except BrokenProcessPool:
                raise RunError(
                    f"{run.path}: a process of the evaluation was killed, perhaps for want of memory; the finished "
                    "steps are kept, and the same command goes on (try a smaller --jobs)"
                ) from None

        try:
            yield rows
        except BaseException:
            # Nobody waits for the rest: its minutes would be in vain.
            pool.shutdown(wait=False, cancel_futures=True)
            for process in set(multiprocessing.active_children()) - before:
                process.terminate()
            raise


@contextmanager
def _said(told: Queue[Told]) -> Iterator[None]:
    """Shows what the processes say."""
    over = threading.Event()

    def listen() -> None:
        while True:
            try:
                item = told.get(timeout=0.2)
            except queue.Empty:
                if over.is_set():
                    return
                continue
            if isinstance(item, str):
                bars.say(item)
            else:
                bars.show(*item)

    with Bars() as bars:
        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(timeout=5)  # of a process that was killed, half a message can be left


@dataclass(frozen=True, slots=True)
class _Player:
    """What a process of its own plays with."""

    run: RunFolder
    team: Team
    told: Queue[Told]


_player: _Player


class _Lines(StringIO):
    """A stream whose lines are sent to the parent."""

    def __init__(self, told: Queue[Told]) -> None:
        super().__init__()
        self._told = told

    def write(self, text: str) -> int:
        if text.strip():
            self._told.put(text.rstrip("\n"))
        return len(text)


def _begin(path: Path, config: RunConfig, told: Queue[Told]) -> None:
    """Once in each process."""
    global _player  # a pool hands nothing else from here to its work
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its processes
    threading.Thread(target=_end_with_parent, daemon=True).start()
    console.file = _Lines(told)
    _player = _Player(RunFolder(path, config), Team(config), told)
    gc.freeze()  # as in `run`: what stays is not walked through again and again


def _end_with_parent() -> None:
    """A parent that is killed leaves nobody behind who holds its cores and memory."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _play(cell: Cell) -> list[Row]:
    return asyncio.run(play(_player.run, _player.team, cell, lambda *counts: _player.told.put(counts)))
