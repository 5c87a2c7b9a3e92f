"""A run as a folder of named steps: each is done once, whole or not at all, and is skipped when it is there.

- `manifest.json`: the configuration, its hash, and the versions and weights that the run began with.
- `steps/<name>/`: what a step left, and `files.json` with the SHA-256 of each of its files and of its part of the
  ledger. It is written beside and renamed into place, so a killed run goes on with the first step that is missing;
  what a step reads is only the configuration and earlier steps, so it does the same again. One that has lost files
  is refused, not used.
- `ledger/`: every rollout; a step writes its own part before its folder appears.
- `adapters/<checkpoint>/`: the policies after each round. `progress.jsonl`: seconds, of no consequence.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import filelock

from advsim import __version__
from advsim.config import RunConfig, parse
from advsim.ledger import Ledger, Row

_FILES = "files.json"
_LIBRARIES = ("torch", "transformers", "peft", "trl", "numpy")


class RunError(RuntimeError):
    """A run's folder cannot be used: one line that says why and what to do."""


class RunFolder:
    """One run's folder, held by this process (`open_run`).

    Attributes:
        path: The folder. config: The run's configuration. ledger: Its ledger.
    """

    def __init__(self, path: Path, config: RunConfig) -> None:
        self.path = path
        self.config = config
        self.ledger = Ledger(path / "ledger")
        self._parts: list[str] = []  # of the ledger, by the step at work

    @property
    def scratch(self) -> Path:
        """Where temporary folders belong: what a killed process leaves there as `.*.tmp` is removed by `open_run`."""
        return self.path / "steps"

    def done(self, name: str) -> bool:
        """Whether a step was finished."""
        return (self.path / "steps" / name).is_dir()

    def folder(self, name: str) -> Path:
        """A finished step's folder."""
        return self.path / "steps" / name

    async def step(self, name: str, work: Callable[[Path], Awaitable[None]]) -> Path:
        """Does a step unless it is done.

        Args:
            name: Unique in the run.
            work: Writes the step's artifacts into the folder that it is given.

        Returns:
            The finished step's folder.
        """
        target = self.folder(name)
        if target.is_dir():
            return target
        draft = target.with_name(f".{name}.tmp")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        self._parts = []
        await work(draft)
        files = [self.ledger.path / kind / f"{part}.parquet" for part in self._parts for kind in ("rollouts", "pages")]
        rows = {os.path.relpath(file, target): _sha256(file) for file in files}
        write_json(draft / _FILES, contents(draft) | rows)
        commit(draft, target)
        return target

    def write_rows(self, name: str, rows: list[Row]) -> None:
        """Writes a step's part of the ledger; done again, it takes the place of the one before."""
        if rows:
            self.ledger.write(rows, name)
            self._parts.append(name)

    def note(self, **values: Any) -> None:
        """Adds a line to `progress.jsonl`, for people and for `speed`; no later step reads it."""
        with open(self.path / "progress.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps({"at": round(time.time(), 1), **values}) + "\n")


def commit(draft: Path, target: Path) -> None:
    """Makes a folder appear under its name, whole, also after a power failure."""
    for file in [*draft.rglob("*"), draft]:
        _sync(file)
    if target.exists():
        shutil.rmtree(target)
    os.rename(draft, target)
    _sync(target.parent)


def contents(folder: Path) -> dict[str, str]:
    """SHA-256 (hex) of each file below a folder, by its path from there."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    return {str(file.relative_to(folder)): _sha256(file) for file in files}


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _check_step(folder: Path) -> None:
    """Raises RunError when a finished step has not the files any more that it left."""
    wanted: dict[str, str] = read_json(folder / _FILES)
    for name, digest in wanted.items():
        file = Path(os.path.normpath(folder / name))
        what = "missing" if not file.is_file() else "not as the step left it" if _sha256(file) != digest else ""
        if what:
            raise RunError(
                f"{file}: {what}; restore it from a copy, or delete the folder {folder} and the steps after "
                "it, then run the same command again"
            )


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_json(path: Path, value: Any) -> None:
    """Writes JSON that is the same for the same value."""
    path.write_text(json.dumps(value, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """Reads what `write_json` wrote. Raises RunError when it is damaged."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(
            f"{path}: cannot be read ({' '.join(str(error).split())[:120]}); delete the folder {path.parent} and the "
            "steps after it, then run the same command again"
        ) from error


@contextmanager
def open_run(path: Path, config: RunConfig, weights: str) -> Iterator[RunFolder]:
    """Takes a run's folder for this process, new or begun before.

    Args:
        path: The folder.
        config: The run's configuration.
        weights: Hash of the backbone.

    Raises:
        RunError: Another process holds it, it was begun with another configuration, backbone or version, or a
            finished step has lost files.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{path}: cannot be a run's folder: {error.strerror}") from error
    lock = filelock.FileLock(path / ".lock")
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise RunError(
            f"{path}: another process is working in this folder; wait for it, or choose another --out"
        ) from None
    try:
        _check_manifest(path, config, weights)
        for kind in ("steps", "adapters"):
            for stale in (path / kind).glob(".*.tmp"):
                shutil.rmtree(stale)
        for step in sorted((path / "steps").glob("[!.]*")):
            _check_step(step)
        yield RunFolder(path, config)
    finally:
        lock.release()


def manifest(config: RunConfig, weights: str) -> dict[str, Any]:
    """What a run's result depends on."""
    return {
        "config": config.model_dump(mode="json"),
        "config_hash": config.hash,
        "seed": config.seed,
        "backbone": weights,
        "versions": {
            "advsim": __version__,
            "python": platform.python_version(),
            **{name: _version(name) for name in _LIBRARIES},
        },
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"


def _check_manifest(path: Path, config: RunConfig, weights: str) -> None:
    file = path / "manifest.json"
    mine = manifest(config, weights)
    if not file.exists():
        if any((path / "steps").glob("*")):
            raise RunError(f"{path}: holds steps but no manifest.json; choose another --out")
        draft = file.with_suffix(".tmp")
        draft.write_text(json.dumps(mine, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        _sync(draft)
        os.rename(draft, file)
        return
    found = read_json(file)
    if not isinstance(found, dict) or mine.keys() - found.keys():
        raise RunError(f"{file}: is no manifest of a run; choose another --out")
    if found["config_hash"] != mine["config_hash"]:
        try:
            lines = parse(found["config"]).difference(config)
        except ValueError:  # begun by a version whose configuration had other keys
            lines = ["its keys"]
        raise RunError(
            f"{path}: was begun with another configuration ({'; '.join(lines)}); choose another --out, or the "
            "same settings"
        )
    for what in ("backbone", "versions"):
        if found[what] != mine[what]:
            raise RunError(
                f"{path}: was begun with another {what.removesuffix('s')} ({found[what]} -> {mine[what]}), with "
                "which it would not end alike; choose another --out"
            )
