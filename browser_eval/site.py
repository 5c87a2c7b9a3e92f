"""Files that are served beside an arbitrary HTML page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Site:
    """Where a page stands among its files.

    Attributes:
        root: Folder that is served; None serves the page alone.
        path: The page's path in it, with forward slashes.
    """

    root: Path | None = None
    path: str = ""
