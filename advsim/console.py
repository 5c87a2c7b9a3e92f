"""What the command line says: one clear line for what went wrong, tables, and a progress bar on long work."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from advsim.report.tables import Cell
    from advsim.rollout import Finished


class UsageError(Exception):
    """What was asked for cannot be done as asked: exit code 2, one line."""


class Failure(Exception):
    """What was asked for was tried and failed: exit code 1, one line."""


def complain(message: str) -> None:
    """One line on standard error, whatever the message holds."""
    print(f"advsim: {printable(' '.join(message.split()))}", file=sys.stderr)


def printable(text: str) -> str:
    """Text without what a terminal could take for a command: names and goals may come from anybody."""
    return "".join(c if c.isprintable() or c in "\n\t" else "�" for c in text)


class Bars:
    """Bars on standard error, each with the time left and a note; none where that is no terminal."""

    def __enter__(self) -> Bars:
        self._progress: Progress | None = None  # while there is a bar
        self._bars: dict[str, TaskID] = {}
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def show(self, title: str, done: int, total: int, note: str = "") -> None:
        """Moves the bar of this title; the first call adds it, the last one takes it away."""
        if not sys.stderr.isatty():
            return
        if self._progress is None:
            self._progress = _bars()
            self._progress.start()
        if title not in self._bars:
            self._bars[title] = self._progress.add_task(title, total=None, note="")
        self._progress.update(self._bars[title], completed=done, total=total, note=note)
        if done == total:
            self._progress.remove_task(self._bars.pop(title))
        if not self._bars:
            self._progress.stop()
            self._progress = None

    def say(self, text: str) -> None:
        """Writes text above the bars."""
        if self._progress is None:
            print(text, file=sys.stderr, flush=True)
        else:
            self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)


def _bars() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        console=Console(stderr=True),
        transient=True,
    )


def counting(
    title: str, show: Callable[[str, int, int, str], None], sampled: Callable[[], int] | None = None
) -> Callable[[int, int, Finished], None]:
    """The callback for `rollout.run_many` that moves a bar.

    Args:
        title: The bar's.
        show: `Bars.show`, or what takes the same.
        sampled: Tokens sampled by now, where a model plays.
    """
    began, before, failed = time.perf_counter(), sampled() if sampled is not None else 0, 0

    def update(done: int, total: int, finished: Finished) -> None:
        nonlocal failed
        failed += finished.error is not None
        notes = [f"{failed} errors"] if failed else []
        if sampled is not None:
            notes.insert(0, f"{(sampled() - before) / (time.perf_counter() - began):,.0f} tokens/s")
        show(title, done, total, "  ".join(notes))

    return update


@contextmanager
def progress(title: str, sampled: Callable[[], int] | None = None) -> Iterator[Callable[[int, int, Finished], None]]:
    """A bar of its own for episodes; yields the callback for `rollout.run_many`. `sampled` is as in `counting`."""
    with Bars() as bars:
        yield counting(title, bars.show, sampled)


def show_cells(cells: Sequence[Cell], title: str = "", *, markdown: bool = False) -> None:
    """The table of results on standard output, or the same as Markdown text."""
    columns = ["executor", "world", "attacker"]
    columns += ["tasks"] if len({cell.tasks for cell in cells}) > 1 else []
    columns += ["max_actions"] if len({cell.max_actions for cell in cells}) > 1 else []
    columns += ["stratum"] if any(cell.stratum for cell in cells) else []
    heads = [column.replace("_", " ") for column in columns]
    heads += ["n", "errors", "strict %", "correct fields", "attack success %", "hijack begun %"]
    lines = [
        [
            *(str(getattr(cell, column)) for column in columns),
            str(cell.n),
            str(cell.errors),
            _rate(cell.strict, cell.strict_interval),
            f"{cell.correct_fields} of {cell.target_fields}",
            _rate(cell.attack_success, cell.attack_success_interval)
            + (f" of {cell.attacked}" if cell.attacked else ""),
            _rate(cell.followed),
        ]
        for cell in cells
    ]
    if markdown:
        print(f"| {' | '.join(heads)} |\n|{'---|' * len(columns)}{'--:|' * 6}")
        for line in lines:
            print(f"| {' | '.join(text.replace('|', chr(92) + '|') for text in line)} |")
    else:
        show(heads, lines, title, numbers=6)


def show(heads: Sequence[str], lines: Sequence[Sequence[str]], title: str = "", numbers: int = 0) -> None:
    """A table on standard output; the last `numbers` columns are set to the right. Texts are never read as markup."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title) if title else None, title_justify="left", box=box.SIMPLE_HEAD)
    for index, head in enumerate(heads):
        table.add_column(Text(head), justify="right" if index >= len(heads) - numbers else "left", overflow="fold")
    for line in lines:
        table.add_row(*(Text(printable(text)) for text in line))
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def _rate(value: float | None, interval: tuple[float, float] | None = None) -> str:
    if value is None:
        return "–"
    return f"{100 * value:.1f}" + (f" [{100 * interval[0]:.1f}, {100 * interval[1]:.1f}]" if interval else "")
