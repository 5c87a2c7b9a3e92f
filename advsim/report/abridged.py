"""A run's ledger, abridged to what results need: one small Parquet file, to be published beside them.

Its columns are `tables.Rollout`'s but the seconds; texts (goals, pages, completions) stay in the ledger, whose digest
the file names. Results are the same, byte for byte, from a study's ledgers and from these.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from advsim.disk import write_whole
from advsim.ledger import SCHEMA, LedgerError
from advsim.report.tables import Rollout

VERSION = "1"
_OWN = {"targeted": pa.bool_(), "verifiers": pa.list_(pa.string())}
_COLUMNS = pa.schema(
    [(name, _OWN[name] if name in _OWN else SCHEMA.field(name).type) for name in Rollout._fields if name != "wall_s"]
)


def write(file: Path, rollouts: Sequence[Rollout], digest: str) -> None:
    """Write a run's rollouts whole or not at all; folders are made.

    Args:
        file: Where to.
        rollouts: In the ledger's order, as `tables.load` gives them.
        digest: The ledger's.

    Raises:
        OSError: It cannot be written.
    """
    schema = _COLUMNS.with_metadata({"advsim.abridged": VERSION, "advsim.digest": digest})
    table = pa.Table.from_pylist([r._asdict() for r in rollouts], schema)
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer, compression="zstd", compression_level=19, write_page_checksum=True)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, memoryview(buffer.getvalue()))


def read(file: Path) -> tuple[list[Rollout], str]:
    """The rollouts, `wall_s` 0, and the digest of the ledger that they come from.

    Raises:
        LedgerError: The file is damaged, or is none of these.
    """
    try:
        schema = pq.read_schema(file)
        metadata = {key.decode(): value.decode() for key, value in (schema.metadata or {}).items()}
        if metadata.get("advsim.abridged") != VERSION or schema.names != _COLUMNS.names:
            raise LedgerError(
                f"{file}: expected an abridged ledger of version {VERSION} (`advsim results --abridged` writes them), "
                f"got version {metadata.get('advsim.abridged', 'none')} with {len(schema.names)} columns"
            )
        table = pq.read_table(file, schema=_COLUMNS, page_checksum_verification=True, partitioning=None)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as failure:
        reason = str(failure).strip().partition("\n")[0][:200]
        raise LedgerError(f"{file}: cannot be read ({reason}); restore it from a copy") from failure
    records = table.to_pylist()
    found = [Rollout(**{**record, "verifiers": tuple(record["verifiers"])}, wall_s=0.0) for record in records]
    return found, metadata["advsim.digest"]
