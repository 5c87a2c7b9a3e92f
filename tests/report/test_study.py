"""A study's numbers on ledgers made by hand: means and deviations worked out on paper, intervals by enumeration."""

import itertools
import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from advsim.cli import main
from advsim.ledger import Ledger, LedgerError, Row
from advsim.report import results
from advsim.report.stats import Counts, paired_difference, seed_mean, seed_values
from advsim.report.study import load
from advsim.report.summary import summarise
from advsim.task import Attack, Verdict

AIMED = Attack("z", "z", 1, "click(1)", "forbidden")
STRATA = {"a": "join", "b": "join", "c": "repair"}


def episode(seed: int, policy: str, task: str, good: bool, attacker: str = "none", **more: object) -> Row:
    attacked = attacker != "none"
    row = Row(
        run="made",
        config_hash="0123456789abcdef",
        train_seed=seed,
        policy=policy,
        checkpoint="c",
        attacker=attacker,
        task_id=task,
        task_hash=task,
        stratum=STRATA[task],
        split="bench-small",
        world="symbolic",
        world_version="1",
        seed=0,
        strict_good=good,
        good=good,
        correct_fields=2 if good else 1,
        target_fields=2,
        verdicts=(Verdict(good, "strict", "1"),),
        attack=AIMED if attacked else None,
        rendered=True if attacked else None,
        followed=not good if attacked else None,
    )
    return replace(row, **more)  # type: ignore[arg-type]


def failed(seed: int, policy: str, task: str, attacker: str = "none") -> Row:
    nothing = dict.fromkeys(("strict_good", "good", "correct_fields", "target_fields", "followed", "rendered"))
    return replace(episode(seed, policy, task, False, attacker), **nothing, verdicts=(), error="WorldError: x")  # type: ignore[arg-type]


def cell(seed: int, policy: str, goods: str, attacker: str = "none") -> list[Row]:
    """One episode a task, `1` good, `0` bad, `x` failed."""
    return [
        failed(seed, policy, task, attacker) if mark == "x" else episode(seed, policy, task, mark == "1", attacker)
        for task, mark in zip(STRATA, goods, strict=True)
    ]


def trained(seed: int, count: int) -> list[Row]:
    """Two updates' groups of the executor, `count` rollouts each, and one round of the curriculum."""
    own = [
        episode(
            seed, "executor", "a", n % 2 == 0, stage="stage1", round=1, phase="update", reward=1.0, group=f"s/{e}/0"
        )
        for e in range(2)
        for n in range(count)
    ]
    proposal = episode(seed, "curriculum", "a", True, stage="stage1", round=1, phase="propose", reward=0.5, p_hat=0.5)
    return [*own, replace(proposal, role="curriculum", valid=True, strict_good=None, good=None, verdicts=())]


