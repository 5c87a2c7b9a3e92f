"""What the project promises of itself: a light core, whole packages, locked versions, no machine's paths."""

import re
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = ("advsim", "benchmark_forms", "browser_eval")

# What only the extras bring; the core must import without it.
NOT_CORE = [
    *(
        "accelerate",
        "datasets",
        "pandas",
        "peft",
        "safetensors",
        "tokenizers",
        "torch",
        "transformers",
        "trl",
    ),
    *("matplotlib", "playwright", "scipy"),
]


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [path for name in listing.split("\0") if name and (path := ROOT / name).is_file()]


@pytest.mark.parametrize(
    "module", ["advsim", "advsim.page", "advsim.action", "advsim.env", "advsim.cli", "benchmark_forms"]
)
def test_core_imports_without_extras(module: str) -> None:
    code = (
        "import sys\n"
        f"for name in {NOT_CORE!r}:\n"
        "    sys.modules[name] = None  # from here on, importing it raises ImportError\n"
        f"import {module}\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_changelog_has_the_current_version() -> None:
    version = PROJECT["project"]["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[{re.escape(version)}\]", changelog, re.MULTILINE)


def test_lock_pins_every_direct_dependency() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    lines = [line for line in lock if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line) for line in lines)
    locked = {canonical(line.partition("==")[0]): line.partition("==")[2] for line in lines}

    extras = PROJECT["project"]["optional-dependencies"]
    wanted = PROJECT["project"]["dependencies"] + [
        requirement for extra in ("train", "browser", "plots", "dev") for requirement in extras[extra]
    ]
    names = {canonical(re.match(r"[A-Za-z0-9._-]+", requirement)[0]) for requirement in wanted}
    assert not names - locked.keys()
    assert f"torch=={locked['torch']}" in extras["train"]


def test_every_data_file_of_a_package_is_installed(tracked: list[Path]) -> None:
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["*"]
    names = [pattern.rpartition("/")[2] for pattern in patterns]
    left_out = [
        path.relative_to(ROOT)
        for path in tracked
        if path.relative_to(ROOT).parts[0] in PACKAGES
        and path.suffix != ".py"
        and not any(fnmatch(path.name, name) for name in names)
    ]
    assert not left_out


def test_tracked_files_name_no_machine_and_no_package_index(tracked: list[Path]) -> None:
    # Put together here, so that this file does not find itself.
    forbidden = [
        *(re.escape(f"/{folder}/") for folder in ("work", "root")),
        "--(extra-)?index" + "-url[ =]",
        "--find" + "-links[ =]",
        "https?://(files|pypi|download|registry)" + r"\.(pythonhosted|python|pytorch|npmjs|org)",
    ]
    pattern = re.compile("|".join(rf"(?<![\w.]){word}" for word in forbidden))
    found = []
    for path in tracked:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # binary: weights, compressed data
        found += [f"{path.relative_to(ROOT)}: {match[0]}" for match in pattern.finditer(text)]
    assert not found


def test_documents_that_the_code_cites_exist(tracked: list[Path]) -> None:
    cited = {
        name
        for path in tracked
        if path.suffix in {".py", ".md", ".yaml", ".toml"}
        for name in re.findall(r"\bdocs/[\w./-]+\.(?:md|json)", path.read_text(encoding="utf-8"))
    }
    assert "docs/method.md" in cited
    written_by_a_command = {"docs/RESULTS.md", "docs/results.json"}
    assert {name for name in cited - written_by_a_command if not (ROOT / name).is_file()} == set()
