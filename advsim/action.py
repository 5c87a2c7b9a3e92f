r"""Browser actions as values: the closed grammar, its parser, its printer and its prompt text.

An action is one call, such as `fill(12, "it's", press_enter=True)`. `parse` reads what a policy wrote and
never raises: what holds no action gives an `ActionError`, which is data that the episode shows to the policy.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Final, NamedTuple, NoReturn

from advsim.page import quote, scan_quoted, unescape

Value = int | float | bool | str | tuple[str, ...]

BUTTONS: Final = ("left", "middle", "right")
MODIFIERS: Final = ("Alt", "Control", "ControlOrMeta", "Meta", "Shift")


class _Required:
    """The default of a parameter that has none."""


class Parameter(NamedTuple):
    """A parameter of an action: its name, the kind of value it takes, and its default."""

    name: str
    kind: str
    default: Value | type[_Required] = _Required

    @property
    def required(self) -> bool:
        """Whether a call must give this parameter."""
        return self.default is _Required


_BID = Parameter("bid", "bid")
_XY = (Parameter("x", "number"), Parameter("y", "number"))
_BUTTON = Parameter("button", "button", "left")
_TEXT = Parameter("text", "text")

# Name -> parameters in order, and what the action does in words for the prompt.
GRAMMAR: Final[Mapping[str, tuple[tuple[Parameter, ...], str]]] = {
    "click": ((_BID, _BUTTON, Parameter("modifiers", "modifiers", ())), "click an element"),
    "fill": ((_BID, _TEXT, Parameter("press_enter", "bool", False)), "replace the text of a field"),
    "select_option": ((_BID, Parameter("options", "options")), "choose one option, or a list, by its label"),
    "hover": ((_BID,), "move the mouse over an element"),
    "mouse_move": (_XY, "move the mouse to a point, in pixels"),
    "mouse_click": ((*_XY, _BUTTON), "click at a point"),
    "mouse_down": (_XY, "press the left button at a point"),
    "mouse_up": (_XY, "release the left button at a point"),
    "keyboard_press": ((Parameter("key", "text"),), "press a key, such as 'Enter' or 'Control+a'"),
    "keyboard_type": ((_TEXT,), "type into the focused element"),
    "scroll": ((Parameter("dx", "number"), Parameter("dy", "number")), "scroll by pixels"),
    "goto": ((Parameter("url", "text"),), "open a URL"),
    "go_back": ((), "go back in the history"),
    "go_forward": ((), "go forward in the history"),
    "tab_new": ((), "open a tab"),
    "tab_close": ((), "close this tab"),
    "tab_focus": ((Parameter("index", "index"),), "switch to a tab, counted from 0"),
    "send_msg_to_user": ((_TEXT,), "say this to the user, which ends the task"),
    "noop": ((Parameter("wait_ms", "wait", 1000),), "wait"),
    "infeasible": ((Parameter("reason", "text"),), "say why the task cannot be done"),
}
NAMES: Final = tuple(GRAMMAR)

# BrowserGym's spellings.
_ALIASES: Final = {"report_infeasible": "infeasible"}
_KEY_ALIASES: Final = {
    ("fill", "value"): "text",
    ("scroll", "delta_x"): "dx",
    ("scroll", "delta_y"): "dy",
}


class _Reject(Exception):
    """Why a call is not an action; inside this module only, becomes an `ActionError` or a `ValueError`."""


# --- values -------------------------------------------------------------------------------------------------

_DIGITS: Final = re.compile(r"[0-9]{1,18}")


def _show(value: object) -> str:
    shown = quote(value) if isinstance(value, str) else repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _whole(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**18:
        return value
    return None


def _bid(value: object) -> int:
    inner = value[0] if isinstance(value, (list, tuple)) and len(value) == 1 else value
    if isinstance(inner, str) and _DIGITS.fullmatch(inner.strip()):
        return int(inner.strip())
    whole = _whole(inner)
    if whole is None:
        raise _Reject(f"must be an element's number, such as 12, got {_show(value)}")
    return whole


def _index(value: object) -> int:
    whole = _whole(value)
    if whole is None:
        raise _Reject(f"must be a whole number from 0, got {_show(value)}")
    return whole


def _number(value: object) -> int | float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            real = float(value)
        except OverflowError:
            real = math.inf
        if math.isfinite(real):
            # 2 and 2.0 are one value, printed in one way; above 2**53 floats are no longer exact integers.
            return int(real) if real.is_integer() and abs(real) < 2**53 else real
    raise _Reject(f"must be a finite number, got {_show(value)}")


def _wait(value: object) -> int | float:
    number = _number(value)
    if number < 0:
        raise _Reject(f"must be 0 or more milliseconds, got {_show(value)}")
    return number


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _Reject(f"must be a text in quotes, got {_show(value)}")
    return value


def _bool(value: object) -> bool:
    if not isinstance(value, bool):
        raise _Reject(f"must be True or False, got {_show(value)}")
    return value


def _button(value: object) -> str:
    if not isinstance(value, str) or value not in BUTTONS:
        raise _Reject(f"must be one of {', '.join(map(quote, BUTTONS))}, got {_show(value)}")
    return value


def _options(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise _Reject(f"must be a text in quotes or a list of such texts, got {_show(value)}")


def _modifiers(value: object) -> tuple[str, ...]:
    chosen = _options(value)
    unknown = [item for item in chosen if item not in MODIFIERS]
    if unknown:
        raise _Reject(f"must be among {', '.join(map(quote, MODIFIERS))}, got {_show(unknown[0])}")
    return tuple(item for item in MODIFIERS if item in chosen)  # a set: order and repeats mean nothing


_CHECKS: Final = {
    "bid": _bid,
    "index": _index,
    "number": _number,
    "wait": _wait,
    "text": _text,
    "bool": _bool,
    "button": _button,
    "options": _options,
    "modifiers": _modifiers,
}


def _check(name: str, given: Mapping[str, object]) -> dict[str, Value]:
    """The arguments of action `name` in the grammar's order, checked, with defaults filled in."""
    parameters = GRAMMAR[name][0]
    args: dict[str, Value] = {}
    for parameter in parameters:
        key = parameter.name
        if key in given:
            try:
                args[key] = _CHECKS[parameter.kind](given[key])
            except _Reject as reject:
                raise _Reject(f"{name}: {key} {reject}") from None
        elif isinstance(parameter.default, type):
            raise _Reject(f"{name}: the argument {key} is missing; expected {signature(name)}")
        else:
            args[key] = parameter.default
    if len(given) > len(args) or not args.keys() >= given.keys():
        unknown = next(key for key in given if key not in args)
        raise _Reject(f"{name}: no argument is called {_show(unknown)}; expected {signature(name)}")
    return args


