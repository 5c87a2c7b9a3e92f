"""The command line's contract: figures, exit codes, one clear line for what is wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from advsim.cli import main
from advsim.console import complain, show
from advsim.ledger import Ledger
from advsim.report.tables import evaluation, load
from advsim.task import Task
from benchmark_forms import save, stream

COMMANDS = ("eval", "run", "stage1", "stage2", "report", "study", "ablate", "results", "tasks", "page", "speed")


@pytest.fixture
def task_file(tmp_path: Path) -> Path:
    source = stream(11)
    path = tmp_path / "tasks.jsonl"
    save(path, [next(source) for _ in range(8)])
    return path


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    """Exit code and the only line on standard error."""
    code = main([str(argument) for argument in arguments])
    shown = capsys.readouterr()
    assert shown.err.count("\n") == 1, shown.err
    assert shown.err.startswith("advsim: ")
    assert "Traceback" not in shown.err
    assert len(shown.err) < 1000
    return code, shown.err


def test_eval_writes_the_contract(tmp_path: Path, task_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, ledger = tmp_path / "out.json", tmp_path / "ledger"
    arguments = ["eval", "--world", "symbolic", "--executor", "obedient", "--attacker", "template"]
    arguments += [
        "--tasks",
        str(task_file),
        "--limit",
        "5",
        "--seeds",
        "0,1",
        "--json",
        str(out),
        "--ledger",
        str(ledger),
    ]
    assert main(arguments) == 0
    figures = json.loads(out.read_text())
    assert (figures["n"], figures["errors"], figures["strict"], figures["attack_success"]) == (10, 0, 0.0, 1.0)
    assert (figures["attacked"], figures["distinct_tasks"], figures["seeds"]) == (10, 5, [0, 1])
    assert figures["wall_s"] > 0
    assert sum(cell["n"] for cell in figures["strata"].values()) == 10
    table = Ledger(ledger).table(["seed", "target_fields", "correct_fields"]).to_pydict()
    assert table["seed"] == [0] * 5 + [1] * 5
    assert sum(table["target_fields"]) == figures["target_fields"]
    assert sum(table["correct_fields"]) == figures["correct_fields"]
    assert "obedient" in capsys.readouterr().out
    # The same evaluation again takes the place of the first one in the ledger.
    assert main(arguments) == 0
    assert Ledger(ledger).table(["seed"]).num_rows == 10


def test_one_ledger_of_several_evaluations_counts_each_episode_once(
    tmp_path: Path, task_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = tmp_path / "ledger"
    for more in (["--limit", "3"], ["--limit", "6"], ["--limit", "6", "--max-actions", "5"]):
        assert main(["eval", "--tasks", str(task_file), *more, "--ledger", str(ledger)]) == 0
        assert "max actions" not in capsys.readouterr().out
    cells = evaluation(load(Ledger(ledger)))
    assert [(cell.n, cell.max_actions) for cell in cells] == [(6, 5), (6, 12)]
    assert main(["report", str(ledger)]) == 0
    assert "max actions" in capsys.readouterr().out
    assert '<th scope="col">max actions</th>' in (ledger / "report.html").read_text()


def test_clean_oracle_has_no_attack_success(tmp_path: Path, task_file: Path) -> None:
    out = tmp_path / "out.json"
    assert main(["eval", "--tasks", str(task_file), "--json", str(out)]) == 0
    figures = json.loads(out.read_text())
    assert (figures["n"], figures["strict"], figures["attack_success"], figures["attacked"]) == (8, 1.0, None, 0)
    assert figures["correct_fields"] == figures["target_fields"] > 8


def test_report_from_a_ledger(tmp_path: Path, task_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["eval", "--tasks", str(task_file), "--ledger", str(tmp_path / "run/ledger")])
    capsys.readouterr()
    assert main(["report", str(tmp_path / "run")]) == 0
    assert (tmp_path / "run/report.html").read_text().count("<td>oracle</td>") >= 1
    assert "100.0" in capsys.readouterr().out
    assert main(["report", str(tmp_path / "run/ledger")]) == 0


def test_tasks_are_listed_written_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "--split", "train", "--n", "3", "--seed", "5", "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    ids = [json.loads(line)["id"] for line in lines]
    assert ids == [task.id for task, _ in zip(stream(5), range(3), strict=False)]
    out = tmp_path / "t.jsonl"
    assert main(["tasks", "--split", "train", "--n", "3", "--seed", "5", "--out", str(out)]) == 0
    capsys.readouterr()
    assert main(["eval", "--tasks", str(out)]) == 0
    capsys.readouterr()
    assert main(["page", ids[0]]) == 0
    shown = capsys.readouterr().out
    assert "RootWebArea '" in shown
    assert json.loads(lines[0])["goal"] in shown
    assert main(["page", ids[0], "--html"]) == 0
    assert capsys.readouterr().out.lower().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["eval", "--executor", "nobody"], "expected one of oracle, wary, obedient, random, noop, base or an adapter"),
        (["eval", "--attacker", "nobody"], "expected one of none, template, reactive or an adapter"),
        (["eval", "--world", "mars"], "--world"),
        (["eval", "--limit", "-1"], "--limit"),
        (["eval", "--limit", "x"], "--limit"),
        (["eval", "--seeds", "0,,1"], "separated by commas"),
        (["eval", "--seeds", "0,0"], "each seed once"),
        (["eval", "--tasks", "/nowhere.jsonl"], "/nowhere.jsonl: cannot read task file: No such file"),
        (["eval", "--json", "/nowhere/out.json"], "the folder /nowhere does not exist"),
        (["eval", "--page", "a.html"], "--page and --task belong together"),
        (["eval", "--page", "a.html", "--task", "b.json"], "--page needs --world browser"),
        (["eval", "--nonsense"], "--nonsense"),
        (["eval", "--skin", "aria"], "--skin needs --world browser"),
        (["nonsense"], "(see `advsim --help`)"),
        (["run"], "Missing argument"),
        (["run", "/nowhere.yaml"], "/nowhere.yaml: expected a configuration file"),
        (["report", "/nowhere"], "/nowhere: holds no ledger"),
        (["tasks", "--split", "bench", "--setting", "small"], "--setting is for --split train"),
        (["tasks", "--split", "train", "--setting", "vast"], "--setting: expected one of"),
        (["page", "nothing/like/it"], "no task 'nothing/like/it'"),
    ],
)
def test_bad_usage_is_one_clear_line(
    arguments: list[str], says: str, task_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if arguments[0] == "eval" and "--tasks" not in arguments:
        arguments = [*arguments, "--tasks", str(task_file)]
    code, line = refused(capsys, *arguments)
    assert (code, says in line) == (2, True), line


@pytest.mark.parametrize("command", ["run", "stage1", "stage2"])
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("stage1: {round: 3}", "stage1.round: unknown key; did you mean 'rounds'?"),
        ("stage2: {eta: 1.5}", "stage2.eta: expected"),
        ("seed: [", "not valid YAML"),
    ],
)
def test_bad_configuration_is_refused_before_anything_starts(
    command: str, text: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "c.yaml"
    config.write_text(text)
    code, line = refused(capsys, command, config, "--out", tmp_path / "run")
    assert (code, says in line) == (2, True), line
    assert not (tmp_path / "run").exists()


def test_damaged_task_file_is_named_with_its_line(task_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = task_file.read_bytes()
    task_file.write_bytes(data[: len(data) // 2])
    code, line = refused(capsys, "eval", "--tasks", task_file)
    assert code == 2
    assert f"{task_file}:" in line


def test_folder_without_an_adapter_is_refused(
    tmp_path: Path, task_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, line = refused(capsys, "eval", "--tasks", task_file, "--executor", tmp_path)
    assert (code, "holds no adapter" in line) == (2, True)


def test_damaged_ledger_fails_plainly(tmp_path: Path, task_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["eval", "--tasks", str(task_file), "--ledger", str(tmp_path / "ledger")])
    part = next((tmp_path / "ledger/rollouts").glob("*.parquet"))
    part.write_bytes(part.read_bytes()[:-100])
    capsys.readouterr()
    code, line = refused(capsys, "report", tmp_path)
    assert code == 1
    assert str(part) in line


def test_hostile_arguments_are_shown_as_they_are(task_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, line = refused(capsys, "eval", "--executor", "[red]{x}\n</script>", "--tasks", task_file)
    assert code == 2
    assert "[red]{x}" in line


def test_task_that_the_executor_cannot_meet_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    free = Task(id="free", goal="Look around.\x1b[31m", page="RootWebArea 'x'")
    save(tmp_path / "free.jsonl", [free])
    code, line = refused(capsys, "eval", "--tasks", tmp_path / "free.jsonl", "--executor", "noop")
    assert (code, "the symbolic world knows forms only" in line) == (2, True)
    page = free.model_copy(update={"page": None, "html": "<p>x</p>"})
    save(tmp_path / "html.jsonl", [page])
    code, line = refused(capsys, "eval", "--world", "browser", "--tasks", tmp_path / "html.jsonl")
    assert (code, "has no expectation" in line) == (2, True)


def test_terminal_commands_in_texts_are_not_passed_on(capsys: pytest.CaptureFixture[str]) -> None:
    show(["goal"], [["\x1b[31mred\x07 [bold]x[/bold] \u202e"]])
    complain("\x1b]0;title\x07 a\nb")
    shown = capsys.readouterr()
    assert "[bold]x[/bold]" in shown.out
    assert not any(c in shown.out + shown.err for c in "\x1b\x07\u202e")
    assert shown.err == "advsim: �]0;title� a b\n"


def test_every_command_has_help_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    for command in COMMANDS:
        assert main([command, "--help"]) == 0
        assert f"Example: advsim {command}" in " ".join(capsys.readouterr().out.split())
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert all(command in shown for command in COMMANDS)
    assert main(["--version"]) == 0


def child(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}
    )


def test_a_reader_that_leaves_is_no_failure() -> None:
    code = (
        "import sys; from advsim.cli import main; sys.exit(main(['tasks', '--split', 'train', '--n', '400', '--json']))"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert (process.wait(60), process.stderr.read()) == (0, b"")


@pytest.mark.parametrize("stream", [1, 2])
def test_closed_streams_are_no_failure(stream: int, task_file: Path) -> None:
    code = f"from advsim.cli import main; main(['eval', '--tasks', {str(task_file)!r}])"
    shell = f'exec "$@" {stream}>&-'
    result = subprocess.run(["sh", "-c", shell, "sh", sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize(("command", "kept"), [("eval", False), ("run", True)])
def test_interruption_is_one_line(
    command: str, kept: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("advsim.commands.train", interrupt)
    monkeypatch.setattr("advsim.commands.Evaluation.run", interrupt)
    code, line = refused(capsys, command, *([tmp_path / "c.yaml"] if kept else []))
    assert code == 130
    assert line == f"advsim: interrupted{'; the finished steps are kept: the same command goes on' if kept else ''}\n"


def test_json_goes_through_a_pipe(task_file: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as cat:
        assert main(["eval", "--tasks", str(task_file), "--json", str(pipe)]) == 0
        assert json.loads(cat.communicate(timeout=60)[0])["errors"] == 0
    assert pipe.is_fifo()


def test_help_imports_nothing_heavy() -> None:
    code = "import sys; from advsim.cli import main; main(['eval', '--help'])\n"
    heavy = "torch transformers peft trl playwright pyarrow datasets browser_eval benchmark_forms"
    result = child(code + f"print('HEAVY', [m for m in '{heavy}'.split() if m in sys.modules])")
    assert "HEAVY []" in result.stdout, result.stdout + result.stderr


@pytest.mark.parametrize(("module", "extra"), [("playwright", "browser"), ("torch", "train")])
def test_missing_extra_is_named(module: str, extra: str, task_file: Path, tmp_path: Path) -> None:
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text("{}")
    option = "'--world', 'browser'" if module == "playwright" else f"'--executor', {str(adapter)!r}"
    block = (
        "import sys, importlib.abc\n"
        "class Gone(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        f"        if name.split('.')[0] == {module!r}: raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Gone())\n"
        "from advsim.cli import main\n"
        f"sys.exit(main(['eval', '--tasks', {str(task_file)!r}, {option}]))\n"
    )
    result = child(block)
    assert result.returncode == 1
    assert (
        result.stderr == f"advsim: {module} is not installed and this command needs it: pip install 'advsim[{extra}]'\n"
    )


def test_ledger_on_a_full_disk_keeps_what_was_there(tmp_path: Path, task_file: Path) -> None:
    ledger = tmp_path / "ledger"
    main(["eval", "--tasks", str(task_file), "--ledger", str(ledger)])
    before = Ledger(ledger).digest()
    code = (
        "import resource, sys\nfrom advsim.cli import main\n"
        "import advsim.ledger, benchmark_forms\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
        f"arguments = ['--tasks', {str(task_file)!r}, '--ledger', {str(ledger)!r}]\n"
        "sys.exit(main(['eval', '--executor', 'random', *arguments]))\n"
    )
    result = child(code, PYTHONDONTWRITEBYTECODE="1")
    assert result.returncode == 1, result.stderr
    assert result.stderr.count("\n") == 1
    assert "cannot write (File too large); what was stored before is untouched" in result.stderr
    assert Ledger(ledger).digest() == before


ORDER = "<!doctype html><title>Order</title><form><label>Name <input name=n></label><button name=go>Go</button></form>"


@pytest.mark.parametrize(
    ("html", "task", "says"),
    [
        ("<p>Nothing here</p>", {"values": {"n": "x"}, "final": "go"}, "no form on this page"),
        (ORDER, {"values": {"nn": "x"}, "final": "go"}, "no control has the key nn"),
        (ORDER, {"final": "go"}, "values: Field required"),
        (ORDER, None, "task.json: "),
        (None, {"values": {"n": "x"}, "final": "go"}, "no such file"),
    ],
)
def test_page_that_cannot_be_used_is_refused(
    html: str | None, task: object, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("playwright")
    if html is not None:
        (tmp_path / "page.html").write_text(html)
    (tmp_path / "task.json").write_text(json.dumps({"goal": "Order x.", "expectation": task}))
    arguments = ["--page", tmp_path / "page.html", "--task", tmp_path / "task.json"]
    code, line = refused(capsys, "eval", "--world", "browser", "--executor", "noop", *arguments)
    assert (code, says in line) == (2, True), line


@pytest.mark.browser
def test_page_of_ones_own_is_evaluated_in_the_browser(tmp_path: Path) -> None:
    pytest.importorskip("playwright")
    (tmp_path / "page.html").write_text(ORDER)
    expectation = {"values": {"n": "Ann"}, "final": "go"}
    (tmp_path / "task.json").write_text(json.dumps({"goal": "Order for Ann.", "expectation": expectation}))
    arguments = [
        "eval",
        "--world",
        "browser",
        "--executor",
        "noop",
        "--max-actions",
        "2",
        "--json",
        str(tmp_path / "o"),
    ]
    arguments += ["--page", str(tmp_path / "page.html"), "--task", str(tmp_path / "task.json")]
    assert main([*arguments, "--ledger", str(tmp_path / "ledger")]) == 0
    figures = json.loads((tmp_path / "o").read_text())
    assert (figures["n"], figures["errors"], figures["strict"]) == (1, 0, 0.0)
    assert (figures["correct_fields"], figures["target_fields"]) == (0, 1)
    (row,) = Ledger(tmp_path / "ledger").rows()
    assert "textbox 'Name'" in row.final_page
    # Its author finds out that page and task can be done.
    arguments[arguments.index("noop")] = "oracle"
    arguments[arguments.index("2")] = "3"
    assert main(arguments) == 0
    assert json.loads((tmp_path / "o").read_text())["strict"] == 1.0


@pytest.mark.browser
def test_missing_browser_says_what_to_do(
    task_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("playwright")
    monkeypatch.setenv("ADVSIM_CHROMIUM", "/nowhere/chromium")
    code, line = refused(capsys, "eval", "--world", "browser", "--tasks", task_file)
    assert (code, "/nowhere/chromium" in line) == (1, True), line


@pytest.mark.train
def test_adapters_and_backbone_play_both_sides(
    tmp_path: Path, task_file: Path, tiny_backbone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    from advsim.agents.named import agents
    from advsim.config import Backbone, Lora
    from advsim.llm.backbone import load, save, with_adapters
    from advsim.llm.policies import ModelExecutor

    model, _ = load(Backbone(path=str(tiny_backbone), device="cpu"))
    adapted = with_adapters(model, Lora(rank=2, alpha=4), seed=1)
    checkpoint = save(adapted, "executor", tmp_path / "executor")
    save(adapted, "adversary", tmp_path / "mine" / "adapters" / "adversary2")
    out = tmp_path / "out.json"
    arguments = [
        "eval",
        "--tasks",
        str(task_file),
        "--limit",
        "1",
        "--max-actions",
        "2",
        "--backbone",
        str(tiny_backbone),
    ]
    arguments += [
        "--executor",
        str(tmp_path / "executor"),
        "--attacker",
        str(tmp_path / "mine" / "adapters" / "adversary2"),
        "--json",
        str(out),
    ]
    assert main(arguments) == 0, capsys.readouterr().err
    figures = json.loads(out.read_text())
    assert (figures["n"], figures["executor_checkpoint"]) == (1, checkpoint)
    assert (figures["executor"], figures["attacker"]) == (f"{tmp_path.name}/executor", "mine/adversary2")
    # A run's policies play with its backbone and its limits.
    config = {"backbone": {"path": str(tiny_backbone)}, "episode": {"max_new_tokens": 9}, "switches": {"kl": False}}
    (tmp_path / "mine" / "manifest.json").write_text(json.dumps({"config": config}))
    executor, _ = agents(str(tmp_path / "mine" / "adapters" / "adversary2"), "none", [])
    assert isinstance(executor, ModelExecutor)
    assert (executor.sampling.max_new_tokens, executor.sampling.max_tokens) == (9, 4096)
    other = Path(__file__).parents[1] / "configs" / "smollm2-adapter"
    code, line = refused(capsys, "eval", "--tasks", task_file, "--executor", other)
    assert (code, "smollm2-adapter: the adapter " in line) == (2, True)
    (tmp_path / "mine" / "manifest.json").write_text("{}")
    code, line = refused(
        capsys, "eval", "--tasks", task_file, "--executor", tmp_path / "mine" / "adapters" / "adversary2"
    )
    assert (code, "manifest.json: cannot be read" in line) == (2, True)
    (tmp_path / "mine" / "manifest.json").unlink()
    weights = tmp_path / "executor" / "adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:500])
    code, line = refused(capsys, *arguments)
    assert (code, "executor: no adapter that can be read (SafetensorError" in line) == (2, True)
    (tmp_path / "executor" / "adapter_config.json").write_text("{}")
    code, line = refused(capsys, *arguments)
    assert (code, "no adapter that can be read (KeyError: 'lora_alpha')" in line) == (2, True)
    code, line = refused(capsys, "eval", "--tasks", task_file, "--executor", "base", "--backbone", tmp_path / "none")
    assert (code, "expected a folder with config.json" in line) == (2, True)
