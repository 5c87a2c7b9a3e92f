"""Task files: JSONL with one header line, checked when read.

Header: `{"format": "advsim-tasks", "version": 1, "generation": …, "count": …, "sha256": …}`; the hash is that of
all bytes after the header's line break. Then one `Task` a line.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path

from pydantic import ValidationError

from advsim.disk import write_whole
from advsim.task import Task
from benchmark_forms.registry import GENERATION

FORMAT = "advsim-tasks"
VERSION = 1
SHIPPED = {"bench": "bench-v1.jsonl", "bench-small": "bench-small-v1.jsonl"}


class TaskFileError(ValueError):
    """A task file is missing, truncated or damaged; the message is one line that names file and line."""


def shipped_path(name: str) -> Path:
    """Where a shipped benchmark lies. Raises KeyError."""
    return Path(str(files("benchmark_forms") / "data" / SHIPPED[name]))


@cache
def shipped() -> tuple[Task, ...]:
    """The tasks of all shipped benchmarks: what no training task may be. Raises TaskFileError if one is damaged."""
    return tuple(task for name in SHIPPED if shipped_path(name).exists() for task in load(name))


def load(source: str | os.PathLike[str]) -> list[Task]:
    """The tasks of a shipped benchmark (`bench`, `bench-small`) or of a file.

    Raises:
        TaskFileError: If the file cannot be read, or is not exactly what was written.
    """
    path = shipped_path(source) if isinstance(source, str) and source in SHIPPED else Path(source)
    try:
        raw = path.read_bytes()
    except OSError as e:
        raise TaskFileError(f"{path}: cannot read task file: {e.strerror or e}") from None
    return parse(raw, str(path))


def parse(raw: bytes, name: str) -> list[Task]:
    """The tasks in a file's bytes. Raises TaskFileError."""
    first, _, body = raw.partition(b"\n")
    header = _header(first, name)
    lines = body.split(b"\n")
    tasks: list[Task] = []
    for number, line in enumerate(lines, start=2):
        if number == len(lines) + 1 and not line:
            break  # what follows the last line break
        try:
            tasks.append(Task.model_validate_json(line))
        except ValidationError as e:
            problem = e.errors(include_url=False)[0]
            where = ".".join(map(str, ("task", *problem["loc"])))
            raise TaskFileError(f"{name}:{number}: not a task: {where}: {problem['msg']}") from None
    last = len(tasks) + 1
    if len(tasks) != header["count"]:
        raise TaskFileError(f"{name}:{last}: expected {header['count']} tasks by the header, found {len(tasks)}")
    if hashlib.sha256(body).hexdigest() != header["sha256"]:
        raise TaskFileError(f"{name}:1: the header's sha256 does not match lines 2 to {last}: the file was changed")
    return tasks


def _header(line: bytes, name: str) -> dict[str, object]:
    try:
        header = json.loads(line)
    except ValueError:
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise TaskFileError(f'{name}:1: not a task file: expected a header line with "format": "{FORMAT}"')
    if header.get("version") != VERSION:
        raise TaskFileError(f"{name}:1: task file version {header.get('version')!r}, this program reads {VERSION}")
    if not isinstance(header.get("count"), int) or not isinstance(header.get("sha256"), str):
        raise TaskFileError(f"{name}:1: the header lacks count or sha256")
    return header


def dump(tasks: Iterable[Task]) -> bytes:
    """A task file's bytes; equal tasks give equal bytes."""
    lines = [t.model_dump_json(exclude_defaults=True) for t in tasks]
    body = "".join(f"{line}\n" for line in lines).encode()
    header = {
        "format": FORMAT,
        "version": VERSION,
        "generation": GENERATION,
        "count": len(lines),
        "sha256": hashlib.sha256(body).hexdigest(),
    }
    return json.dumps(header).encode() + b"\n" + body


def save(path: str | os.PathLike[str], tasks: Iterable[Task]) -> None:
    """Write a task file: whole or not at all. Raises OSError."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, dump(tasks))
