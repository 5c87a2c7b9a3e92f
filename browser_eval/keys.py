"""Keys of `keyboard_press` as the events that Chromium expects of a keyboard."""

from __future__ import annotations

from typing import Any, NamedTuple


class _Key(NamedTuple):
    key: str
    code: str
    virtual: int
    text: str = ""


_NAMED = {
    "Tab": _Key("Tab", "Tab", 9),
    "Enter": _Key("Enter", "Enter", 13, "\r"),
    "Space": _Key(" ", "Space", 32, " "),
    "Escape": _Key("Escape", "Escape", 27),
    "Backspace": _Key("Backspace", "Backspace", 8),
    "Delete": _Key("Delete", "Delete", 46),
    "Home": _Key("Home", "Home", 36),
    "End": _Key("End", "End", 35),
    "ArrowLeft": _Key("ArrowLeft", "ArrowLeft", 37),
    "ArrowUp": _Key("ArrowUp", "ArrowUp", 38),
    "ArrowRight": _Key("ArrowRight", "ArrowRight", 39),
    "ArrowDown": _Key("ArrowDown", "ArrowDown", 40),
}
_MODIFIERS = {"Alt": 1, "Control": 2, "Meta": 4, "Shift": 8}

Event = dict[str, Any]


def press(name: str) -> list[Event]:
    """Parameters of `Input.dispatchKeyEvent`, in order, for `Tab`, `Shift+Tab`, `Control+a`, `x` and the like."""
    *held, last = name.split("+") if len(name) > 1 else [name]
    bits = sum(_MODIFIERS[m] for m in held)
    key = _key(last)
    common: Event = {
        "modifiers": bits,
        "key": key.key,
        "code": key.code,
        "windowsVirtualKeyCode": key.virtual,
        "nativeVirtualKeyCode": key.virtual,
    }
    # With Control or Alt held a key types nothing.
    types_text = key.text and not bits & ~_MODIFIERS["Shift"]
    down: Event = {"type": "rawKeyDown"}
    if types_text:
        down = {"type": "keyDown", "text": key.text, "unmodifiedText": key.text}
    return [{**down, **common}, {"type": "keyUp", **common}]


def _key(name: str) -> _Key:
    if name in _NAMED:
        return _NAMED[name]
    if name == " ":
        return _NAMED["Space"]
    if name.isascii() and name.isalpha():
        return _Key(name, f"Key{name.upper()}", ord(name.upper()), name)
    if name.isascii() and name.isdigit():
        return _Key(name, f"Digit{name}", ord(name), name)
    return _Key(name, "", 0, name)
