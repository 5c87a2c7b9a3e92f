"""Files are replaced whole or not at all; devices, pipes and links are written through."""

import os
from pathlib import Path

import pytest

from advsim.disk import write_whole


def test_a_file_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / "a"
    write_whole(target, b"old")
    write_whole(target, memoryview(b"new"))
    assert target.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a"]


def test_a_failure_leaves_the_old_file_and_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "a"
    write_whole(target, b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(target, b"new")
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "a")
    write_whole(tmp_path / "link", b"x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "a").read_bytes() == b"x"


def test_a_device_stays_a_device() -> None:
    before = os.stat("/dev/null").st_mode
    write_whole(Path("/dev/null"), b"x")
    assert os.stat("/dev/null").st_mode == before
