"""Task files: written whole, read only if whole."""

from __future__ import annotations

import os
from itertools import islice

import pytest

from benchmark_forms import TaskFileError, load, save, stream

TASKS = list(islice(stream(11, settings=("tiny", "easy-long")), 8))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "tasks.jsonl"
    save(path, TASKS)
    return path


def refusal(path) -> str:
    with pytest.raises(TaskFileError) as caught:
        load(path)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    return message


def test_what_was_saved_is_loaded(file):
    assert load(file) == TASKS
    assert load(str(file)) == TASKS


def test_equal_tasks_equal_bytes(file, tmp_path):
    save(tmp_path / "again.jsonl", TASKS)
    assert (tmp_path / "again.jsonl").read_bytes() == file.read_bytes()


def test_no_tasks(tmp_path):
    save(tmp_path / "none.jsonl", [])
    assert load(tmp_path / "none.jsonl") == []


def test_any_truncation_is_noticed(file):
    raw = file.read_bytes()
    for length in (*range(0, len(raw), 97), len(raw) - 1):
        file.write_bytes(raw[:length])
        refusal(file)


def test_the_line_is_named(file):
    raw = file.read_bytes()
    file.write_bytes(raw[: raw.rindex(b'"goal"') + 20])
    assert f":{len(TASKS) + 1}: not a task" in refusal(file)
    lines = raw.split(b"\n")
    file.write_bytes(b"\n".join([*lines[:3], b"{}", *lines[4:]]))
    assert ":4: not a task" in refusal(file)


def test_missing_lines_are_counted(file):
    lines = file.read_bytes().split(b"\n")
    file.write_bytes(b"\n".join([*lines[:4], *lines[6:]]))
    assert "expected 8 tasks by the header, found 6" in refusal(file)


def test_a_changed_value_is_noticed(file):
    raw = file.read_bytes()
    label = TASKS[0].form.title.encode()
    file.write_bytes(raw.replace(label, label[::-1], 1))
    assert "sha256" in refusal(file)


@pytest.mark.parametrize("content", [b"", b"hello\n", b"[]\n", b'{"format": "other"}\n', b"\xff\xfe\x00\n"])
def test_other_files_are_refused(file, content):
    file.write_bytes(content)
    assert ":1: not a task file" in refusal(file)


def test_other_versions_are_refused(file):
    file.write_bytes(file.read_bytes().replace(b'"version": 1', b'"version": 99', 1))
    assert "version 99" in refusal(file)


def test_missing_file(tmp_path):
    assert "No such file" in refusal(tmp_path / "absent.jsonl")


def test_a_failed_save_leaves_the_old_file(file, monkeypatch):
    before = file.read_bytes()

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        save(file, TASKS[:2])
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]
