"""The command line; thin. Everything heavy is imported by the command that needs it.

Exit codes: 0; 1 when something failed although it was asked for rightly; 2 when it was asked for wrongly
(arguments, configuration, task file). Either way one line on standard error says what, why and what to do.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from advsim import __version__
from advsim.console import Failure, UsageError, complain

app = typer.Typer(
    help="Train and measure web agents against indirect prompt injection, in simulation and in a real browser.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)

Out = Annotated[Path | None, typer.Option("--out", help="The run's folder; an interrupted run there goes on.")]
ConfigFile = Annotated[Path, typer.Argument(help="A configuration, such as configs/tiny.yaml.")]


TrainSeeds = Annotated[int, typer.Option(min=1, max=1000, help="Runs: the configuration's seed and those after it.")]
RolloutSeeds = Annotated[
    int | None,
    typer.Option(min=1, max=1000, help="Episodes of each task in the evaluation; as the configuration says if unset."),
]
Jobs = Annotated[int, typer.Option(min=1, max=1000, help="Runs at a time, each in a process of its own.")]
Docs = Annotated[Path, typer.Option(help="Where RESULTS.md, results.json and the plots go.")]
StudyOut = Annotated[
    Path | None, typer.Option("--out", help="The study's folder, runs/NAME-study by default; it goes on there.")
]


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        print(__version__)
        raise typer.Exit


@app.command("eval")
def evaluate(
    world: Annotated[Literal["symbolic", "browser"], typer.Option(help="Where the episodes run.")] = "symbolic",
    executor: Annotated[
        str, typer.Option(help="oracle, wary, obedient, random, noop, base, or an adapter's folder.")
    ] = "oracle",
    attacker: Annotated[str, typer.Option(help="none, template, reactive, or an adapter's folder.")] = "none",
    tasks: Annotated[str, typer.Option(help="bench, bench-small, or a task file.")] = "bench-small",
    limit: Annotated[int, typer.Option(min=0, help="This many tasks, spread over the file; 0: all.")] = 0,
    seeds: Annotated[str, typer.Option(help="Rollout seeds, separated by commas.")] = "0",
    json_out: Annotated[Path | None, typer.Option("--json", help="Write the figures here.")] = None,
    ledger: Annotated[Path | None, typer.Option(help="Add every episode to this ledger folder.")] = None,
    max_actions: Annotated[int, typer.Option(min=1, max=1000, help="Most actions an episode.")] = 12,
    jobs: Annotated[
        int | None, typer.Option(min=1, max=4096, help="Episodes at a time; by default 64, in the browser 4.")
    ] = None,
    skin: Annotated[
        Literal["native", "aria", "legacy"], typer.Option(help="How the browser dresses forms.")
    ] = "native",
    page: Annotated[Path | None, typer.Option(help="An HTML file to evaluate on (with --task; browser).")] = None,
    task: Annotated[Path | None, typer.Option(help="The JSON task that belongs to --page.")] = None,
    backbone: Annotated[
        str | None, typer.Option(help="The model below adapters: embedded, or a folder. By default that of their run.")
    ] = None,
) -> None:
    """Measure an executor under an attacker in a world.

    Example: `advsim eval --world browser --executor obedient --attacker template --tasks bench --json out.json`
    """
    from advsim.commands import Evaluation

    request = Evaluation(
        world=world,
        executor=executor,
        attacker=attacker,
        tasks=tasks,
        limit=limit,
        seeds=_seeds(seeds),
        json_out=json_out,
        ledger=ledger,
        max_actions=max_actions,
        jobs=jobs or (4 if world == "browser" else 64),
        skin=skin,
        page=page,
        task=task,
        backbone=backbone,
    )
    request.run()


@app.command()
def run(
    config: ConfigFile,
    out: Out = None,
    jobs: Annotated[
        int, typer.Option(min=1, max=1000, help="Checkpoints evaluated at a time, each in a process of its own.")
    ] = 1,
) -> None:
    """Do the whole job: both stages, evaluation, report. Again with the same folder, it goes on where it stopped.

    Example: `advsim run configs/smoke.yaml --out runs/first`
    """
    _train(config, out, ("stage1", "stage2", "evaluate", "report"), jobs)


@app.command()
def stage1(config: ConfigFile, out: Out = None) -> None:
    """Train curriculum and executor: the first half of `advsim run`.

    Example: `advsim stage1 configs/tiny.yaml --out runs/mine`
    """
    _train(config, out, ("stage1",))


@app.command()
def stage2(config: ConfigFile, out: Out = None) -> None:
    """Train adversary and executor, from the folder in which stage 1 was run: the second half.

    Example: `advsim stage2 configs/tiny.yaml --out runs/mine`
    """
    _train(config, out, ("stage2",))


@app.command()
def report(
    run: Annotated[Path, typer.Argument(help="A run's folder, or a ledger's.")],
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the table as Markdown.")] = False,
) -> None:
    """Write report.html into a run's folder, from its ledger alone, and print the table.

    Example: `advsim report runs/first`
    """
    from advsim.commands import make_report

    make_report(run, markdown=markdown)


@app.command()
def study(
    config: ConfigFile,
    train_seeds: TrainSeeds = 3,
    rollout_seeds: RolloutSeeds = None,
    out: StudyOut = None,
    docs: Docs = Path("docs"),
    jobs: Jobs = 1,
) -> None:
    """Do a configuration's whole job once a training seed, then write the results with intervals.

    Runs are in `OUT/seedN`; finished ones are skipped. `advsim results` writes the results again without training.

    Example: `advsim study configs/tiny.yaml --train-seeds 3 --rollout-seeds 3`
    """
    from advsim.commands import run_study

    run_study(config, out, docs, train_seeds=train_seeds, rollout_seeds=rollout_seeds, at_once=jobs)


@app.command()
def ablate(
    config: ConfigFile,
    switch: Annotated[
        list[str] | None,
        typer.Option(
            help="One mechanism; may be repeated, all by default: uniform-reward, any-failure, constant-reward, "
            "no-history, no-stage1, no-difficulty-scale, no-kl, no-repetition."
        ),
    ] = None,
    train_seeds: TrainSeeds = 3,
    rollout_seeds: RolloutSeeds = None,
    out: StudyOut = None,
    docs: Docs = Path("docs"),
    jobs: Jobs = 1,
) -> None:
    """Switch each mechanism off in turn and compare with the full method, paired.

    Takes the full method's runs from the study in the same folder, or does them; ablations are in
    `OUT/ablate/SWITCH/seedN`, and their table is in RESULTS.md beside the study's.

    Example: `advsim ablate configs/tiny.yaml --switch no-history --switch no-kl --train-seeds 3`
    """
    from advsim.commands import run_study
    from advsim.config import ABLATIONS

    chosen = tuple(dict.fromkeys(switch or ABLATIONS))
    run_study(config, out, docs, train_seeds=train_seeds, rollout_seeds=rollout_seeds, switches=chosen, at_once=jobs)


@app.command()
def results(
    study: Annotated[Path, typer.Argument(help="A study's folder, as `advsim study` and `ablate` leave it.")],
    docs: Docs = Path("docs"),
    abridged: Annotated[
        Path | None,
        typer.Option(help="Also put the ledgers here, abridged to what results need: small enough to be published."),
    ] = None,
) -> None:
    """Write RESULTS.md, results.json and the plots of a study again, from its ledgers alone.

    A folder of abridged ledgers is read like the study that it was made from, and gives the same files.

    Example: `advsim results runs/tiny-study --docs docs --abridged docs/ledgers`
    """
    from advsim.commands import make_results

    make_results(study, docs, abridged)


@app.command()
def tasks(
    split: Annotated[
        Literal["bench", "bench-small", "train"], typer.Option(help="Frozen, or from the generator.")
    ] = "bench",
    n: Annotated[int, typer.Option("--n", min=0, help="How many; 0: all of a frozen split, 10 of `train`.")] = 0,
    seed: Annotated[int, typer.Option(help="The generator's seed.")] = 0,
    setting: Annotated[str | None, typer.Option(help="The generator's setting, such as hard-long or small.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print whole tasks, one JSON object a line.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write a task file for `advsim eval --tasks`.")] = None,
) -> None:
    """List tasks, or write them to a file.

    Example: `advsim tasks --split train --n 100 --seed 7 --out tasks.jsonl`
    """
    from advsim.commands import list_tasks

    list_tasks(split, n, seed, setting, as_json=as_json, out=out)


@app.command()
def page(
    task_id: Annotated[str, typer.Argument(help="A task's id (`advsim tasks`), such as a family/setting/seed.")],
    html: Annotated[bool, typer.Option(help="The HTML that the browser gets, instead of the tree.")] = False,
    skin: Annotated[Literal["native", "aria", "legacy"], typer.Option(help="How the HTML is dressed.")] = "native",
) -> None:
    """Show a task's goal and first page.

    Example: `advsim page "$(advsim tasks --n 1 --json | jq -r .id)" --html > page.html`
    """
    from advsim.commands import show_page

    show_page(task_id, html=html, skin=skin)


@app.command()
def speed(json_out: Annotated[Path | None, typer.Option("--json", help="Write the figures here.")] = None) -> None:
    """Measure the speeds that the project promises, each beside its yardstick, in one run.

    Example: `advsim speed --json speed.json`
    """
    from advsim.commands import measure_speed

    measure_speed(json_out)


def _train(config: Path, out: Path | None, steps: tuple[str, ...], processes: int = 1) -> None:
    from advsim.commands import train

    train(config, out, steps, processes)


def _seeds(text: str) -> tuple[int, ...]:
    try:
        seeds = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"--seeds: expected whole numbers separated by commas, such as 0,1,2, got {text!r}") from None
    if any(not 0 <= seed < 2**63 for seed in seeds):
        raise UsageError(f"--seeds: expected numbers from 0 to 2^63 - 1, got {text!r}")
    if len(set(seeds)) != len(seeds):
        raise UsageError(f"--seeds: expected each seed once, got {text!r}")
    return seeds


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; gives the exit code. Set `ADVSIM_DEBUG=1` to see tracebacks."""
    given = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    _open_streams()
    if os.environ.get("ADVSIM_DEBUG"):
        return int(typer.main.get_command(app).main(given, prog_name="advsim", standalone_mode=False) or 0)
    try:
        code = int(typer.main.get_command(app).main(given, prog_name="advsim", standalone_mode=False) or 0)
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except (BrokenPipeError, SystemExit) as end:
        # The reader of our output has gone, as in `advsim tasks | head`; click makes a SystemExit of it.
        if isinstance(end, SystemExit) and not isinstance(end.__context__, BrokenPipeError):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno())  # type: ignore[union-attr]
        return 0
    except Exception as error:
        code, message = explain(error, given[0])
        complain(message)
        return code
    if code == _INTERRUPTED:  # by Typer's doing, which says nothing
        kept = "; the finished steps are kept: the same command goes on" if given[0] in _RESUMED else ""
        complain(f"interrupted{kept}")
    return code