def _unknown(name: str) -> str:
    near = get_close_matches(name[:40], NAMES, 1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"unknown action {_show(name)}{hint}; known actions: {', '.join(NAMES)}"


# --- actions ------------------------------------------------------------------------------------------------


def _print_text(text: str) -> str:
    # The parser drops think blocks before it looks at quotes, so a text must not seem to hold one.
    return quote(text).replace("<think>", "\\x3cthink>").replace("</think>", "\\x3c/think>")


def _print_value(value: Value, kind: str) -> str:
    if isinstance(value, tuple):
        if kind == "options" and len(value) == 1:
            return _print_text(value[0])
        return f"[{', '.join(map(_print_text, value))}]"
    return _print_text(value) if isinstance(value, str) else repr(value)


_set = object.__setattr__


class Action:
    """One browser action; immutable, hashable, equal when it means the same.

    Args:
        name: One of `NAMES`.
        args: Values by parameter name; defaults may be left out.

    Attributes:
        name: One of `NAMES`.
        args: Every parameter's value, in the grammar's order, defaults included. `options` and `modifiers`
            are tuples of texts, bids and indices integers.

    Raises:
        ValueError: Name or arguments are not in the grammar.
    """

    __slots__ = ("_hash", "_text", "args", "name")

    name: str
    args: Mapping[str, Value]
    _text: str | None
    _hash: int | None

    def __init__(self, name: str, args: Mapping[str, object] = MappingProxyType({})) -> None:
        if name not in GRAMMAR:
            raise ValueError(_unknown(name))
        try:
            checked = _check(name, args)
        except _Reject as reject:
            raise ValueError(str(reject)) from None
        _set(self, "name", name)
        _set(self, "args", MappingProxyType(checked))
        _set(self, "_text", None)
        _set(self, "_hash", None)

    @classmethod
    def of(cls, name: str, *args: object, **kwargs: object) -> "Action":
        """Makes an action as one writes it: `Action.of('click', 12, button='right')`; raises ValueError."""
        parameters = GRAMMAR[name][0] if name in GRAMMAR else ()
        if name in GRAMMAR and len(args) > len(parameters):
            raise ValueError(f"{name}: too many arguments; expected {signature(name)}")
        given = {parameter.name: value for parameter, value in zip(parameters, args, strict=False)}
        twice = given.keys() & kwargs.keys()
        if twice:
            raise ValueError(f"{name}: the argument {min(twice)} is given twice; expected {signature(name)}")
        return cls(name, {**given, **kwargs})

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"an Action is immutable; cannot set {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"an Action is immutable; cannot delete {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return Action, (self.name, dict(self.args))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Action):
            return NotImplemented
        return self is other or (self.name == other.name and self.args == other.args)

    def __hash__(self) -> int:
        if self._hash is None:
            _set(self, "_hash", hash((self.name, *self.args.values())))
        return self._hash  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"<Action {self.text}>"

    def __str__(self) -> str:
        return self.text

    @property
    def bid(self) -> int | None:
        """The element that the action is about, None if it is about none."""
        bid = self.args.get("bid")
        return bid if isinstance(bid, int) else None

    @property
    def text(self) -> str:
        """The canonical call, one line, without defaults; `parse(action.text) == action`."""
        text = self._text
        if text is None:
            parts = []
            for parameter in GRAMMAR[self.name][0]:
                value = self.args[parameter.name]
                if parameter.required:
                    parts.append(_print_value(value, parameter.kind))
                elif value != parameter.default:
                    parts.append(f"{parameter.name}={_print_value(value, parameter.kind)}")
            text = f"{self.name}({', '.join(parts)})"
            _set(self, "_text", text)
        return text


@dataclass(frozen=True, slots=True)
class ActionError:
    """Why a text holds no action: a value, not an exception.

    Attributes:
        message: One line: what was expected and what came.
    """

    message: str


# --- reading ------------------------------------------------------------------------------------------------

# A candidate is a name and a parenthesis at the start of a line, after white space, backticks or `Action:`.
_START: Final = re.compile(r"^[ \t`]*+(?:[Aa]ction:)?+[ \t`]*+([A-Za-z_][A-Za-z0-9_]*+)[ \t]*+\(", re.MULTILINE)
_END: Final = re.compile(r"[ \t\r;`]*+(?:\n|\Z)")
_SPACE: Final = re.compile(r"[ \t]*+")
_KEYWORD: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*+)[ \t]*+=(?!=)[ \t]*+")
_NUMBER: Final = re.compile(r"([+-]?+(?:[0-9]++(\.[0-9]*+)?+|(\.[0-9]++))([eE][+-]?[0-9]++)?+)(?![\w.])")
_WORD: Final = re.compile(r"[\w.+-]++")
_WORDS: Final = {"True": True, "true": True, "False": False, "false": False}
_DEEPEST: Final = 3  # `([12])` needs two; a bound keeps `[[[[…` from growing the stack


