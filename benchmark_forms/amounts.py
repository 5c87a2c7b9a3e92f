"""Money and dates. Money is `Decimal` with two decimals, halves rounded up; no float comes near it."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from random import Random

from benchmark_forms.words import MONTH_DAYS

CENT = Decimal("0.01")


def round_money(amount: Decimal) -> Decimal:
    """To whole cents; half a cent goes up (away from zero)."""
    return amount.quantize(CENT, rounding=ROUND_HALF_UP)


def percent(amount: Decimal, rate: int | Decimal) -> Decimal:
    """`rate` per cent of `amount`, in whole cents."""
    return round_money(amount * rate / 100)


def show(amount: Decimal) -> str:
    """As printed on a page and expected in a field: `12.50`."""
    return f"{round_money(amount):.2f}"


def draw_money(rng: Random, low: int, high: int) -> Decimal:
    """A price between `low` and `high` (whole units), to the cent."""
    return Decimal(rng.randint(low * 100, high * 100)) / 100


def draw_date(rng: Random, year: int = 2026) -> date:
    """A day of that year."""
    return date(year, rng.randint(1, 12), rng.randint(1, MONTH_DAYS))


def days_after(day: date, count: int) -> date:
    """The day that many days later."""
    return day + timedelta(days=count)