def _open_streams() -> None:
    """Make writing possible where the caller closed standard output or error (`advsim tasks >&-`)."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115


def explain(error: Exception, command: str) -> tuple[int, str]:
    """Exit code and line for what a command raised."""
    if isinstance(error, UsageError):
        return 2, str(error)
    # Typer brings its own copy of click's exceptions since 0.16 and uses click's before: both look like this.
    told = getattr(error, "format_message", None)
    if told is not None and getattr(error, "exit_code", None) == 2:
        known = typer.main.get_command(app).commands  # type: ignore[attr-defined]
        where = f"advsim {command} --help" if command in known else "advsim --help"
        return 2, f"{told()} (see `{where}`)"
    if type(error).__name__ == "Abort":
        return _INTERRUPTED, "interrupted"
    if isinstance(error, Failure):
        return 1, str(error)
    if isinstance(error, ModuleNotFoundError):
        extra = _EXTRAS.get((error.name or "").partition(".")[0])
        if extra is not None:
            return 1, f"{error.name} is not installed and this command needs it: pip install 'advsim[{extra}]'"
    name = type(error).__name__
    if name in ("ConfigError", "TaskFileError", "PageTaskError"):
        return 2, str(error)
    if name in ("LedgerError", "BrowserMissing", "ServerError", "WorldError", "EngineError", "RunError"):
        return 1, str(error)
    if isinstance(error, OSError) and error.strerror:
        hint = "; free some space, then run the same command again" if error.errno == errno.ENOSPC else ""
        return 1, f"{error.filename or 'input or output'}: {error.strerror}{hint}"
    return 1, f"{name}: {error} (a defect of the program: ADVSIM_DEBUG=1 shows where)"


_INTERRUPTED = 130  # as shells report SIGINT
_RESUMED = ("run", "stage1", "stage2", "study", "ablate")
_EXTRAS = {
    "playwright": "browser",
    "torch": "train",
    "transformers": "train",
    "peft": "train",
    "trl": "train",
    "tokenizers": "train",
    "safetensors": "train",
    "datasets": "train",
    "accelerate": "train",
}

if __name__ == "__main__":
    sys.exit(main())
