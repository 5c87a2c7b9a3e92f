"""`report.html`: one file, no script, readable in any browser and on paper.

A report shows pages and attacks that were written to make a reader act. They are data here: every text goes through
`html.escape`, the document's policy forbids scripts, images, forms and any request, and long texts are cut for display.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

from advsim.disk import write_whole
from advsim.ledger import Ledger, Row
from advsim.report import svg, tables
from advsim.report.provenance import provenance
from advsim.report.samples import choose

LONGEST_TEXT = 600
LONGEST_PAGE = 6000

_STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1d2329; background: #fff; max-width: 72rem; margin: 2rem auto;
  padding: 0 1.2rem; }
h1 { font-size: 1.6rem; margin: 0 0 .3rem; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: #55606b; padding-bottom: .4rem; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #dde2e7; vertical-align: top; }
th { font-weight: 600; border-bottom-color: #8c97a2; } .n { text-align: right; }
.ci { color: #6a7580; font-size: .85em; white-space: nowrap; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: .6rem 0; }
dt { color: #55606b; } dd { margin: 0; overflow-wrap: anywhere; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(22rem, 1fr)); gap: 1rem; }
svg text { font: 11px system-ui, sans-serif; fill: #3c4650; } .grid { stroke: #e3e7eb; }
pre { font: 12.5px/1.45 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; background: #f5f7f9;
  padding: .6rem .8rem; margin: .4rem 0; border-radius: 4px; tab-size: 2; }
code { font: 12.5px ui-monospace, monospace; overflow-wrap: anywhere; }
details { margin: .25rem 0; } summary { cursor: pointer; }
mark { background: #ffe2c4; } .good { color: #23683f; } .bad { color: #a3301c; } .error { color: #7a4a00; }
article { border-top: 1px solid #dde2e7; padding: .4rem 0; }
article details details { margin-left: 1rem; } .note { color: #55606b; }
"""
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY = f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'none'"


def write(run: Path, ledger: Path) -> Path:
    """Write `report.html` into a run's folder.

    Args:
        run: The folder.
        ledger: The ledger's folder.

    Returns:
        The file.

    Raises:
        LedgerError: The ledger is missing or damaged.
        OSError: The file cannot be written.
    """
    rows = list(Ledger(ledger).rows())
    target = run / "report.html"
    write_whole(target, page(rows).encode())
    return target


def page(rows: Sequence[Row]) -> str:
    """The report as HTML text."""
    rollouts = tables.observe(rows)
    facts = provenance(rows)
    title = facts.get("run", "AdvSim report")
    sections = [
        _header(title, facts),
        _cells("Results", _RESULTS_NOTE, tables.evaluation(rollouts), ""),
        _cells("By stratum", "", tables.evaluation(rollouts, lambda r: r.stratum or "(none)"), "stratum"),
        _cells("By family", "", tables.evaluation(rollouts, lambda r: r.family or "(none)"), "family"),
        _learning(tables.rounds(rollouts)),
        _samples(choose(rows)),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_text(title)}</title><style>{_STYLE}</style></head><body>\n"
        + "\n".join(section for section in sections if section)
        + "\n</body></html>\n"
    )


_RESULTS_NOTE = (
    "n: episodes, errors of infrastructure included; every rate is over the others. Strict: good by the deterministic "
    "check. Attack success: share of the episodes with a shown injection (their number is beside it) in which the "
    "declared target was taken and the check failed; high is bad. Hijack begun: the target was taken, whatever came "
    "of it. Brackets: 95 % intervals, Wilson's for one rollout a task, else a bootstrap over tasks and training seeds."
)


def _header(title: str, facts: Mapping[str, str]) -> str:
    items = "".join(f"<dt>{_text(key)}</dt><dd>{_text(value)}</dd>" for key, value in facts.items())
    return f"<h1>{_text(title)}</h1><dl>{items}</dl>"


def _cells(title: str, note: str, cells: Sequence[tables.Cell], by: str) -> str:
    if not cells:
        return f"<h2>{title}</h2><p>No evaluation episodes in this ledger.</p>" if not by else ""
    if by == "family" and len({cell.stratum for cell in cells}) < 2:
        return ""
    limited = len({cell.max_actions for cell in cells}) > 1
    heads = ["executor", "world", "attacker", "tasks", *(["max actions"] if limited else []), *([by] if by else [])]
    numbers = ["n", "errors", "strict %", "correct fields", "attack success %", "hijack begun %"]
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    head += "".join(f'<th scope="col" class="n">{name}</th>' for name in numbers)
    body = []
    for cell in cells:
        names = [cell.executor, cell.world, cell.attacker, cell.tasks]
        names += [str(cell.max_actions)] if limited else []
        names += [cell.stratum] if by else []
        values = [
            str(cell.n),
            str(cell.errors),
            _rate(cell.strict, cell.strict_interval),
            f"{cell.correct_fields} of {cell.target_fields}",
            _rate(cell.attack_success, cell.attack_success_interval)
            + (f" of {cell.attacked}" if cell.attacked else ""),
            _rate(cell.followed, None),
        ]
        row = "".join(f"<td>{_text(name)}</td>" for name in names)
        body.append(f"<tr>{row}" + "".join(f'<td class="n">{value}</td>' for value in values) + "</tr>")
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    if by:  # long: folded away until asked for
        return f"<details><summary>{title} ({len(cells)} lines)</summary>{table}</details>"
    return f'<h2>{title}</h2>{table}<p class="note">{escape(note)}</p>'


