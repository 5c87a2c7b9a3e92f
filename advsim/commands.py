"""What the commands do: from arguments to libraries to files and tables."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import itertools
import json
import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advsim.console import Failure, UsageError, printable, progress, show, show_cells
from advsim.disk import write_whole

if TYPE_CHECKING:
    from advsim.agents.protocol import Attacker, Executor
    from advsim.ledger import Row
    from advsim.task import Task
    from browser_eval.html import Skin
    from browser_eval.site import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """`advsim eval`, its arguments as given."""

    world: str
    executor: str
    attacker: str
    tasks: str
    limit: int
    seeds: tuple[int, ...]
    json_out: Path | None
    ledger: Path | None
    max_actions: int
    jobs: int
    skin: Skin
    page: Path | None
    task: Path | None
    backbone: str | None

    def run(self) -> None:
        """Run it, write what was asked for, print the table.

        Raises:
            UsageError: An argument names what does not exist or does not fit another.
            Failure: Every episode failed.
        """
        from advsim.evaluate import spread

        if (self.page is None) != (self.task is None):
            raise UsageError("--page and --task belong together: the page's HTML and the task's JSON")
        if self.skin != "native" and self.world != "browser":
            raise UsageError("--skin needs --world browser: the symbolic world shows no HTML")
        if self.json_out is not None:
            _check_target(self.json_out)
        if self.ledger is not None:
            _check_folder(self.ledger)
        site: Site | None = None
        if self.page is not None and self.task is not None:
            chosen, site = self._page_task(self.page, self.task)
        else:
            chosen = spread(load_tasks(self.tasks), self.limit)
        if not chosen:
            raise UsageError(f"--tasks {self.tasks}: holds no task")
        executor, attacker = self._agents(chosen)
        self._check_fit(chosen, executor, attacker)
        began = time.perf_counter()
        rows = asyncio.run(self._episodes(chosen, site, executor, attacker))
        wall_s = time.perf_counter() - began
        if self.world == "browser" and self.skin != "native":
            rows = [dataclasses.replace(row, world=f"browser/{self.skin}") for row in rows]
        if self.ledger is not None:
            self._keep(self.ledger, rows)
        self._report(rows, wall_s)

    def _keep(self, folder: Path, rows: Sequence[Row]) -> None:
        """One part a seed, named after what was run: the same evaluation again takes its place, it is not added."""
        from advsim.ledger import Ledger

        first = rows[0]
        what = [first.policy, first.checkpoint, first.attacker, first.attacker_checkpoint, first.world]
        what += [first.world_version, str(self.max_actions), *sorted({row.task_hash for row in rows})]
        name = hashlib.sha256("\n".join(what).encode()).hexdigest()[:16]
        for seed in self.seeds:
            Ledger(folder).write([row for row in rows if row.seed == seed], f"eval-{name}-{seed}")

    def _page_task(self, page: Path, task: Path) -> tuple[list[Task], Site]:
        if self.world != "browser":
            raise UsageError("--page needs --world browser: the symbolic world knows generated forms only")
        from browser_eval.pages import load_page_task

        loaded, site = load_page_task(page, task)
        return [loaded], site

    def _agents(self, tasks: Sequence[Task]) -> tuple[Executor, Attacker | None]:
        from advsim.agents.named import agents

        try:
            return agents(self.executor, self.attacker, tasks, backbone=self.backbone)
        except ValueError as error:
            raise UsageError(str(error)) from error

    def _check_fit(self, tasks: Sequence[Task], executor: Executor, attacker: Attacker | None) -> None:
        """Find out before the first episode that somebody cannot meet a task."""
        for task in tasks:
            if self.world == "symbolic" and task.form is None:
                raise UsageError(f"task {task.id}: has no form, and the symbolic world knows forms only")
            try:
                executor.begin(task, 0)
                if attacker is not None:
                    attacker.begin(task, 0)
            except ValueError as error:
                raise UsageError(str(error)) from error

    async def _episodes(
        self, tasks: Sequence[Task], site: Site | None, executor: Executor, attacker: Attacker | None
    ) -> list[Row]:
        from advsim.evaluate import evaluate, worlds

        title = f"{self.executor} · {self.attacker} · {self.world}"
        # Asked of what was loaded anyway, so that scripted executors need no torch.
        engine = getattr(executor, "engine", None)
        sampled = (lambda: int(engine.stats.sampled)) if engine is not None else None
        async with worlds(self.world, jobs=self.jobs, skin=self.skin, site=site) as make_world:
            with progress(title, sampled) as on_progress:
                return await evaluate(
                    tasks,
                    make_world,
                    executor,
                    [attacker],
                    seeds=self.seeds,
                    max_actions=self.max_actions,
                    concurrency=self.jobs,
                    on_progress=on_progress,
                )

    def _report(self, rows: Sequence[Row], wall_s: float) -> None:
        from advsim.report import tables

        rollouts = tables.observe(rows)
        total = tables.cell(rollouts, rows[0].policy, rows[0].world, rows[0].attacker, rows[0].split)
        strata = tables.evaluation(rollouts, lambda r: r.stratum)
        if self.json_out is not None:
            figures = {
                **total.as_dict(),
                "wall_s": round(wall_s, 3),
                "episode_s": round(total.wall_s, 3),
                "distinct_tasks": len({row.task_hash for row in rows}),
                "seeds": list(self.seeds),
                "executor_checkpoint": rows[0].checkpoint,
                "attacker_checkpoint": rows[0].attacker_checkpoint,
                "world_version": rows[0].world_version,
                "strata": {cell.stratum: cell.as_dict() for cell in strata},
                "failures": sorted({row.error for row in rows if row.error})[:10],
            }
            write_json(self.json_out, figures)
        show_cells([total])
        if len(strata) > 1:
            show_cells(strata)
        print(f"{total.n} episodes in {wall_s:.1f} s")
        if total.errors == total.n:
            raise Failure(f"all {total.n} episodes failed; the first one: {next(r.error for r in rows if r.error)}")


def load_tasks(source: str) -> list[Task]:
    """The tasks of a frozen benchmark or a file. Raises TaskFileError."""
    from benchmark_forms import load

    return load(source)


def list_tasks(split: str, n: int, seed: int, setting: str | None, *, as_json: bool, out: Path | None) -> None:
    """`advsim tasks`. Raises UsageError for an unknown setting, or one with a frozen split."""
    from benchmark_forms import SETTINGS, save, stream

    if split == "train":
        if setting is not None and setting not in SETTINGS:
            raise UsageError(f"--setting: expected one of {', '.join(SETTINGS)}, got {setting!r}")
        drawn = stream(seed, settings=(setting,)) if setting is not None else stream(seed)
        found = list(itertools.islice(drawn, n or 10))
    else:
        if setting is not None:
            raise UsageError(f"--setting is for --split train; {split} is frozen")
        found = load_tasks(split)[: n or None]
    if out is not None:
        _check_target(out)
        save(out, found)
    if as_json:
        for task in found:
            print(task.model_dump_json(exclude_defaults=True))
    elif out is None:
        show(
            ["id", "stratum", "fields", "goal"],
            [[t.id, t.stratum, str(len(t.expectation.values)) if t.expectation else "", t.goal] for t in found],
        )
    else:
        print(f"{len(found)} tasks written to {out}")


def find_task(task_id: str) -> Task:
    """A task by its id: of a frozen benchmark, or generated again from family/setting/seed. Raises UsageError."""
    from benchmark_forms import SETTINGS, families, generate

    for split in ("bench", "bench-small"):
        for task in load_tasks(split):
            if task.id == task_id:
                return task
    parts = task_id.split("/")
    if len(parts) == 3 and parts[0] in families() and parts[1] in SETTINGS and re.fullmatch(r"[0-9]{1,18}", parts[2]):
        return generate(parts[0], parts[1], int(parts[2]))
    raise UsageError(
        f"no task {task_id!r} in bench or bench-small, and it is no family/setting/seed (see `advsim tasks`)"
    )


def show_page(task_id: str, *, html: bool, skin: Skin) -> None:
    """`advsim page`."""
    task = find_task(task_id)
    if task.form is None:
        raise UsageError(f"task {task_id} has no form to show")
    if html:
        from browser_eval.html import form_page

        print(form_page(task.form, "/submit", skin))
        return
    from advsim.world.symbolic import first_page

    print(f"{printable(task.goal)}\n\n{first_page(task.form).text}")


def make_report(run: Path, *, markdown: bool = False) -> None:
    """`advsim report`. Raises UsageError when there is no ledger."""
    from advsim.ledger import Ledger
    from advsim.report import html, tables

    ledger = next((folder for folder in (run / "ledger", run) if (folder / "rollouts").is_dir()), None)
    if ledger is None:
        raise UsageError(f"{run}: holds no ledger (expected {run / 'ledger'} or {run / 'rollouts'})")
    target = html.write(run, ledger)
    show_cells(tables.evaluation(tables.load(Ledger(ledger))), markdown=markdown)
    if not markdown:
        print(f"report: {target}")


def train(config: Path, out: Path | None, parts: tuple[str, ...], processes: int = 1) -> None:
    """`advsim run`, `stage1`, `stage2`; a run that ends shows its table. Raises ConfigError before anything starts."""
    from advsim.config import load

    loaded = load(config)
    from advsim.training.run import run

    folder = out if out is not None else Path("runs") / loaded.name
    run(loaded, folder, parts, processes)
    if "report" in parts:
        from advsim.ledger import Ledger
        from advsim.report import tables

        show_cells(tables.evaluation(tables.load(Ledger(folder / "ledger"))))


def run_study(
    config: Path,
    out: Path | None,
    docs: Path,
    *,
    train_seeds: int,
    rollout_seeds: int | None,
    switches: Sequence[str] = (),
    at_once: int = 1,
) -> None:
    """`advsim study` and, with switches, `advsim ablate`: the runs that are missing, then the results.

    Raises:
        ConfigError: The configuration cannot be used.
        UsageError: A switch is unknown or off already, or the results cannot be written where they are to go.
    """
    from advsim.config import ABLATIONS, load

    loaded = load(config)
    for name in switches:
        if name not in ABLATIONS:
            raise UsageError(f"--switch: expected one of {', '.join(ABLATIONS)}, got {name!r}")
        if all(getattr(loaded.switches, key) == value for key, value in ABLATIONS[name].items()):
            raise UsageError(f"--switch {name}: {config} has it off already, so there is nothing to compare with")
    _check_folder(docs)
    from advsim.training.study import jobs, study

    folder = out if out is not None else Path("runs") / f"{loaded.name}-study"
    work = jobs(loaded, folder, train_seeds=train_seeds, rollout_seeds=rollout_seeds, switches=switches)
    study(work, at_once)
    make_results(folder, docs)


def make_results(folder: Path, docs: Path, abridged: Path | None = None) -> None:
    """`advsim results`. Raises UsageError when the folder holds no study, or one to write to cannot be used."""
    from advsim.report import results
    from advsim.report.study import ledgers

    if not ledgers(folder):
        raise UsageError(f"{folder}: holds no study (expected {folder / 'seed0' / 'ledger'}, as `advsim study` leaves)")
    for target in (docs, abridged):
        if target is not None:
            _check_folder(target)
    data = results.write(folder, docs, abridged)
    print(f"{len(data['rows'])} rows, {len(data['differences'])} differences: {docs / 'RESULTS.md'}")


def measure_speed(json_out: Path | None) -> None:
    """`advsim speed`."""
    if json_out is not None:
        _check_target(json_out)
    from advsim.speed import measure

    figures = measure()
    if json_out is not None:
        write_json(json_out, figures)


def write_json(target: Path, value: Any) -> None:
    """Write JSON whole or not at all. Raises OSError."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    write_whole(target, f"{text}\n".encode("utf-8", "backslashreplace"))


def _check_target(path: Path) -> None:
    """Find out before the work, not after it, that a file cannot be written. Raises UsageError."""
    folder = path.parent
    if path.is_dir():
        raise UsageError(f"{path}: is a folder, expected a file to write")
    if path.exists() and not path.is_file():
        return  # a pipe or a device
    if not folder.is_dir():
        raise UsageError(f"{path}: the folder {folder} does not exist")
    if not os.access(folder, os.W_OK):
        raise UsageError(f"{path}: the folder {folder} cannot be written to")


def _check_folder(path: Path) -> None:
    """Likewise for a folder that is made if it is not there. Raises UsageError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{path}: expected a folder to write to: {error.strerror}") from error
    if not os.access(path, os.W_OK):
        raise UsageError(f"{path}: the folder cannot be written to")
