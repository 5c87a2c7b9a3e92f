"""Writing a file so that a crash or a full disk leaves the old file or the new one, never a part."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(target: Path, data: bytes | memoryview) -> None:
    """Put bytes in place of a file, whole or not at all, also after a power failure.

    A pipe, a device or a link (`/dev/stdout`) is written through: renaming onto it would put a file in its place.

    Args:
        target: The file; its folder exists.
        data: All of its new content.

    Raises:
        OSError: It cannot be written; what was there before is untouched.
    """
    if target.is_symlink() or (target.exists() and not target.is_file()):
        with open(target, "wb") as through:
            through.write(data)
        return
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with open(draft, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
