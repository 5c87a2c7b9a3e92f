"""`RESULTS.md`, `results.json` and their plots: what a study found, written from its ledgers alone."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from advsim import __version__
from advsim.report import svg
from advsim.report.study import METRICS, abridge, load
from advsim.report.summary import COMPARED, summarise

Record = Mapping[str, Any]

_STYLE = "<style>svg{background:#fff}text{font:11px system-ui,sans-serif;fill:#3c4650}.grid{stroke:#e3e7eb}</style>"
_NOTE = (
    "Means over training seeds of each seed's own ratio, in %; ± is their sample standard deviation; brackets are 95 % "
    "intervals of a bootstrap that resamples tasks and, as the outer level, training seeds (Wilson's over the tasks "
    "where every episode agrees). n: episodes, errors of infrastructure included; every rate is over the others. "
    "Attack success is over the episodes whose injection was shown; high is bad. `learned`: mean over the learned "
    "adversaries that have lines of their own, each asked before every transition."
)
_PAIRED = (
    "Differences in points, paired: the same tasks and training seeds are drawn for both sides. `results.json` holds "
    "every pair of checkpoints."
)


def write(folder: Path, docs: Path, abridged: Path | None = None) -> dict[str, Any]:
    """Writes a study's results.

    Args:
        folder: The study's folder (`report.study` says what it holds).
        docs: Where `RESULTS.md`, `results.json` and `results-*.svg` go; made if it is not there.
        abridged: Where the study's ledgers go too, abridged; None for nowhere.

    Returns:
        What `results.json` holds.

    Raises:
        LedgerError: There is no ledger, or one is damaged.
        OSError: A file cannot be written.
    """
    study = load(folder)
    data = summarise(study)
    docs.mkdir(parents=True, exist_ok=True)
    if abridged is not None:
        abridge(study, abridged)
    plots = charts(data)
    for name, text in plots.items():
        _put(docs / name, text + "\n")
    _put(docs / "results.json", json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    _put(docs / "RESULTS.md", markdown(data, list(plots)))
    return data


def markdown(data: Record, plots: Sequence[str] = ()) -> str:
    """`RESULTS.md` as text; `plots` are files beside it."""
    facts = [*data["provenance"].items(), ("report", f"AdvSim {__version__}, from ledgers alone (`advsim results`)")]
    parts = [
        "# Results",
        "\n".join(f"- {key}: {_text(value)}" for key, value in facts),
        _bars(data),
        "## Every checkpoint under every attacker",
        _NOTE,
        _rates(data["rows"]),
        "## Differences",
        _PAIRED,
        _differences(data["differences"]),
    ]
    if plots:
        parts += ["## Learning", "\n".join(f"![{name}]({name})" for name in plots), _curves(data["curves"])]
    if data["ablations"]:
        parts += ["## Ablations", _ablations(data)]
    parts += ["## By stratum", _folded(_rates(data["strata"]))]
    ledgers = "\n".join(f"- {_text(name)}: `{digest}`" for name, digest in data["ledgers"].items())
    parts += ["## Ledgers", "SHA-256 of the rollouts and pages that every number here was computed from.", ledgers]
    return "\n\n".join(part for part in parts if part) + "\n"


def _rates(rows: Sequence[Record]) -> str:
    lines: dict[tuple[str, ...], dict[str, Record]] = {}
    for row in rows:
        key: tuple[str, ...] = (row["executor"], row["world"], row["attacker"], row["tasks"], row.get("stratum", ""))
        lines.setdefault(key, {})[row["metric"]] = row
    stratified = any("stratum" in row for row in rows)
    heads = ["executor", "world", "attacker", "tasks", *(["stratum"] if stratified else [])]
    body = []
    for key, by in lines.items():
        first = next(iter(by.values()))
        cells = [
            _rate(by.get("strict")),
            _rate(by.get("correct_fields")),
            _rate(by.get("attack_success"), counted=True),
        ]
        body.append([*key[: len(heads)], str(first["seeds"]), str(first["n"]), str(first["errors"]), *cells])
    return _table([*heads, "seeds", "n", "errors", "strict %", "correct fields %", "attack success %"], body, 6)


def _rate(row: Record | None, *, counted: bool = False) -> str:
    if row is None or row["mean"] is None:
        return "–"
    sd = f" ± {100 * row['sd']:.1f}" if row["sd"] is not None else ""
    low, high = row["ci_low"], row["ci_high"]
    text = f"{100 * row['mean']:.1f}{sd}" + (f" [{100 * low:.1f}, {100 * high:.1f}]" if low is not None else "")
    return text + (f" of {row['counted']}" if counted else "")


def _differences(rows: Sequence[Record]) -> str:
    """From the base to the end of either stage, and over the second."""
    ends = {stem: _last(rows, stem) for stem in ("capability", "robust")}
    shown = [("base", ends["capability"]), ("base", ends["robust"]), (ends["capability"], ends["robust"])]
    lines: dict[tuple[str, ...], dict[str, str]] = {}
    for pair in shown:
        for row in rows:
            if (row["from"], row["to"]) == pair:
                key = (f"{row['from']} → {row['to']}", row["world"], row["attacker"], row["tasks"])
                lines.setdefault(key, {})[row["metric"]] = _difference(row)
    heads = ["from → to", "world", "attacker", "tasks", "strict", "correct fields", "attack success"]
    return _table(heads, [[*key, *(by.get(m, "–") for m in METRICS)] for key, by in lines.items()], 3)


def _difference(row: Record) -> str:
    if row["mean"] is None:
        return "–"
    return f"{row['mean']:+.1f}" + (
        f" [{row['ci_low']:+.1f}, {row['ci_high']:+.1f}]" if row["ci_low"] is not None else ""
    )


def _last(rows: Iterable[Record], stem: str) -> str | None:
    """The last checkpoint of a stage that the differences speak of."""
    numbers = [int(row["to"].removeprefix(stem)) for row in rows if row["to"].rstrip("0123456789") == stem]
    return f"{stem}{max(numbers)}" if numbers else None


def _bars(data: Record) -> str:
    """What the project promises of the default job, met or not, from the rows."""
    rows = data["differences"]
    capability, robust = _last(rows, "capability"), _last(rows, "robust")
    if robust is None:
        return ""

    def find(before: str | None, world: str, attacker: str) -> Record | None:
        wanted = (before, robust, world, attacker, "strict")
        keys = ("from", "to", "world", "attacker", "metric")
        return next((row for row in rows if tuple(row[key] for key in keys) == wanted), None)

    def gain(least: float) -> Callable[[Record], bool]:
        return lambda row: row["mean"] >= least and row["ci_low"] > 0

    asked: list[tuple[str, Record | None, Callable[[Record], bool]]] = [
        ("clean completion, +5 or more", find("base", "symbolic", "none"), gain(5)),
        ("under the learned adversaries, +10 or more", find("base", "symbolic", "learned"), gain(10)),
        ("in the browser, clean, +10 or more", find("base", "browser", "none"), gain(10)),
        ("in the browser, learned adversaries, +8 or more", find("base", "browser", "learned"), gain(8)),
        ("in the browser, template attacker, +8 or more", find("base", "browser", "template"), gain(8)),
        (
            "stage 2 loses no clean completion (interval not below −2)",
            find(capability, "symbolic", "none"),
            lambda row: row["ci_low"] >= -2,
        ),
    ]
    body = []
    for what, row, met in asked:
        known = row is not None and row["ci_low"] is not None
        shown = _difference(row) if row is not None else "not measured"
        seeds = str(row["seeds"]) if row is not None else "–"
        body.append([what, shown, ("yes" if met(row) else "no") if row is not None and known else "–", seeds])
    before, after = (_success(data["rows"], name) for name in ("base", robust))
    if before is not None and after is not None and before["seeds"] == after["seeds"]:
        body.append(
            [
                "attack success of the template attacker at least halved",
                f"{100 * before['mean']:.1f} % → {100 * after['mean']:.1f} %",
                "yes" if after["mean"] <= before["mean"] / 2 else "no",
                str(after["seeds"]),
            ]
        )
    body += [
        _course(data["curves"], "p_hat_median", "median p̂ of the valid proposals moves towards ½", _towards_half),
        _course(data["curves"], "zero_variance", "share of groups without variance falls", lambda a, b: b < a),
    ]
    note = (
        "Promised of the default job (`configs/tiny.yaml`) over three training seeds; `seeds`: measured over so many."
    )
    return f"## What was promised\n\n{note}\n\n" + _table(
        [f"base → {robust}, strict, in points", "measured", "met", "seeds"], body, 1
    )


def _course(curves: Sequence[Record], key: str, what: str, met: Callable[[float, float], bool]) -> list[str]:
    """A line of `_bars`: stage 1 round by round, and the same without the uncertainty reward where that was run."""
    told, verdict, seeds = [], "–", "–"
    for switch, note in (("full", ""), ("uniform-reward", "uniform reward: ")):
        points = [c for c in curves if c["switch"] == switch and c["stage"] == "stage1" and c[key] is not None]
        if points:
            told.append(note + " → ".join(f"{point[key]:.2f}" for point in points))
        if switch == "full" and len({point["seeds"] for point in points}) == 1 < len(points):
            verdict, seeds = "yes" if met(points[0][key], points[-1][key]) else "no", str(points[0]["seeds"])
    return [f"over stage 1 the {what}", "; ".join(told) or "not measured", verdict, seeds]


def _towards_half(first: float, last: float) -> bool:
    return abs(last - 0.5) < abs(first - 0.5)


def _curves(curves: Sequence[Record]) -> str:
    """What the plots of training show, as a table."""
    shown = {
        "median p̂": "p_hat_median",
        "no variance": "zero_variance",
        "proposals that parse": "tasks_valid",
        "attacks that parse": "attacks_valid",
        **{f"{role}'s reward": f"{role}_reward" for role in _ROLES},
    }
    body = [
        [c["switch"], c["stage"], str(c["round"]), *("–" if c[k] is None else f"{c[k]:.2f}" for k in shown.values())]
        for c in curves
    ]
    note = (
        "Means over training seeds. Median p̂: of the round's valid proposals. No variance: share of the executor's "
        "update groups whose rollouts all earned the same. `full` is the method as configured."
    )
    return note + "\n\n" + _table(["switch", "stage", "round", *shown], body, len(shown) + 1)


def _success(rows: Iterable[Record], executor: str) -> Record | None:
    wanted = (executor, "symbolic", "template", "attack_success")
    keys = ("executor", "world", "attacker", "metric")
    found = next((row for row in rows if tuple(row[key] for key in keys) == wanted), None)
    return found if found is not None and found["mean"] is not None else None


def _ablations(data: Record) -> str:
    lines: dict[tuple[str, ...], dict[str, str]] = {}
    for row in data["ablations"]:
        key = (row["switch"], row["world"], row["tasks"], f"{row['seeds']}")
        lines.setdefault(key, {})[f"{row['attacker']} {row['metric']}"] = _difference(row)
    wanted = ["none strict", "learned strict", "template strict", "learned attack_success", "template attack_success"]
    heads = ["switched off", "world", "tasks", "seeds"]
    heads += ["clean strict", "learned strict", "template strict", "learned attack success", "template attack success"]
    table = _table(heads, [[*key, *(by.get(name, "–") for name in wanted)] for key, by in lines.items()], 5)
    cost = [
        [c["switch"], *(f"{c[k]:.1f}" for k in ("rollouts", "learned_from", "executor_updates", "proposer_rounds"))]
        for c in data["compute"]
    ]
    return "\n\n".join(
        [
            "The last checkpoint without a mechanism against the full method's, in points: below zero in strict, the "
            "mechanism helped. `learned` are the adversaries that each run trained for itself, so that a weaker "
            "adversary looks like a stronger executor there; `none` and `template` are the same for all.",
            table,
            "What training cost, a training seed (counted in the ledgers):",
            _table(
                ["switched off", "executor rollouts", "learned from", "executor updates", "proposer rounds"], cost, 4
            ),
        ]
    )


def charts(data: Record) -> dict[str, str]:
    """The plots by file name, each a whole SVG document."""
    found = {}
    rows = [row for row in data["rows"] if row["world"] == "symbolic"] or data["rows"]
    order = list(dict.fromkeys(row["executor"] for row in rows))
    for metric, title in (("strict", "Strict success"), ("attack_success", "Attack success")):
        means = {(row["executor"], row["attacker"]): row["mean"] for row in reversed(rows) if row["metric"] == metric}
        lines = [
            svg.Line(f"{title.lower()}, {attacker}", tuple((name, means.get((name, attacker))) for name in order))
            for attacker in COMPARED
            if any(means.get((name, attacker)) is not None for name in order)
        ]
        if lines:
            found[f"results-{metric.replace('_', '-')}.svg"] = _alone(svg.chart(f"{title} by checkpoint", lines))
    full = [point for point in data["curves"] if point["switch"] == "full"]
    if full:
        rewards = [_line(full, f"{role}'s mean reward", f"{role}_reward") for role in _ROLES]
        found["results-rewards.svg"] = _alone(svg.chart("Rewards by round", rewards, -1.0, 1.0))
        shares = [_line(full, f"{text} that parse", key) for text, key in _VALID]
        found["results-proposals.svg"] = _alone(svg.chart("Proposals by round", shares))
        found["results-curriculum.svg"] = _alone(svg.chart("Solve rates and groups by round", _curriculum(data)))
    return found


_ROLES = ("executor", "curriculum", "adversary")
_VALID = (("curriculum's proposals", "tasks_valid"), ("adversary's proposals", "attacks_valid"))


def _curriculum(data: Record) -> list[svg.Line]:
    """The curriculum's work, against the uniform switch where that was run."""
    lines = []
    for name, note in (("full", ""), ("uniform-reward", ", uniform reward")):
        points = [point for point in data["curves"] if point["switch"] == name]
        if points:
            lines.append(_line(points, f"median p̂ of the valid proposals{note}", "p_hat_median"))
            lines.append(_line(points, f"share of groups without variance{note}", "zero_variance"))
    return lines


def _line(points: Sequence[Record], name: str, key: str) -> svg.Line:
    return svg.Line(name, tuple((f"{point['stage']} · {point['round']}", point[key]) for point in points))


def _alone(chart: str) -> str:
    """A chart as a file of its own, which has no page's style to rely on."""
    head, end, rest = chart.partition(">")
    return head + end + _STYLE + rest


def _folded(table: str) -> str:
    return f"<details><summary>all strata</summary>\n\n{table}\n\n</details>"


def _table(heads: Sequence[str], body: Sequence[Sequence[str]], numbers: int) -> str:
    """A Markdown table; the last `numbers` columns are set to the right."""
    rule = "---|" * (len(heads) - numbers) + "--:|" * numbers
    lines = [f"| {' | '.join(heads)} |", f"|{rule}", *(f"| {' | '.join(map(_text, line))} |" for line in body)]
    return "\n".join(lines)


def _text(text: str) -> str:
    """Any text inside a table or a list: never markup."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return plain.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "'")


def _put(target: Path, text: str) -> None:
    """Whole or not at all."""
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
