"""Line charts as SVG text: no library, no script, everything escaped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

COLOURS = ("#1f5fa8", "#b5471b", "#2f7d4f", "#7a4a9e", "#8a6d1a", "#4d5560")
_WIDTH, _HEIGHT = 460, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 12, 14, 40


@dataclass(frozen=True, slots=True)
class Line:
    """A named line; points are `(x label, y)`, a y of None leaves a gap."""

    name: str
    points: tuple[tuple[str, float | None], ...]


def chart(title: str, lines: Sequence[Line], low: float = 0.0, high: float = 1.0) -> str:
    """A chart whose x axis holds the labels of the first line in order, and whose y axis goes from low to high.

    Args:
        title: Accessible name.
        lines: All have the same x labels.
        low: Bottom of the y axis.
        high: Top of the y axis; values outside the two are drawn at the edge.
    """
    labels = [label for label, _ in lines[0].points] if lines else []
    step = (_WIDTH - _LEFT - _RIGHT) / max(len(labels) - 1, 1)

    def x(index: int) -> float:
        return _LEFT + index * step

    def y(value: float) -> float:
        share = (min(max(value, low), high) - low) / (high - low)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)

    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT + 16 * len(lines)}" role="img" aria-label="{escape(title)}" '
        'xmlns="http://www.w3.org/2000/svg">',
    ]
    for tick in range(5):
        value = low + (high - low) * tick / 4
        at = f"{y(value):.1f}"
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{at}" y2="{at}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.2g}</text>')
    below = _HEIGHT - _BOTTOM + 18
    for index, label in enumerate(labels):
        anchor = "middle" if 0 < index < len(labels) - 1 else "start" if index == 0 else "end"
        parts.append(f'<text x="{x(index):.1f}" y="{below}" text-anchor="{anchor}">{escape(label)}</text>')
    for number, line in enumerate(lines):
        colour = COLOURS[number % len(COLOURS)]
        for run in _runs(line):
            points = " ".join(f"{x(i):.1f},{y(value):.1f}" for i, value in run)
            parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{points}"/>')
            parts += [f'<circle fill="{colour}" r="3" cx="{x(i):.1f}" cy="{y(value):.1f}"/>' for i, value in run]
        legend = _HEIGHT - 6 + 16 * number
        parts.append(f'<rect fill="{colour}" x="{_LEFT}" y="{legend - 9}" width="14" height="4"/>')
        parts.append(f'<text x="{_LEFT + 20}" y="{legend - 3}">{escape(line.name)}</text>')
    return "".join(parts) + "</svg>"


def _runs(line: Line) -> list[list[tuple[int, float]]]:
    """The stretches without a gap, as (index, y)."""
    runs: list[list[tuple[int, float]]] = [[]]
    for index, (_, value) in enumerate(line.points):
        if value is None:
            runs.append([])
        else:
            runs[-1].append((index, value))
    return [run for run in runs if run]
