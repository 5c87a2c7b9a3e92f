"""The ledger: every rollout of a run with its provenance, as Parquet; each page stored once.

Layout of a ledger folder, one file of each kind a *part* (what one `write` was given):

- `rollouts/<part>.parquet`: one row a rollout, columns of `Row`; `pages` holds SHA-256 hashes.
- `pages/<part>.parquet`: `hash`, `text` of the pages that no other part holds.
- `timings/<part>.parquet`: `wall_s`, in the order of the part's rows, and the part's place in the order of writing.
  They are kept apart because two runs that are equal in everything else differ in them: `rollouts` and `pages` are
  equal bit for bit.

A part appears whole or not at all: its pages and timings are put in place first, its rollouts last, each by writing a
temporary file, syncing it and renaming it.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import filelock
import pyarrow as pa
import pyarrow.parquet as pq

from advsim.disk import write_whole
from advsim.row import PAGES, SCHEMA, SCHEMA_VERSION, TIMINGS, Row, flatten, page_hash, restore

__all__ = ["SCHEMA", "Ledger", "LedgerError", "Row", "page_hash"]

_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_KINDS = ("pages", "timings", "rollouts")  # in the order of writing
_PLACE = b"advsim.place"  # in the metadata of `timings`: 1 for the part that was written first, and so on


class LedgerError(RuntimeError):
    """A ledger cannot be written or read: one line that says where, why and what to do."""


class Ledger:
    """A ledger folder. Reading needs no lock; writers in several processes wait for each other.

    Args:
        path: The folder; made by the first `write`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._hashes: dict[tuple[str, int, int], frozenset[str]] = {}

    # --- writing -----------------------------------------------------------------------------------------------

    def write(self, rows: Iterable[Row], part: str | None = None) -> Path:
        """Add rows as one part, whole or not at all.

        Args:
            rows: What to store.
            part: The part's name. A part of this name is replaced, so a step that is done again after a crash leaves
                what an uninterrupted run leaves. Without a name: the next free number.

        Returns:
            The part's rollout file.

        Raises:
            LedgerError: No space, no permission, another writer, or a part that has lost its files; what was there
                before is untouched.
            ValueError: The part's name is not a plain file name.
        """
        if part is not None and not _PART.fullmatch(part):
            raise ValueError(f"a part's name is letters, digits, '.', '_' and '-', got {part!r}")
        records = list(rows)
        texts: dict[str, str] = {}
        values = [flatten(row, texts) for row in records]
        try:
            for kind in _KINDS:
                (self.path / kind).mkdir(parents=True, exist_ok=True)
            with filelock.FileLock(self.path / ".lock", timeout=60):
                for kind in _KINDS:  # under the lock nobody is writing: these were left by a writer that was killed
                    for stale in (self.path / kind).glob(".*.parquet.*.tmp"):
                        stale.unlink()
                name = part or self._next_number()
                place = max(map(self._place, self.parts()), default=0) + 1
                elsewhere, own = self._stored(name)
                # A replaced part keeps its pages: parts after it may point to them.
                new = sorted((texts.keys() | own) - elsewhere)
                kept = self._texts([name]) if own - texts.keys() else {}
                pages = [{"hash": key, "text": texts[key] if key in texts else kept[key]} for key in new]
                self._put("pages", name, pa.Table.from_pylist(pages, PAGES))
                timings = [{"wall_s": row.wall_s} for row in records]
                schema = TIMINGS.with_metadata({**TIMINGS.metadata, _PLACE: str(place)})
                self._put("timings", name, pa.Table.from_pylist(timings, schema))
                return self._put("rollouts", name, pa.Table.from_pylist(values, SCHEMA))
        except filelock.Timeout:
            raise LedgerError(
                f"ledger {self.path}: another process has been writing for a minute; nothing written"
            ) from None
        except OSError as failure:
            reason = os.strerror(failure.errno) if failure.errno else str(failure)
            raise LedgerError(
                f"ledger {self.path}: cannot write ({reason}); what was stored before is untouched: "
                "free the space or fix the folder, then run the same command again"
            ) from failure

    def _next_number(self) -> str:
        numbers = [int(name) for name in self.parts() if name.isdigit()]
        return f"{max(numbers, default=0) + 1:05d}"

    def _stored(self, part: str) -> tuple[set[str], set[str]]:
        """Hashes of the pages in all other parts, and in this part.

        Pages without rollouts were left by a writer that was killed in between: they are written again with their part.
        """
        elsewhere: set[str] = set()
        own: set[str] = set()
        for name in self.parts():
            file = self.path / "pages" / f"{name}.parquet"
            if not file.is_file():
                raise LedgerError(
                    f"ledger {self.path}: part {name} has lost its pages ({file} is missing), nothing written; restore "
                    f"this file from a copy, or delete {self.path / 'rollouts' / file.name} and run what wrote it again"
                )
            stat = file.stat()
            key = (file.stem, stat.st_mtime_ns, stat.st_size)
            if key not in self._hashes:
                self._hashes[key] = frozenset(_load(file, ["hash"])["hash"].to_pylist())
            (own if file.stem == part else elsewhere).update(self._hashes[key])
        return elsewhere, own

    def _put(self, kind: str, part: str, table: pa.Table) -> Path:
        target = self.path / kind / f"{part}.parquet"
        buffer = pa.BufferOutputStream()
        pq.write_table(table, buffer, compression="zstd", write_page_checksum=True)
        write_whole(target, memoryview(buffer.getvalue()))
        return target

    # --- reading -----------------------------------------------------------------------------------------------

    def parts(self) -> list[str]:
        """Names of the parts, sorted. Temporary files that a killed writer left are not among them."""
        folder = self.path / "rollouts"
        return sorted(file.stem for file in folder.glob("*.parquet") if not file.name.startswith("."))

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rollouts, in the order in which the parts were written.

        Args:
            columns: Names from `SCHEMA`; all without it.

        Raises:
            LedgerError: There is no ledger, or a part is damaged or of another version.
        """
        names = self._in_order()
        if not names:
            raise self._none()
        chosen = list(columns) if columns is not None else SCHEMA.names
        tables = [_load(self.path / "rollouts" / f"{name}.parquet", chosen) for name in names]
        return pa.concat_tables(tables)

    def rows(self) -> Iterator[Row]:
        """All rollouts as rows with their pages' texts; raises LedgerError as `table` does."""
        texts = self._texts(self.parts())
        if not self.parts():
            raise self._none()
        for name in self._in_order():
            table = _load(self.path / "rollouts" / f"{name}.parquet", SCHEMA.names)
            for record, wall_s in zip(table.to_pylist(), self._seconds(name), strict=True):
                try:
                    yield restore(record, texts, wall_s)
                except KeyError as missing:
                    raise LedgerError(
                        f"{self.path}: part {name} points to a page that is not stored: {missing}"
                    ) from None

    def seconds(self) -> list[float]:
        """`wall_s` of all rollouts, in the order of `table`."""
        return [wall_s for name in self._in_order() for wall_s in self._seconds(name)]

    def digest(self) -> str:
        """SHA-256 (hex) of rollouts and pages, names and bytes: equal for ledgers that are equal bit for bit."""
        total = hashlib.sha256()
        for kind in ("rollouts", "pages"):
            for name in self.parts():
                total.update(f"{kind}/{name}\n".encode())
                total.update(hashlib.sha256((self.path / kind / f"{name}.parquet").read_bytes()).digest())
        return total.hexdigest()

    def _in_order(self) -> list[str]:
        """The parts, those last that were written last: where an episode was run twice, the later one counts."""
        return sorted(self.parts(), key=lambda name: (self._place(name), name))

    def _place(self, part: str) -> int:
        return int(_metadata(self.path / "timings" / f"{part}.parquet").get(_PLACE, b"0"))

    def _seconds(self, part: str) -> list[float]:
        seconds: list[float] = _load(self.path / "timings" / f"{part}.parquet", ["wall_s"])["wall_s"].to_pylist()
        return seconds

    def _none(self) -> LedgerError:
        return LedgerError(f"{self.path}: no ledger here (expected {self.path / 'rollouts'} with Parquet parts)")

    def _texts(self, parts: Iterable[str]) -> dict[str, str]:
        texts: dict[str, str] = {}
        for name in parts:
            file = self.path / "pages" / f"{name}.parquet"
            table = _load(file, ["hash", "text"])
            for key, text in zip(table["hash"].to_pylist(), table["text"].to_pylist(), strict=True):
                if page_hash(text) != key:
                    raise LedgerError(f"{file}: damaged, a page does not have its hash; restore this file from a copy")
                texts[key] = text
        return texts


def _load(file: Path, columns: Sequence[str]) -> pa.Table:
    _metadata(file)
    try:
        return pq.read_table(file, columns=list(columns), page_checksum_verification=True, partitioning=None)
    except (pa.ArrowException, OSError) as failure:
        raise _unreadable(file, failure) from failure


def _metadata(file: Path) -> dict[bytes, bytes]:
    try:
        metadata: dict[bytes, bytes] = pq.read_schema(file).metadata or {}
    except (pa.ArrowException, OSError) as failure:
        raise _unreadable(file, failure) from failure
    version = metadata.get(b"advsim.ledger", b"none").decode()
    if version != str(SCHEMA_VERSION):
        raise LedgerError(f"{file}: ledger schema {version}, this AdvSim reads schema {SCHEMA_VERSION}")
    return metadata


def _unreadable(file: Path, failure: Exception) -> LedgerError:
    reason = str(failure).strip().partition("\n")[0][:200]
    rollouts = file.parent.parent / "rollouts" / file.name
    return LedgerError(
        f"{file}: cannot be read ({reason}); restore it from a copy, or delete "
        f"{'it' if rollouts == file else rollouts} and run the step that wrote it again"
    )
