"""What README says of training is what the published results hold."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from advsim.report.results import write

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"\| (symbolic|browser) \| (\w+)[^|]* \| ([\d.]+) \| ([\d.]+) \| ([^|]+) \|")


def published() -> dict[str, Any]:
    results: dict[str, Any] = json.loads((ROOT / "docs" / "results.json").read_text())
    return results


def test_the_readmes_table_is_the_published_results() -> None:
    section = (ROOT / "README.md").read_text().partition("## What training does")[2].partition("\n## ")[0]
    lines = ROW.findall(section)
    assert len(lines) == 5
    results = published()
    strict = [r for r in results["rows"] if r["metric"] == "strict"]
    for world, attacker, base, last, difference in lines:

        def mean(executor: str, where: tuple[str, str] = (world, attacker)) -> str:
            (row,) = [r for r in strict if (r["executor"], r["world"], r["attacker"]) == (executor, *where)]
            return f"{100 * row['mean']:.1f}"

        assert (base, last) == (mean("base"), mean("robust3"))
        (d,) = [
            d
            for d in results["differences"]
            if (d["from"], d["to"], d["world"], d["attacker"], d["metric"])
            == ("base", "robust3", world, attacker, "strict")
        ]
        assert difference == f"{d['mean']:+.1f} [{d['ci_low']:+.1f}, {d['ci_high']:+.1f}]"


def test_the_readme_says_how_many_episodes_and_errors_there_were() -> None:
    section = (ROOT / "README.md").read_text().partition("## What training does")[2].partition("\n## ")[0]
    rows = [r for r in published()["rows"] if r["metric"] == "strict" and r["executor"] in ("base", "robust3")]
    assert {r["errors"] for r in rows} == {0}
    assert "no errors" in section
    single = {r["n"] for r in rows if r["attacker"] in ("none", "template")}
    assert {f"{n:,} episodes" in section for n in single} == {True}


def test_the_published_results_are_those_of_the_published_ledgers(tmp_path: Path) -> None:
    write(ROOT / "docs" / "ledgers", tmp_path)
    assert {file.name for file in tmp_path.iterdir()} >= {"RESULTS.md", "results.json"}
    for file in tmp_path.iterdir():
        assert file.read_text() == (ROOT / "docs" / file.name).read_text()
