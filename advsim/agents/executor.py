"""The executor's conversation: the goal and the first page, then what each action changed; one action a reply.

The texts here are the contents of chat messages; the engine joins them with the model's own chat template. Nothing
here looks at a task's expectation, and no observation says whether it comes from a simulated or a real page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from advsim.action import Action, ActionError, describe
from advsim.action import parse as parse_action
from advsim.page import Page, diff

Mode = Literal["full", "diff"]
MODES: Final[tuple[Mode, ...]] = ("full", "diff")

_RULES: Final = """\
You operate a web page for a user. The page is given as an accessibility tree, one element a line; the number in \
brackets is the element's bid. Each reply is exactly one action, alone on a line. When the goal is reached, tell \
the user with send_msg_to_user.

Actions:
{actions}

{observations}

"""
_OBSERVATIONS: Final = {
    "full": "After each action you see the whole page again.",
    "diff": "After each action you see only what changed: '[12] …' is how the element with bid 12 reads now, "
    "'=4 …' how line 4 (counted from 0) reads now, '-4' or '-4..9' lines that are gone, '+4 …' a line inserted before "
    "line 4.",
}


def first_message(goal: str, page: Page, mode: Mode = "diff", verbose: bool = False) -> str:
    """The first user message: the goal and the whole page.

    Args:
        goal: What the user wants.
        page: The first page; or, where older turns had to be cut off, the page at the first turn that is kept.
        mode: How later observations are written; only the explanation in words depends on it.
        verbose: Explain the format in words, for a model that was not trained on it.
    """
    rules = _RULES.format(actions=describe(), observations=_OBSERVATIONS[mode]) if verbose else ""
    return f"{rules}Goal: {goal}\n{page.text}"


def next_message(old: Page, new: Page, error: str, mode: Mode = "diff") -> str:
    """The user message after an action.

    Args:
        old: The page before the action.
        new: The page after it.
        error: The world's `last_action_error`, or why the reply held no action; "" if there is none.
        mode: `full` shows the new page, `diff` what `advsim.page.diff` says (with which nothing is lost).
    """
    seen = new.text if mode == "full" else diff(old, new) or "No change."
    return f"Error: {error}\n{seen}" if error else seen


def conversation(
    goal: str,
    pages: Sequence[Page],
    errors: Sequence[str],
    completions: Sequence[str],
    mode: Mode = "diff",
    verbose: bool = False,
) -> list[dict[str, str]]:
    """All messages of an episode so far, in the form that chat templates take.

    Args:
        goal: What the user wants.
        pages: The page before each action, and the present one where it is the executor's turn.
        errors: `errors[t]` is what went wrong in the action before `pages[t]`; `errors[0]` is not read.
        completions: What the executor wrote at each page; as many as `pages`, or one fewer.
        mode: See `first_message`.
        verbose: See `first_message`.
    """
    messages: list[dict[str, str]] = []
    for turn, page in enumerate(pages):
        if turn == 0:
            content = first_message(goal, page, mode, verbose)
        else:
            content = next_message(pages[turn - 1], page, errors[turn], mode)
        messages.append({"role": "user", "content": content})
        if turn < len(completions):
            messages.append({"role": "assistant", "content": completions[turn]})
    return messages


def parse(completion: str) -> Action | ActionError:
    """The action in a completion, or why there is none. Total; see `advsim.action.parse`."""
    return parse_action(completion)
