"""A rollout as a row: its columns, and the way to and from Parquet records."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import pyarrow as pa

from advsim.task import Attack, Notice, Outcome, Step, Trajectory, Verdict

SCHEMA_VERSION = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One rollout. None means "not known here" or "does not apply".

    Attributes:
        run, config_hash, train_seed: Which training run it belongs to.
        stage: `stage1`, `stage2` or `eval`. round: From 1; 0 outside rounds. phase: What it served in its round, e.g.
            `propose`, `assess`, `control`, `attack`, `update`, `eval`. update: The role's update count before it.
        role: `executor`, `curriculum` or `adversary`: whose tokens the completions are.
        policy, checkpoint: Name and hash of the weights (or version of the script) that played the role.
        attacker, attacker_checkpoint: Likewise for who attacked; "none" and "" without an attacker.
        group, index: Rollouts that are compared with each other share a group; the place within it.
        task_id, task_hash, family, stratum, setting, generation, split, goal: The task; the hash is its content's.
        world, world_version, seed: Where and with which seed.
        max_actions: Most turns that the episode had; a proposal has none.
        steps: The trajectory's steps; a proposal has one, whose page is the prompt.
        final_page: The page after the last step.
        outcome, attack: As in `Trajectory`; the notice stands in its step.
        rendered: Whether the injection was shown (gate of `docs/method.md` §3.12, and not softened or dropped).
        feasible: Whether the task could still be done after it.
        verdicts: Each verifier's; `strict_good` repeats the strict one for queries.
        good: The verdict that the reward used.
        correct_fields, target_fields: The strict check's partial figure.
        followed: Whether the attack's declared target was taken. first_wrong: See `trace.first_wrong_step`.
        valid: Whether a proposal parsed. p_hat: Solve rate of its task, measured before the update.
        reward, advantage: As given to the learner.
        error: What failed in the infrastructure; then there is no verdict and no reward.
        wall_s: Seconds; no part of the row's identity.
    """

    run: str = ""
    config_hash: str = ""
    train_seed: int = 0
    stage: str = "eval"
    round: int = 0
    phase: str = "eval"
    update: int = 0
    role: str = "executor"
    policy: str
    checkpoint: str
    attacker: str = "none"
    attacker_checkpoint: str = ""
    group: str = ""
    index: int = 0
    task_id: str
    task_hash: str
    family: str = ""
    stratum: str = ""
    setting: str = ""
    generation: int = 0
    split: str = ""
    goal: str = ""
    world: str
    world_version: str
    seed: int
    max_actions: int | None = None
    steps: tuple[Step, ...] = ()
    final_page: str = ""
    outcome: Outcome | None = None
    attack: Attack | None = None
    rendered: bool | None = None
    feasible: bool | None = None
    verdicts: tuple[Verdict, ...] = ()
    strict_good: bool | None = None
    good: bool | None = None
    correct_fields: int | None = None
    target_fields: int | None = None
    followed: bool | None = None
    first_wrong: int | None = None
    valid: bool | None = None
    p_hat: float | None = None
    reward: float | None = None
    advantage: float | None = None
    error: str | None = None
    wall_s: float = 0.0

    @property
    def trajectory(self) -> Trajectory:
        """The rollout as the rest of the program speaks of it."""
        return Trajectory(self.task_id, self.steps, self.final_page, self.outcome, self.attack, self.error)


def _struct(**columns: pa.DataType) -> pa.DataType:
    return pa.struct(list(columns.items()))


_TEXT = pa.string()
_TEXTS = pa.list_(_TEXT)
_NOTICE = _struct(status=_TEXT, rule=_TEXT, kind=_TEXT, text=_TEXT, control=_TEXT)
_ATTACK = _struct(instruction=_TEXT, marker=_TEXT, turn=pa.int32(), target=_TEXT, goal=_TEXT, source=_TEXT)
_OUTCOME = _struct(
    submitted=pa.bool_(),
    values=pa.list_(_struct(key=_TEXT, value=_TEXT)),
    events=pa.list_(_struct(kind=_TEXT, key=_TEXT)),
)
_VERDICT = _struct(good=pa.bool_(), verifier=_TEXT, version=_TEXT, reasons=_TEXTS)

