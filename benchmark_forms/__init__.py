"""Forms to fill in, with one right answer each: frozen benchmarks and an endless generator (`docs/benchmark.md`)."""

from benchmark_forms.files import TaskFileError, load, save
from benchmark_forms.oracle import next_action, plan
from benchmark_forms.registry import GENERATION, FamilyInfo, families, generate, signature
from benchmark_forms.setting import BENCH_SETTINGS, SETTINGS
from benchmark_forms.stream import stream

__all__ = [
    "BENCH_SETTINGS",
    "GENERATION",
    "SETTINGS",
    "FamilyInfo",
    "TaskFileError",
    "families",
    "generate",
    "load",
    "next_action",
    "plan",
    "save",
    "signature",
    "stream",
]
