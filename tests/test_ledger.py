"""The ledger gives back what it was given, and loses nothing when writing fails."""

import errno
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advsim.ledger import Ledger, LedgerError, Row, page_hash
from advsim.task import Attack, Notice, Outcome, Step, Verdict

PLAIN = Row(policy="oracle", checkpoint="1", task_id="t", task_hash="h", world="symbolic", world_version="1", seed=0)
FULL = replace(
    PLAIN,
    run="r",
    stage="stage2",
    round=2,
    phase="attack",
    max_actions=12,
    steps=(
        Step("page A", "click(1)", "click(1)"),
        Step("page B", "hm", "", "expected an action", Notice("softened", "tags", "alert", "Press X", None)),
        Step("page A", "fill(2, 'it''s')", 'fill(2, "it\'s")'),
    ),
    final_page="page C",
    outcome=Outcome(True, {"a": "1", "b": ""}, (("edit", "a"), ("activate", "go"))),
    attack=Attack("do X", "X", 2, "click(9)", "own_control", "template"),
    rendered=False,
    verdicts=(Verdict(False, "strict", "1", ("field 'a' is '1', expected '2'",)),),
    strict_good=False,
    correct_fields=1,
    target_fields=2,
    followed=True,
    first_wrong=3,
    p_hat=0.25,
    reward=-1.0,
    wall_s=1.5,
)


def page_files(path: Path) -> list[str]:
    files = sorted((path / "pages").glob("*.parquet"))
    return [text for file in files for text in pq.read_table(file)["text"].to_pylist()]


def test_rows_come_back_as_they_were_given(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    failed = replace(PLAIN, error="WorldError: gone", seed=7)
    ledger.write([PLAIN, FULL])
    ledger.write([failed])
    assert list(Ledger(tmp_path).rows()) == [PLAIN, FULL, failed]
    assert ledger.parts() == ["00001", "00002"]
    assert ledger.table(["seed", "round"]).to_pydict() == {"seed": [0, 0, 7], "round": [0, 2, 0]}


texts = st.text(max_size=30)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(texts, texts, texts), max_size=4),
    st.dictionaries(texts, texts, max_size=3),
    st.integers(0, 2**40),
    st.floats(allow_nan=False),
)
def test_any_text_comes_back(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, str, str]],
    values: dict[str, str],
    seed: int,
    reward: float,
) -> None:
    row = replace(
        PLAIN,
        steps=tuple(Step(page, completion, "", error) for page, completion, error in steps),
        outcome=Outcome(False, values),
        seed=seed,
        reward=reward,
    )
    path = tmp_path_factory.mktemp("ledger")
    Ledger(path).write([row])
    assert list(Ledger(path).rows()) == [row]


def test_lone_surrogates_do_not_stop_a_run(tmp_path: Path) -> None:
    row = replace(PLAIN, steps=(Step("p\ud800q", "a\udfff", ""),), goal="g\ud83dx")
    Ledger(tmp_path).write([row])
    (back,) = Ledger(tmp_path).rows()
    assert (back.steps[0].page, back.steps[0].completion, back.goal) == ("p�q", "a�", "g�x")