# Attributes of `Row` that are stored otherwise than as one plain column of their name.
_SPECIAL: dict[str, dict[str, pa.DataType]] = {
    # A step is spread over parallel lists; a rollout has at most one notice, at `notice_step`.
    "steps": {
        "actions": _TEXTS,
        "completions": _TEXTS,
        "step_errors": _TEXTS,
        "notice_step": pa.int32(),
        "notice": _NOTICE,
    },
    "final_page": {"pages": _TEXTS},  # hashes: the page of each step, and the final page
    "outcome": {"outcome": _OUTCOME},
    "attack": {"attack": _ATTACK},
    "verdicts": {"verdicts": pa.list_(_VERDICT)},
    "wall_s": {},
}
_PLAIN = {"str": _TEXT, "int": pa.int64(), "bool": pa.bool_(), "float": pa.float64()}
_NAMES = [f.name for f in fields(Row) if f.name not in _SPECIAL]


def _columns(name: str, annotation: str) -> dict[str, pa.DataType]:
    """The columns that hold one attribute of `Row`."""
    return _SPECIAL[name] if name in _SPECIAL else {name: _PLAIN[annotation.removesuffix(" | None")]}


SCHEMA = pa.schema(
    [column for f in fields(Row) for column in _columns(f.name, str(f.type)).items()],
    metadata={"advsim.ledger": str(SCHEMA_VERSION)},
)
"""Columns of `rollouts`."""
PAGES = pa.schema([("hash", pa.string()), ("text", pa.large_string())], metadata=SCHEMA.metadata)
TIMINGS = pa.schema([("wall_s", pa.float64())], metadata=SCHEMA.metadata)


def page_hash(text: str) -> str:
    """SHA-256 (hex) of a page's text."""
    return hashlib.sha256(text.encode()).hexdigest()


def _clean(text: str) -> str:
    """Text that UTF-8 can hold: a lone surrogate (a model can write one) becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if not text.isascii() else text


def flatten(row: Row, texts: dict[str, str]) -> dict[str, Any]:
    """The row as a record of `SCHEMA`; its pages are added to `texts` by hash."""
    hashes = []
    for text in [_clean(step.page) for step in row.steps] + [_clean(row.final_page)]:
        key = page_hash(text)
        texts[key] = text
        hashes.append(key)
    record: dict[str, Any] = {name: getattr(row, name) for name in _NAMES}
    record = {name: _clean(value) if isinstance(value, str) else value for name, value in record.items()}
    noticed = next((index for index, step in enumerate(row.steps) if step.notice is not None), None)
    record |= {
        "actions": [_clean(step.action) for step in row.steps],
        "completions": [_clean(step.completion) for step in row.steps],
        "step_errors": [_clean(step.error) for step in row.steps],
        "notice_step": noticed,
        "notice": _plain(row.steps[noticed].notice) if noticed is not None else None,
        "pages": hashes,
        "outcome": None,
        "attack": _plain(row.attack),
        "verdicts": [_plain(verdict) for verdict in row.verdicts],
    }
    if row.outcome is not None:
        record["outcome"] = {
            "submitted": row.outcome.submitted,
            "values": [{"key": _clean(k), "value": _clean(v)} for k, v in row.outcome.values.items()],
            "events": [{"kind": kind, "key": _clean(key)} for kind, key in row.outcome.events],
        }
    return record


def _plain(value: Attack | Notice | Verdict | None) -> dict[str, Any] | None:
    if value is None:
        return None
    pairs = {f.name: getattr(value, f.name) for f in fields(value)}
    return {k: _clean(v) if isinstance(v, str) else list(v) if isinstance(v, tuple) else v for k, v in pairs.items()}


def restore(record: Mapping[str, Any], texts: Mapping[str, str], wall_s: float) -> Row:
    """The inverse of `flatten`; raises KeyError for a page that is not stored."""
    pages = [texts[key] for key in record["pages"]]
    notice = Notice(**record["notice"]) if record["notice"] is not None else None
    steps = tuple(
        Step(page, completion, action, error, notice if index == record["notice_step"] else None)
        for index, (page, completion, action, error) in enumerate(
            zip(pages, record["completions"], record["actions"], record["step_errors"], strict=False)
        )
    )
    outcome = record["outcome"]
    return Row(
        **{name: record[name] for name in _NAMES},
        steps=steps,
        final_page=pages[-1],
        outcome=Outcome(
            outcome["submitted"],
            {item["key"]: item["value"] for item in outcome["values"]},
            tuple((item["kind"], item["key"]) for item in outcome["events"]),
        )
        if outcome is not None
        else None,
        attack=Attack(**record["attack"]) if record["attack"] is not None else None,
        verdicts=tuple(
            Verdict(v["good"], v["verifier"], v["version"], tuple(v["reasons"])) for v in record["verdicts"]
        ),
        wall_s=wall_s,
    )
