"""What each action is on a real page: mouse and keyboard, and nothing that a user could not do.

The page is read before (`advsim.world.refuse` has already refused what no world does); what happened is read
afterwards, from the tree and from the recorder.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import groupby

from playwright.async_api import Error as PlaywrightError

from advsim.action import Action
from advsim.page import Node, Page
from advsim.world.refuse import TEXT_ROLES, focused, options_of, owner_of_option
from browser_eval.tab import Tab

_SPOT = "function (atStart) { return advsim.spot(this, atStart); }"
_LONGEST_WAIT_MS = 1000


async def do(tab: Tab, page: Page, action: Action, *, scripted: bool) -> str | None:
    """Carry out an action that is not refused.

    Args:
        tab: Where.
        page: The page as it was last read.
        action: What.
        scripted: The page has scripts of others: then waiting can matter.

    Returns:
        Why it could not be done, in one line, or None.
    """
    if action.name == "noop":
        if scripted:
            await asyncio.sleep(min(float(str(action.args["wait_ms"])), _LONGEST_WAIT_MS) / 1000)
        return None
    return await _ACTIONS[action.name](tab, page, action)


async def _click(tab: Tab, page: Page, action: Action) -> str | None:
    node = _node(page, action)
    assert node.bid is not None
    if node.role == "option":
        owner = owner_of_option(page, node.bid)
        if owner is not None and owner.role == "combobox" and not owner.flag("editable"):
            return await _choose(tab, page, owner, node.name)
    error = await _press_on(tab, node, "click")
    if error is None and _is_dropdown(page, node):
        await tab.press("Escape")  # its list never stays open between actions
    elif error is None and _is_text(node):
        await tab.press("Control+End" if node.get("multiline") == "True" else "End")
    return error


async def _fill(tab: Tab, page: Page, action: Action) -> str | None:
    node, text = _node(page, action), str(action.args["text"])
    error = await _press_on(tab, node, "fill")
    if error is not None:
        return error
    if node.role in _IN_PARTS:
        await tab.press(*_IN_PARTS[node.role](text))
    else:
        await tab.press("Control+a")
        if text:
            await tab.insert(text.replace("\r\n", "\n").replace("\r", "\n"))
        else:
            await tab.press("Delete")
    if action.args["press_enter"]:
        await tab.press("Enter")
    return None


def _date_keys(text: str) -> list[str]:
    """Keys for an ISO date or nothing, from the first part of a date field on; they end there again.

    The parts stand month first (`chromium.ARGUMENTS`). Each is emptied before it is typed, so that
    also the same date is an edit. The year takes six digits: four do not move on by themselves.
    """
    if not text:
        return ["Backspace", "ArrowRight", "Backspace", "ArrowRight", "Backspace", "ArrowLeft", "ArrowLeft"]
    year, month, day = text.split("-")
    return ["Backspace", *month, "Backspace", *day, "Backspace", *year, "ArrowLeft", "ArrowLeft"]


def _time_keys(text: str) -> list[str]:
    """Keys for a time of the day or nothing: hours of twelve, minutes, and A or P."""
    if not text:
        return ["Backspace", "ArrowRight", "Backspace", "ArrowRight", "Backspace", "ArrowLeft", "ArrowLeft"]
    hour, minute = int(text[:2]), text[3:]
    return [
        "Backspace",
        *f"{hour % 12 or 12:02}",
        "Backspace",
        *minute,
        "p" if hour >= 12 else "a",
        "ArrowLeft",
        "ArrowLeft",
    ]


_IN_PARTS: dict[str, Callable[[str], list[str]]] = {"Date": _date_keys, "InputTime": _time_keys}


async def _select_option(tab: Tab, page: Page, action: Action) -> str | None:
    node, options = _node(page, action), action.args["options"]
    assert isinstance(options, tuple)
    return await _choose(tab, page, node, options[0])


async def _choose(tab: Tab, page: Page, owner: Node, name: str) -> str | None:
    """Open the list, go to the option by arrows, press Enter: one change. In a list that is always open, click it."""
    assert owner.bid is not None
    options = options_of(page, owner.bid)
    target = next(o for o in options if o.name == name)
    if not _is_dropdown(page, owner):
        return await _press_on(tab, target, "select_option")
    error = await _press_on(tab, owner, "select_option")
    if error is not None:
        return error
    if target.flag("selected"):
        await tab.press("Escape")
        return None
    open_to = [o for o in options if not o.flag("disabled")]
    here = next((i for i, o in enumerate(open_to) if o.flag("selected")), None)
    steps = open_to.index(target) - (0 if here is None else here)
    arrow = "ArrowDown" if steps > 0 else "ArrowUp"
    await tab.press(*(["Home"] if here is None else []), *[arrow] * abs(steps), "Enter")
    return None


async def _hover(tab: Tab, page: Page, action: Action) -> str | None:
    node = _node(page, action)
    assert node.bid is not None
    spot = await tab.call_on(tab.backend(node.bid), _SPOT, False)
    if "error" not in spot:
        await tab.move_to(spot["x"], spot["y"])
    return None


async def _scroll(tab: Tab, page: Page, action: Action) -> str | None:
    dx, dy = (max(-1e6, min(1e6, float(str(action.args[k])))) for k in ("dx", "dy"))
    await tab.wheel(dx, dy)
    return None


async def _press(tab: Tab, page: Page, action: Action) -> str | None:
    await _key(tab, page, str(action.args["key"]))
    return None


async def _type(tab: Tab, page: Page, action: Action) -> str | None:
    text = str(action.args["text"]).replace("\r\n", "\n").replace("\r", "\n")
    node = focused(page)
    if node is not None and (_is_text(node) or node.flag("editable")):
        for typed, run in groupby(text, key=lambda char: char.isascii()):
            if typed:
                await tab.press(*("Enter" if char == "\n" else char for char in run))
            else:  # what no key types comes as an input method sends it: a sign at a time, of however many characters
                await tab.insert("".join(run))
        return None
    for char in text:
        if char.isascii() and char.isprintable():
            await _key(tab, page, char)
            if char == " ":
                await tab.settle()  # a space can activate what has the focus
    return None


async def _key(tab: Tab, page: Page, key: str) -> None:
    node = focused(page)
    if key in ("Tab", "Shift+Tab"):
        await _tab(tab, key)
        return
    opens = node is not None and key in ("Enter", "Space", " ") and _is_dropdown(page, node)
    await tab.press(key, *(["Escape"] if opens else []))


async def _tab(tab: Tab, key: str) -> None:
    """Tab goes round: past the last stop the focus leaves the page, and a window's own controls may give it back."""
    await tab.press(key)
    if not await tab.call("() => advsim.hasFocus()"):
        await tab.press(key)


