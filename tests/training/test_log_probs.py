"""How the rows of a micro-batch are divided: whoever is long pads nobody else."""

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.train

import torch  # noqa: E402
from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from advsim.training.log_probs import alike  # noqa: E402


def batch(rows):
    """Rows of (prompt's first id, prompt's length, completion's length), padded as the trainer does."""
    before, after = max(p for _, p, _ in rows), max(c for _, _, c in rows)
    ids = torch.zeros(len(rows), before + after, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, (first, prompt, completion) in enumerate(rows):
        ids[row, before - prompt : before] = torch.arange(first, first + prompt)
        ids[row, before : before + completion] = 7
        mask[row, before - prompt : before + completion] = 1
    return ids, mask, after


def cost(rows, parts):
    """Tokens computed: a part's rows at its longest completion, and each of its prompts once."""
    return sum(
        len(part) * max(rows[i][2] for i in part) + sum(p for _, p in {rows[i][:2] for i in part}) for part in parts
    )


def divisions(rows):
    """Every way to cut the rows, sorted by length, into parts of neighbours."""
    order = sorted(range(len(rows)), key=lambda i: rows[i][2])
    for cuts in range(1 << (len(rows) - 1)):
        parts = [[order[0]]]
        for n, row in enumerate(order[1:]):
            if cuts >> n & 1:
                parts.append([row])
            else:
                parts[-1].append(row)
        yield parts


ROWS = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 9), st.integers(1, 40)), min_size=1, max_size=7)


@given(ROWS)
def test_every_row_is_in_one_part_and_no_division_costs_less(rows):
    parts = alike(*batch(rows))
    assert sorted(row for part in parts for row in part) == list(range(len(rows)))
    assert cost(rows, parts) == min(cost(rows, division) for division in divisions(rows))


def test_a_rambler_is_read_alone():
    rows = [(1, 50, 100)] * 5 + [(1, 50, 900)]
    # Together 6 x 900 + 50 tokens; apart 5 x 100 + 50 and 900 + 50.
    assert alike(*batch(rows)) == [[5], [0, 1, 2, 3, 4]]


def test_rows_of_one_prompt_and_like_length_stay_together():
    assert alike(*batch([(1, 50, 100), (1, 50, 104), (1, 50, 98)])) == [[0, 1, 2]]