def _skip(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _read_number(match: re.Match[str]) -> int | float:
    digits, fraction, point, exponent = match.groups()
    # int() refuses very long numbers and float() does not; no parameter takes an integer of 19 digits.
    return int(digits) if not (fraction or point or exponent) and len(digits) < 19 else float(digits)


def _found(text: str, position: int) -> str:
    line = text[position : position + 40].partition("\n")[0].rstrip()
    return _show(line) if line else "the end of the line"


def _read_value(text: str, position: int, depth: int = 0) -> tuple[object, int]:
    """Reads the value at `position`; gives it and the index after it."""
    mark = text[position : position + 1]
    if mark in ("'", '"'):
        quoted = scan_quoted(text, position)
        if quoted is None:
            raise _Reject(f"a text begun with {mark} is never closed")
        return quoted
    if mark == "\\" and text[position + 1 : position + 2] in ("'", '"'):  # \'text\': a call quoted as a whole
        end = text.find(text[position : position + 2], position + 2)
        if end < 0:
            raise _Reject(f"a text begun with {text[position : position + 2]} is never closed")
        return unescape(text[position + 2 : end]), end + 2
    if mark in ("[", "(") and depth < _DEEPEST:
        closing = "]" if mark == "[" else ")"
        items: list[object] = []
        position = _skip(text, position + 1)
        while not text.startswith(closing, position):
            item, position = _read_value(text, position, depth + 1)
            items.append(item)
            position = _skip(text, position)
            if text.startswith(",", position):
                position = _skip(text, position + 1)
            elif not text.startswith(closing, position):
                raise _Reject(f"expected a comma or {closing} in a list, got {_found(text, position)}")
        grouped = mark == "(" and len(items) == 1  # (x) is x, as everywhere
        return (items[0] if grouped else items), position + 1
    number = _NUMBER.match(text, position)
    if number is not None:
        return _read_number(number), number.end()
    word = _WORD.match(text, position)
    if word is not None and word[0] in _WORDS:
        return _WORDS[word[0]], word.end()
    raise _Reject(f"expected a number, a text in quotes, True, False or a list, got {_found(text, position)}")


def _read_arguments(name: str, text: str, position: int) -> tuple[dict[str, object], int]:
    """Reads up to the closing parenthesis; gives arguments by name, unchecked, and the index after it."""
    parameters = GRAMMAR[name][0]
    given: dict[str, object] = {}
    count = 0
    named = False
    position = _skip(text, position)
    while not text.startswith(")", position):
        keyword = _KEYWORD.match(text, position)
        if keyword is not None:
            named = True
            key = _KEY_ALIASES.get((name, keyword[1]), keyword[1])
            position = keyword.end()
        elif named:
            raise _Reject(f"an argument without a name follows one with a name; expected {signature(name)}")
        elif count < len(parameters):
            key = parameters[count].name
            count += 1
        else:
            raise _Reject(f"too many arguments; expected {signature(name)}")
        if key in given:
            raise _Reject(f"the argument {key} is given twice; expected {signature(name)}")
        given[key], position = _read_value(text, position)
        position = _skip(text, position)
        if text.startswith(",", position):
            position = _skip(text, position + 1)
        elif not text.startswith(")", position):
            raise _Reject(f"expected a comma or ) after an argument, got {_found(text, position)}")
    return given, position + 1


def _without_thoughts(text: str) -> str:
    """Drops `<think>…</think>`, what follows an unclosed `<think>`, what precedes an unopened `</think>`."""
    if "think>" not in text:
        return text
    kept: list[str] = []
    position = 0
    while (start := text.find("<think>", position)) >= 0:
        kept.append(text[position:start])
        end = text.find("</think>", start)
        position = len(text) if end < 0 else end + len("</think>")
    kept.append(text[position:])
    # A chat template may open the block in the prompt; nested blocks leave an end over in the same way.
    return "".join(kept).rpartition("</think>")[2]


def parse(text: str) -> Action | ActionError:
    """Reads the first action in what a policy wrote, in time linear in its length; never raises.

    A line counts only if it is the call and nothing else but white space, backticks, a final semicolon or the
    prefix `Action:`; calls in prose are not run. A call goes over the end of a line only inside quotes.
    """
    visible = _without_thoughts(text)
    error: str | None = None
    unknown: str | None = None
    for start in _START.finditer(visible):
        name = _ALIASES.get(start[1], start[1])
        if name not in GRAMMAR:
            unknown = unknown or name
            continue
        try:
            given, position = _read_arguments(name, visible, start.end())
            if not _END.match(visible, position):
                raise _Reject(f"expected nothing after the call, got {_found(visible, position)}")
        except _Reject as reject:
            error = error or f"{name}: {reject}"
            continue
        try:
            return Action(name, given)
        except ValueError as invalid:
            error = error or str(invalid)
    if error is None and unknown is not None:
        error = _unknown(unknown)
    if error is None:
        first = visible[:2000].strip().partition("\n")[0].rstrip()
        what = _show(first) if first else ("only thought" if text.strip() else "nothing")
        error = f"expected an action alone on a line, such as click(12), got {what}"
    return ActionError(error)


# --- prompt text --------------------------------------------------------------------------------------------


def signature(name: str) -> str:
    """The call with its parameters' names and defaults, such as `fill(bid, text, press_enter=False)`."""

    def parts() -> Iterator[str]:
        for parameter in GRAMMAR[name][0]:
            default = parameter.default
            if isinstance(default, type):
                yield parameter.name
            else:
                yield f"{parameter.name}={_print_value(default, parameter.kind)}"

    return f"{name}({', '.join(parts())})"


def describe() -> str:
    """The actions as prompt text, one line each, with argument order, defaults and meaning."""
    return "\n".join(f"{signature(name)}: {meaning}" for name, (_, meaning) in GRAMMAR.items())
