"""What the command line says: one clear line for what went wrong, tables, and a progress bar on long work."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from advsim.report.tables import Cell
    from advsim.rollout import Episode


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


@contextmanager
def progress(title: str) -> Iterator[Callable[[int, int, Episode], None]]:
    """A bar on standard error, with the time left and errors so far; nothing when that is no terminal.

    Yields:
        The callback for `rollout.run_many`.
    """
    if not sys.stderr.isatty():
        yield lambda done, total, episode: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[errors]}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=None, errors="")
        failed = 0

        def update(done: int, total: int, episode: Episode) -> None:
            nonlocal failed
            failed += episode.trajectory.error is not None
            bar.update(task, completed=done, total=total, errors=f"{failed} errors" if failed else "")

        yield update


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