def _learning(rounds: Sequence[tables.Round]) -> str:
    if not rounds:
        return ""
    labels = [f"{r.stage} · {r.round}" for r in rounds]

    def line(name: str, values: Iterable[float | None]) -> svg.Line:
        return svg.Line(name, tuple(zip(labels, values, strict=True)))

    rewards = [
        line("executor's mean reward", [r.executor_reward for r in rounds]),
        line("curriculum's mean reward", [r.curriculum_reward for r in rounds]),
        line("adversary's mean reward", [r.adversary_reward for r in rounds]),
    ]
    shares = [
        line("median solve rate p̂ of the round's tasks", [r.p_hat_median for r in rounds]),
        line("share of update groups without variance", [r.zero_variance for r in rounds]),
        line("share of the curriculum's proposals that parse", [r.tasks_valid for r in rounds]),
        line("share of the adversary's proposals that parse", [r.attacks_valid for r in rounds]),
    ]
    return (
        '<h2>Learning, round by round</h2><div class="charts">'
        f"<figure>{svg.chart('Rewards by round', rewards, -1.0, 1.0)}</figure>"
        f"<figure>{svg.chart('Solve rates and groups by round', shares)}</figure></div>"
    )


def _samples(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    return "<h2>Sample trajectories</h2>" + "".join(_sample(row) for row in rows)


def _sample(row: Row) -> str:
    verdict, kind = ("error", "error") if row.error else ("no verdict", "error")
    if row.strict_good is not None:
        verdict, kind = ("good", "good") if row.strict_good else ("bad", "bad")
    facts = [("goal", row.goal), ("task", row.task_id), ("seed", str(row.seed))]
    if row.attack is not None:
        shown = "shown" if row.rendered else "not shown"
        facts.append(("attack", f"turn {row.attack.turn}, {row.attack.goal}, {shown}: {row.attack.instruction}"))
        facts.append(("target", row.attack.target or "none declared"))
    for given in row.verdicts:
        facts.append((f"{given.verifier} {given.version}", "; ".join(given.reasons) or "good"))
    if row.error:
        facts.append(("error", row.error))
    items = "".join(f"<dt>{_text(key)}</dt><dd>{_text(value)}</dd>" for key, value in facts)
    steps = []
    for number, step in enumerate(row.steps, start=1):
        wrong = ' <span class="bad">(first wrong step)</span>' if number == row.first_wrong else ""
        act = f"<code>{_text(step.action or step.completion)}</code>"
        problem = f' <span class="error">{_text(step.error)}</span>' if step.error else ""
        notice = ""
        if step.notice is not None:
            why = f", {step.notice.rule}" if step.notice.rule else ""
            how = f"injection {escape(step.notice.status)}{_text(why)}"
            notice = f"<p>{how}: <mark>{_text(step.notice.text)}</mark></p>"
        summary = f"<summary>{number}. {act}{problem}{wrong}</summary>"
        steps.append(f"<details>{summary}{_tree(step.page, row)}</details>{notice}")
    steps.append(f"<details><summary>last page</summary>{_tree(row.final_page, row)}</details>")
    who = f"<strong>{_text(row.policy)} · {_text(row.world)} · {_text(row.attacker)}</strong>"
    head = f'<summary>{who} <span class="{kind}">{verdict}</span> {_text(row.goal)}</summary>'
    return f"<article><details>{head}<dl>{items}</dl>{''.join(steps)}</details></article>"


def _tree(text: str, row: Row) -> str:
    """A page's text, with the lines that show the notice marked."""
    notice = next((step.notice for step in row.steps if step.notice is not None and step.notice.text), None)
    cut = _cut(text, LONGEST_PAGE)
    if notice is None:
        return f"<pre>{escape(cut)}</pre>"
    shown = notice.text[:60]
    lines = [f"<mark>{escape(line)}</mark>" if shown in line else escape(line) for line in cut.split("\n")]
    return "<pre>" + "\n".join(lines) + "</pre>"


def _rate(value: float | None, interval: tuple[float, float] | None) -> str:
    """A rate in per cent with its interval; an en dash where nothing was counted."""
    if value is None:
        return "–"
    text = f"{100 * value:.1f}"
    return f'{text} <span class="ci">[{100 * interval[0]:.1f}, {100 * interval[1]:.1f}]</span>' if interval else text


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text):,} characters, cut here)"


def _text(text: str) -> str:
    """Any text, cut and escaped."""
    return escape(_cut(text, LONGEST_TEXT))
