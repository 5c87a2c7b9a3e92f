"""Makes the two shipped benchmarks from the generator: `python -m benchmark_forms.freeze [--check]`.

Each family gives ten tasks to each benchmark. Seeds are tried from zero upwards; a task is taken if its structure
is new to its benchmark: for `bench` the shape of its family's rule alone, for `bench-small` that together with the
kinds of its fields (`signature`). In `bench` at least two fields have to be changed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from advsim.task import Task
from benchmark_forms.files import SHIPPED, dump, save, shipped_path
from benchmark_forms.oracle import plan
from benchmark_forms.registry import families, generate, signature
from benchmark_forms.setting import BENCH_SETTINGS

PER_FAMILY = 10


def quotas(place: int) -> dict[str, int]:
    """How many tasks of each setting the family at this place gives to `bench`: three of two, two of the others."""
    more = {(place + i) % len(BENCH_SETTINGS) for i in (0, 2)}
    return {name: 2 + (i in more) for i, name in enumerate(BENCH_SETTINGS)}


def frozen(name: str) -> list[Task]:
    """The tasks of `bench` or `bench-small`, made anew. Raises KeyError for another name."""
    if name not in SHIPPED:
        raise KeyError(name)
    tasks: list[Task] = []
    seen: set[tuple[object, ...]] = set()
    for place, family in enumerate(families()):
        wanted = quotas(place) if name == "bench" else {"small": PER_FAMILY}
        for setting, count in wanted.items():
            seed = found = 0
            while found < count:
                task = generate(family, setting, seed, split=name)
                _, _, shape, kinds = signature(task)
                structure = (family, shape) if name == "bench" else (family, shape, kinds)
                if structure not in seen and (name != "bench" or _edits(task) >= 2):
                    seen.add(structure)
                    tasks.append(task)
                    found += 1
                seed += 1
    return tasks


def _edits(task: Task) -> int:
    """How many fields the oracle has to change."""
    clicks = 2 + (task.form is not None and task.form.review is not None)  # review, final button, message
    return len(plan(task)) - clicks


def main(arguments: Sequence[str]) -> int:
    """Writes both files, or with `--check` says whether they are as they would be written now."""
    if list(arguments) not in ([], ["--check"]):
        print("usage: python -m benchmark_forms.freeze [--check]", file=sys.stderr)
        return 2
    same = True
    for name in SHIPPED:
        tasks, path = frozen(name), shipped_path(name)
        if arguments:
            equal = path.exists() and path.read_bytes() == dump(tasks)
            same &= equal
            print(f"{name}: {'as made' if equal else 'DIFFERS'} ({path})")
        else:
            save(path, tasks)
            print(f"{name}: {len(tasks)} tasks in {path}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