SEEDS = {
    0: [
        *cell(0, "base", "100"),
        *cell(0, "base", "000", "template"),
        *cell(0, "base", "010", "adversary1"),
        *cell(0, "base", "000", "adversary2"),
        *cell(0, "robust1", "110"),
        *cell(0, "robust1", "100", "template"),
        *cell(0, "robust1", "011", "adversary1"),
        *cell(0, "robust1", "111", "adversary2"),
        *trained(0, 3),
    ],
    1: [
        *cell(1, "base", "01x"),
        *cell(1, "base", "010", "template"),
        *cell(1, "base", "000", "adversary1"),
        *cell(1, "base", "010", "adversary2"),
        *cell(1, "robust1", "111"),
        *cell(1, "robust1", "x11", "template"),
        *cell(1, "robust1", "110", "adversary1"),
        *cell(1, "robust1", "011", "adversary2"),
        *trained(1, 5),
    ],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for seed, rows in SEEDS.items():
        Ledger(tmp_path / f"seed{seed}" / "ledger").write(rows, "eval")
        without = [*cell(seed, "robust3", "100"), *cell(seed, "robust3", "000", "template"), *trained(seed, 4)]
        Ledger(tmp_path / "ablate" / "no-kl" / f"seed{seed}" / "ledger").write(without, "eval")
    return tmp_path


def pick(rows: list[dict[str, object]], **wanted: object) -> dict[str, object]:
    (found,) = [row for row in rows if all(row[key] == value for key, value in wanted.items())]
    return found


def table(goods: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Numerators and denominators of the strict check, (seeds, tasks)."""
    return (
        np.array([[mark == "1" for mark in line] for line in goods], float),
        np.array([[mark != "x" for mark in line] for line in goods], float),
    )


def enumerate_all(*sides: list[list[str]]) -> list[np.ndarray]:
    """The statistic of each side in all 2² · 3³ equally likely resamples; plain loops, no library of ours."""
    drawn: list[list[float]] = [[] for _ in sides]
    for seeds in itertools.product(range(2), repeat=2):
        for tasks in itertools.product(range(3), repeat=3):
            for place, side in enumerate(sides):
                of_seeds = []
                for seed in seeds:
                    ratios = []
                    for goods in side:
                        num, den = table(goods)
                        below = sum(den[seed, t] for t in tasks)
                        if below:
                            ratios.append(sum(num[seed, t] for t in tasks) / below)
                    if ratios:
                        of_seeds.append(sum(ratios) / len(ratios))
                drawn[place].append(sum(of_seeds) / len(of_seeds) if of_seeds else np.nan)
    return [np.array(values) for values in drawn]


def conditions(side: list[list[str]]) -> list[Counts]:
    return [Counts(tuple(STRATA), *table(goods)) for goods in side]


BASE, ROBUST = [["010", "000"], ["000", "010"]], [["011", "110"], ["111", "011"]]


def exact(draws: np.ndarray) -> tuple[float, float]:
    low, high = np.percentile(draws[~np.isnan(draws)], [2.5, 97.5])
    return low, high


@pytest.mark.parametrize("side", [[["100", "01x"]], BASE, ROBUST])
def test_the_interval_of_a_mean_is_that_of_all_resamples(side: list[list[str]]) -> None:
    got = seed_mean(conditions(side), replicates=60_000)
    assert (got.low, got.high) == pytest.approx(exact(enumerate_all(side)[0]), abs=1e-9)


@pytest.mark.parametrize(("before", "after"), [(BASE, ROBUST), ([["100", "01x"]], [["110", "111"]])])
def test_the_interval_of_a_difference_is_that_of_all_resamples(before: list[list[str]], after: list[list[str]]) -> None:
    first, second = enumerate_all(before, after)
    got = paired_difference(conditions(before), conditions(after), replicates=60_000)
    assert (got.low, got.high) == pytest.approx(exact(second - first), abs=1e-9)


def test_a_seed_without_a_count_is_left_out() -> None:
    one = Counts(("a",), np.array([[1.0], [0.0]]), np.array([[2.0], [0.0]]))
    two = Counts(("a",), np.array([[1.0], [0.0]]), np.array([[1.0], [0.0]]))
    assert seed_values([one])[0] == 0.5
    assert np.isnan(seed_values([one])[1])
    assert seed_values([one, two])[0] == 0.75
    assert seed_mean([one]).value == 0.5


def test_means_deviations_and_denominators(folder: Path) -> None:
    rows = summarise(load(folder))["rows"]
    clean = pick(rows, executor="base", attacker="none", metric="strict")
    # Seed 0: 1 of 3; seed 1: 1 of 2, for one failed on infrastructure.
    assert clean["mean"] == pytest.approx((1 / 3 + 1 / 2) / 2)
    assert clean["sd"] == pytest.approx((1 / 2 - 1 / 3) / 2**0.5)
    assert (clean["n"], clean["errors"], clean["counted"], clean["seeds"]) == (6, 1, 5, 2)
    assert (clean["world"], clean["tasks"]) == ("symbolic", "bench-small")
    fields = pick(rows, executor="base", attacker="none", metric="correct_fields")
    assert (fields["mean"], fields["counted"]) == (pytest.approx((4 / 6 + 3 / 4) / 2), 10)
    # Seed 0: adversary1 1/3, adversary2 0; seed 1: 0 and 1/3.
    learned = pick(rows, executor="base", attacker="learned", metric="strict")
    assert (learned["mean"], learned["sd"]) == (pytest.approx(1 / 6), pytest.approx(0, abs=1e-12))
    assert (learned["n"], learned["errors"]) == (12, 0)
    low, high = exact(enumerate_all(BASE)[0])
    assert (learned["ci_low"], learned["ci_high"]) == pytest.approx((low, high), abs=1e-9)
    success = pick(rows, executor="robust1", attacker="template", metric="attack_success")
    # Hijacked: 2 of 3 in seed 0; none of 2 in seed 1.
    assert (success["mean"], success["counted"], success["errors"]) == (pytest.approx(1 / 3), 5, 1)
    assert not [row for row in rows if row["attacker"] == "none" and row["metric"] == "attack_success"]


def test_differences_in_points(folder: Path) -> None:
    found = summarise(load(folder))["differences"]
    row = pick(found, **{"from": "base", "to": "robust1"}, attacker="learned", metric="strict")
    # robust1: seed 0 (2/3 + 1)/2, seed 1 (2/3 + 2/3)/2; base 1/6 in both.
    assert row["mean"] == pytest.approx(100 * ((5 / 6 + 2 / 3) / 2 - 1 / 6))
    first, second = enumerate_all(BASE, ROBUST)
    low, high = exact(second - first)
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((100 * low, 100 * high), abs=1e-6)
    attack = pick(found, **{"from": "base", "to": "robust1"}, attacker="template", metric="attack_success")
    assert attack["mean"] == pytest.approx(100 * (1 / 3 - (1 + 2 / 3) / 2))


def test_strata_divide_the_rows(folder: Path) -> None:
    data = summarise(load(folder))
    wanted = {"executor": "base", "attacker": "none", "metric": "strict"}
    join = pick(data["strata"], stratum="join", **wanted)
    repair = pick(data["strata"], stratum="repair", **wanted)
    assert (join["mean"], join["n"], join["errors"]) == (pytest.approx(0.5), 4, 0)
    # One good of none counted would be no rate: seed 1's only episode failed, so seed 0 stands alone.
    assert (repair["mean"], repair["sd"], repair["n"], repair["errors"], repair["seeds"]) == (0, None, 2, 1, 1)


def test_ablations_against_the_full_method(folder: Path) -> None:
    data = summarise(load(folder))
    row = pick(data["ablations"], switch="no-kl", attacker="none", metric="strict")
    assert (row["from"], row["to"], row["seeds"]) == ("robust1", "robust3", 2)
    assert row["mean"] == pytest.approx(100 * (1 / 3 - (2 / 3 + 1) / 2))
    first, second = enumerate_all([["110", "111"]], [["100", "100"]])
    assert (row["ci_low"], row["ci_high"]) == pytest.approx([100 * v for v in exact(second - first)], abs=1e-6)
    full, without = data["compute"]
    assert (full["switch"], full["rollouts"], full["executor_updates"], full["proposer_rounds"]) == ("full", 8, 2, 1)
    assert (without["rollouts"], without["learned_from"]) == (8, 8)


def test_results_are_written_from_ledgers_alone_and_again_alike(folder: Path, tmp_path: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    docs = tmp_path / "new" / "docs"
    assert main(["results", str(folder), "--docs", str(docs)]) == 0
    before = {file.name: file.read_bytes() for file in docs.iterdir()}
    assert main(["results", str(folder), "--docs", str(docs)]) == 0
    assert {file.name: file.read_bytes() for file in docs.iterdir()} == before
    assert "differences" in capsys.readouterr().out
    data = json.loads(before["results.json"])
    assert set(data["ledgers"]) == {"seed 0", "seed 1", "no-kl, seed 0", "no-kl, seed 1"}
    text = before["RESULTS.md"].decode()
    assert "| base | symbolic | none | bench-small | 2 | 6 | 1 | 41.7 ± 11.8 [" in text
    assert "| base → robust1 | symbolic | learned | bench-small | +58.3 [" in text
    assert "| no-kl | symbolic | bench-small | 2 | -50.0 [" in text
    assert "clean completion, +5 or more | +41.7 [" in text
    for name in (name for name in before if name.endswith(".svg")):
        assert ElementTree.fromstring(before[name].decode()).tag.endswith("svg")
        assert f"]({name})" in text


def test_abridged_ledgers_give_the_same_results(folder: Path, tmp_path: Path) -> None:
    small = tmp_path / "small"
    assert main(["results", str(folder), "--docs", str(tmp_path / "a"), "--abridged", str(small)]) == 0
    files = {str(f.relative_to(small)) for f in small.rglob("*") if f.is_file()}
    assert files == {f"{place}seed{n}.parquet" for place in ("", "ablate/no-kl/") for n in (0, 1)}
    assert main(["results", str(small), "--docs", str(tmp_path / "b"), "--abridged", str(tmp_path / "again")]) == 0
    written = sorted(f.name for f in (tmp_path / "a").iterdir())
    assert written == sorted(f.name for f in (tmp_path / "b").iterdir())
    for name in written:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    for name in files:
        assert (small / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    # A study may hold both kinds, and counts a training seed once.
    (small / "seed1.parquet").unlink()
    Ledger(small / "seed1" / "ledger").write(SEEDS[1], "eval")
    assert load(small).full.rollouts == [*load(folder).full.rollouts]
    Ledger(small / "seed2" / "ledger").write(SEEDS[0], "eval")
    with pytest.raises(LedgerError, match="one training seed that no other run here has"):
        load(small)


def test_a_damaged_abridged_ledger_is_one_line(folder: Path, tmp_path: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    small = tmp_path / "small"
    results.write(folder, tmp_path / "docs", small)
    file = small / "seed0.parquet"
    for content, said in ((file.read_bytes()[:-20], "cannot be read"), (b"", "cannot be read")):
        file.write_bytes(content)
        assert main(["results", str(small), "--docs", str(tmp_path / "docs")]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert str(file) in line
        assert said in line
    part = next((folder / "seed0" / "ledger" / "rollouts").glob("*.parquet"))
    file.write_bytes(part.read_bytes())
    assert main(["results", str(small), "--docs", str(tmp_path / "docs")]) == 1
    assert "expected an abridged ledger of version 1" in capsys.readouterr().err


def test_the_curriculums_course_is_told_beside_that_with_uniform_rewards(tmp_path: Path) -> None:
    def proposed(number: int, *rates: float) -> list[Row]:
        row = episode(0, "curriculum", "a", True, stage="stage1", round=number, phase="propose", reward=0.5)
        bare = replace(row, role="curriculum", valid=True, strict_good=None, good=None, verdicts=())
        return [replace(bare, p_hat=rate, task_id=f"{n}") for n, rate in enumerate(rates)]

    def learned(number: int, *groups: tuple[float, ...]) -> list[Row]:
        return [
            episode(
                0, "executor", "a", True, stage="stage1", round=number, phase="update", reward=r, group=f"{number}/{g}"
            )
            for g, rewards in enumerate(groups)
            for r in rewards
        ]

    ended = [*cell(0, "base", "100"), *cell(0, "robust1", "110")]
    same, apart = (1.0, 1.0), (1.0, -1.0)
    full = [*proposed(1, 1.0, 0.9, 0.1), *learned(1, same, same), *proposed(2, 0.6, 0.7), *learned(2, same, apart)]
    other = [*proposed(1, 0.75), *learned(1, same), *proposed(2, 1.0), *learned(2, same)]
    Ledger(tmp_path / "seed0" / "ledger").write([*ended, *full], "eval")
    Ledger(tmp_path / "ablate" / "uniform-reward" / "seed0" / "ledger").write(other, "train")
    text = results.markdown(summarise(load(tmp_path)), ["x.svg"])
    assert "median p̂ of the valid proposals moves towards ½ | 0.90 → 0.65; uniform reward: 0.75 → 1.00 | yes |" in text
    assert "share of groups without variance falls | 1.00 → 0.50; uniform reward: 1.00 → 1.00 | yes |" in text
    assert "| uniform-reward | stage1 | 2 | 1.00 | 1.00 |" in text


def test_names_from_a_ledger_are_no_markup(tmp_path: Path) -> None:
    row = episode(0, "a|b<script>`x`\n", "a", True)
    Ledger(tmp_path / "seed0" / "ledger").write([row], "eval")
    text = results.markdown(summarise(load(tmp_path)))
    assert "a\\|b&lt;script>'x' " in text
    assert "<script" not in text


def test_what_is_no_study_is_refused(tmp_path: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    assert main(["results", str(tmp_path), "--docs", str(tmp_path / "docs")]) == 2
    assert "holds no study" in capsys.readouterr().err
    with pytest.raises(LedgerError, match="holds no study"):
        load(tmp_path)
    for name in ("seed0", "seed1"):
        Ledger(tmp_path / name / "ledger").write(cell(0, "base", "111"), "eval")
    assert main(["results", str(tmp_path), "--docs", str(tmp_path / "docs")]) == 1
    assert "one training seed that no other run here has" in capsys.readouterr().err
    taken = tmp_path / "file"
    taken.write_text("")
    assert main(["results", str(tmp_path), "--docs", str(taken)]) == 2
