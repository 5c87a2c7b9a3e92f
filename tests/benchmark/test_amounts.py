"""Money by hand: two decimals, half a cent rounded up, never a float."""

from __future__ import annotations

import ast
from decimal import Decimal
from pathlib import Path

import pytest

import benchmark_forms
from benchmark_forms.amounts import percent, round_money, show


@pytest.mark.parametrize(
    ("exact", "rounded"),
    [
        ("1.005", "1.01"),  # as a binary float this is 1.00499…
        ("2.675", "2.68"),
        ("0.125", "0.13"),
        ("0.135", "0.14"),
        ("1.0049", "1.00"),
        ("-1.005", "-1.01"),
        ("10", "10.00"),
    ],
)
def test_half_a_cent_goes_up(exact, rounded):
    assert show(round_money(Decimal(exact))) == rounded


@pytest.mark.parametrize(
    ("amount", "rate", "share"),
    [
        ("20.10", 5, "1.01"),  # 1.005
        ("4.50", 3, "0.14"),  # 0.135
        ("28.50", 5, "1.43"),  # 1.425
        ("53.50", 15, "8.03"),  # 8.025
        ("107.35", 10, "10.74"),  # 10.735
        ("33.33", 21, "7.00"),  # 6.9993
        ("12.00", 8, "0.96"),
    ],
)
def test_percent(amount, rate, share):
    assert show(percent(Decimal(amount), rate)) == share


def test_no_float_in_the_package():
    """No float literal but probabilities (below one), no call of float, no true division of amounts by a float."""
    root = Path(benchmark_forms.__file__).parent
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, float):
                assert 0 < node.value < 1, f"{path.name}:{node.lineno}"
            if isinstance(node, ast.Name):
                assert node.id != "float", f"{path.name}:{node.lineno}"


def test_generated_amounts_have_half_cents_to_round():
    """The rounding rule decides real tasks: some discounts and taxes end in half a cent before rounding."""
    halves = 0
    for seed in range(300):
        task = benchmark_forms.generate("invoice_total", "easy-long", seed)
        values = task.expectation.values
        if {"subtotal", "discount"} <= set(values):
            text = " ".join(b.text for b in task.form.blocks if hasattr(b, "text"))
            rate = int(text.split("The discount is ")[1].split(" ")[0])
            exact = Decimal(values["subtotal"]) * rate / 100
            assert Decimal(values["discount"]) == round_money(exact)
            halves += exact * 1000 % 10 == 5
    assert halves > 0