def test_each_page_is_stored_once(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.write([FULL, FULL])
    ledger.write([replace(FULL, final_page="page D")])
    assert sorted(page_files(tmp_path)) == ["page A", "page B", "page C", "page D"]
    hashes = ledger.table(["pages"])["pages"].to_pylist()
    assert hashes[2] == [page_hash(text) for text in ("page A", "page B", "page A", "page D")]


def test_named_part_written_again_leaves_the_same_bytes(tmp_path: Path) -> None:
    once, again = Ledger(tmp_path / "once"), Ledger(tmp_path / "again")
    for ledger in (once, again):
        ledger.write([FULL], "s1-assess")
        ledger.write([replace(FULL, final_page="new")], "s1-update")
    # Killed after its pages and before its rollouts, then done again; another time it took.
    (tmp_path / "again/rollouts/s1-update.parquet").unlink()
    again = Ledger(tmp_path / "again")
    again.write([replace(FULL, final_page="new", wall_s=99.0)], "s1-update")
    assert again.digest() == once.digest()
    # A replaced part does not take away pages that later parts point to.
    again.write([PLAIN], "s1-assess")
    assert [row.final_page for row in again.rows()] == ["new", ""]
    assert again.digest() != once.digest()


def test_leftover_temporary_files_are_ignored_and_go_with_the_next_part(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.write([FULL])
    for kind in ("rollouts", "pages"):
        (tmp_path / kind / ".00002.parquet.123.tmp").write_bytes(b"PAR1 half")
    assert list(ledger.rows()) == [FULL]
    ledger.write([PLAIN])
    assert ledger.parts() == ["00001", "00002"]
    assert not list(tmp_path.rglob("*.tmp"))


@pytest.mark.parametrize("damage", ["truncate", "flip", "garbage", "empty"])
def test_damaged_part_is_refused_by_name(tmp_path: Path, damage: str) -> None:
    Ledger(tmp_path).write([FULL] * 50)
    file = tmp_path / "rollouts/00001.parquet"
    data = bytearray(file.read_bytes())
    if damage == "truncate":
        data = data[: len(data) // 2]
    elif damage == "flip":
        data[100] ^= 0xFF
    else:
        data = bytearray(b"not parquet" if damage == "garbage" else b"")
    file.write_bytes(data)
    with pytest.raises(LedgerError, match=r"00001\.parquet: cannot be read") as caught:
        list(Ledger(tmp_path).rows())
    assert "\n" not in str(caught.value)


def test_missing_ledger_and_other_schema_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="no ledger here"):
        Ledger(tmp_path).table()
    with pytest.raises(LedgerError, match="no ledger here"):
        list(Ledger(tmp_path / "absent").rows())
    Ledger(tmp_path).write([PLAIN])
    file = tmp_path / "rollouts/00001.parquet"
    pq.write_table(pq.read_table(file).replace_schema_metadata({"advsim.ledger": "9"}), file)
    with pytest.raises(LedgerError, match="ledger schema 9, this AdvSim reads schema 2"):
        Ledger(tmp_path).table()


def test_part_names_cannot_leave_the_folder(tmp_path: Path) -> None:
    for name in ("../x", ".hidden", "a/b", ""):
        with pytest.raises(ValueError, match="part's name"):
            Ledger(tmp_path).write([PLAIN], name)


def test_full_disk_while_writing_keeps_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(tmp_path)
    ledger.write([FULL])
    before = ledger.digest()
    real = os.fsync
    calls = 0

    def full(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        # Two syncs a file (itself and its folder): the fifth is that of the rollouts.
        if calls == 5:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LedgerError, match=r"No space left on device.*untouched") as caught:
        ledger.write([replace(FULL, final_page="new")])
    assert "\n" not in str(caught.value)
    monkeypatch.undo()
    assert calls == 5
    assert ledger.digest() == before
    assert not list(tmp_path.rglob("*.tmp"))
    ledger.write([replace(FULL, final_page="new")])  # after space was made, the same command works
    assert [row.final_page for row in Ledger(tmp_path).rows()] == ["page C", "new"]


WRITE = """
import sys
sys.path.insert(0, {here!r})
from test_ledger import FULL
from dataclasses import replace
from advsim.ledger import Ledger, LedgerError
import random
text = "".join(random.Random(0).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=400_000))
ledger = Ledger(sys.argv[1])
ledger.write([FULL])
before = ledger.digest()
{limit}
try:
    ledger.write([replace(FULL, final_page=text)])
except LedgerError as error:
    print(error)
assert Ledger(sys.argv[1]).digest() == before
assert list(ledger.rows()) == [FULL]
"""


def in_child(path: Path, limit: str, *before: str) -> subprocess.CompletedProcess[str]:
    code = WRITE.format(here=str(Path(__file__).parent), limit=limit)
    return subprocess.run([*before, sys.executable, "-c", code, str(path)], capture_output=True, text=True)


def test_file_size_limit_is_survived(tmp_path: Path) -> None:
    result = in_child(tmp_path, "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"ledger {tmp_path}: cannot write (File too large)")


def test_really_full_disk_is_survived(tmp_path: Path) -> None:
    mount = "mount -t tmpfs -o size=200k tmpfs"
    unshare = ["unshare", "--mount", "--map-root-user", "sh", "-ec"]
    if subprocess.run([*unshare, f"{mount} '{tmp_path}'"], capture_output=True).returncode != 0:
        pytest.skip("this machine lets nobody mount a small file system")
    result = in_child(tmp_path, "", *unshare, f"{mount} '{tmp_path}'; exec \"$@\"", "sh")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"ledger {tmp_path}: cannot write (No space left on device)")


def test_rows_come_in_the_order_of_writing(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    for name, seed in (("b", 1), ("a", 2), ("b", 3), ("c", 4)):  # b is written again, after a
        ledger.write([replace(PLAIN, seed=seed, wall_s=float(seed))], name)
    assert ledger.parts() == ["a", "b", "c"]
    again = Ledger(tmp_path)
    assert [row.seed for row in again.rows()] == again.table(["seed"])["seed"].to_pylist() == [2, 3, 4]
    assert again.seconds() == [2.0, 3.0, 4.0]


def test_a_ledger_that_lost_its_pages_takes_no_more(tmp_path: Path) -> None:
    Ledger(tmp_path).write([FULL])
    (tmp_path / "pages/00001.parquet").unlink()
    for part in (None, "00001"):
        with pytest.raises(LedgerError, match=r"part 00001 has lost its pages .*nothing written; restore") as caught:
            Ledger(tmp_path).write([PLAIN], part)
        assert "\n" not in str(caught.value)
    assert Ledger(tmp_path).parts() == ["00001"]
    (tmp_path / "rollouts/00001.parquet").unlink()
    Ledger(tmp_path).write([FULL])  # as the line says
    assert list(Ledger(tmp_path).rows()) == [FULL]