async def _press_on(tab: Tab, node: Node, what: str) -> str | None:
    """Click on an element, or say why that is not possible."""
    assert node.bid is not None
    try:
        spot = await tab.call_on(tab.backend(node.bid), _SPOT, node.role in _IN_PARTS)
    except PlaywrightError as error:
        if "No node" in str(error) or "does not belong" in str(error):
            return f"{what}: [{node.bid}] {node.role} {node.name!r} is no longer on the page"
        raise
    if "error" in spot:
        return f"{what}: [{node.bid}] {node.role} {node.name!r} {spot['error']}"
    await tab.click_at(spot["x"], spot["y"])
    return None


def _node(page: Page, action: Action) -> Node:
    assert action.bid is not None
    node = page.by_bid(action.bid)
    assert node is not None
    return node


def _is_text(node: Node) -> bool:
    return node.role in TEXT_ROLES and node.role not in _IN_PARTS


def _is_dropdown(page: Page, node: Node) -> bool:
    """A drop-down of the browser's own: its options are on the page while it is closed."""
    return node.role == "combobox" and not node.flag("editable") and bool(options_of(page, node.bid or 0))


_ACTIONS: dict[str, Callable[[Tab, Page, Action], Awaitable[str | None]]] = {
    "click": _click,
    "fill": _fill,
    "select_option": _select_option,
    "hover": _hover,
    "scroll": _scroll,
    "keyboard_press": _press,
    "keyboard_type": _type,
}
