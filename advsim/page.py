r"""Accessibility trees as values: `Node`, `Page`, their text, and differences between two pages.

The text is one node a line, indented by tabs: `[bid] role 'name', flag, key='text', key=token`.
A property is a pair `(key, value)` whose value tells the three written forms apart:

====================  ===========================  =========================================
written               value                        example
====================  ===========================  =========================================
bare flag             `None`                       `('focused', None)`
quoted text           `str`                        `('value', 'Ann')`
bare token            `bool`, otherwise `Token`    `('checked', True)`, `('level', Token('2'))`
====================  ===========================  =========================================

Reading is total: a line that does not parse is kept verbatim as an opaque node. Lines end at `\n` only, and
lines of nothing but white space are dropped (they hold nothing, and an empty page is the empty text).

Valid nodes, for which `parse(serialise(page)) == page` holds: role and keys match `[A-Za-z_][A-Za-z0-9_-]*`
(keys may also hold `:` and `.`), 0 <= bid < 10**18, depth >= 0; the text of a `Token` is not empty, is not
`True` or `False`, and holds no white space, comma, quote, backslash or control character; opaque nodes come
from `parse_line`.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any, Final, NamedTuple, NoReturn

# --- quoted text; action.py writes and reads its strings with the same two functions ------------------------

# Everything that str.splitlines or a terminal could take for a line break or a command, and lone surrogates,
# so that a printed node is always one line and can always be encoded as UTF-8.
_MUST_ESCAPE: Final = re.compile(r"[\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_SHORT_ESCAPES: Final = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_UNESCAPES: Final = {"\\": "\\", "n": "\n", "r": "\r", "t": "\t", "'": "'", '"': '"'}
_HEX: Final = "[0-9a-fA-F]"
_ESCAPE: Final = re.compile(
    rf"\\(?:u([dD][89abAB]{_HEX}{{2}})\\u([dD][c-fC-F]{_HEX}{{2}})"  # JSON's surrogate pair: one character
    rf"|x({_HEX}{{2}})|u({_HEX}{{4}})|U({_HEX}{{8}})|(.))",
    re.DOTALL,
)
# Possessive (`*+`), so that a missing end quote costs one pass and no backtracking.
_TO_END_QUOTE: Final = {
    "'": re.compile(r"[^'\\]*+(?:\\.[^'\\]*+)*+'", re.DOTALL),
    '"': re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL),
}


def _escape_match(match: re.Match[str]) -> str:
    char = match[0]
    short = _SHORT_ESCAPES.get(char)
    if short is not None:
        return short
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    # Eight digits for a surrogate: two neighbouring \u escapes would be read back as one character.
    return f"\\U{code:08x}" if 0xD800 <= code <= 0xDFFF else f"\\u{code:04x}"


def _unescape_match(match: re.Match[str]) -> str:
    high, low, byte, four, eight, other = match.groups()
    if high is not None:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
    digits = byte or four or eight
    if digits is not None:
        code = int(digits, 16)
        return chr(code) if code <= 0x10FFFF else match[0]
    return _UNESCAPES.get(other, match[0])  # an unknown escape keeps its backslash, as in Python


def quote(text: str) -> str:
    """Quotes text for a page or an action: single quotes, double where that saves an escaped apostrophe."""
    if "'" not in text:
        if "\\" not in text and text.isprintable():
            return f"'{text}'"
        return f"'{_MUST_ESCAPE.sub(_escape_match, text)}'"
    if '"' not in text:
        return f'"{_MUST_ESCAPE.sub(_escape_match, text)}"'
    escaped = _MUST_ESCAPE.sub(_escape_match, text).replace("'", "\\'")
    return f"'{escaped}'"


def unescape(body: str) -> str:
    """Resolves the backslash escapes in the inside of a quoted text."""
    return _ESCAPE.sub(_unescape_match, body) if "\\" in body else body


def scan_quoted(text: str, start: int) -> tuple[str, int] | None:
    """Reads the quoted text whose opening quote, single or double, is at `start`.

    Returns:
        The text without quotes and escapes, and the index after the closing quote; None if it never closes.
    """
    mark = text[start]
    end = text.find(mark, start + 1)
    if end < 0:
        return None
    if text.find("\\", start + 1, end) < 0:
        return text[start + 1 : end], end + 1
    match = _TO_END_QUOTE[mark].match(text, start + 1)
    if match is None:
        return None
    return unescape(text[start + 1 : match.end() - 1]), match.end()


# --- nodes --------------------------------------------------------------------------------------------------


class Token(NamedTuple):
    """A bare property value other than True and False, such as the `2` of `level=2`."""

    text: str


Value = str | bool | Token | None
Props = tuple[tuple[str, Value], ...]


class _Fields(NamedTuple):
    line: str  # first, so that comparing two unequal nodes ends at once
    depth: int
    bid: int | None
    role: str
    name: str
    props: Props
    opaque: str | None


def _print_prop(key: str, value: Value) -> str:
    if value is None:
        return f", {key}"
    if isinstance(value, str):
        return f", {key}={quote(value)}"
    return f", {key}={value.text if isinstance(value, Token) else value}"


class Node(_Fields):
    """One line of a page; immutable and hashable, a tuple underneath so that comparing is done in C.

    Attributes:
        line: The printed text, leading tabs included.
        depth: Number of leading tabs.
        bid: The integer in brackets, None for the root, static text and opaque lines.
        role: The ARIA role; empty only for an opaque line.
        name: The accessible name; empty is written `''`.
        props: Pairs of key and value in written order; see the module's table.
        opaque: The whole line, verbatim, if it did not parse; otherwise None.
    """

    __slots__ = ()

    def __new__(
        cls,
        depth: int,
        bid: int | None,
        role: str,
        name: str = "",
        props: Props = (),
        opaque: str | None = None,
    ) -> "Node":
        """Makes a node and its line. Fields are not checked; see the module for what is valid."""
        if opaque is not None:
            line = opaque
        else:
            line = f"{role} {quote(name)}" if bid is None else f"[{bid}] {role} {quote(name)}"
            if depth:
                line = "\t" * depth + line
            for key, value in props:
                line += f", {key}" if value is None else _print_prop(key, value)
        return tuple.__new__(cls, (line, depth, bid, role, name, props, opaque))

    def __reduce__(self) -> tuple[Any, ...]:
        return Node, self[1:]

    def flag(self, key: str) -> bool:
        """Whether the node has the bare flag `key`, or `key=True`."""
        for name, value in self.props:
            if name == key:
                return value is None or value is True
        return False

    def get(self, key: str) -> str | None:
        """The text of property `key`: `'True'` for `key=True`; None if absent or a bare flag."""
        for name, value in self.props:
            if name == key:
                if value is None or isinstance(value, str):
                    return value
                return value.text if isinstance(value, Token) else str(value)
        return None

    def replace(self, **changes: Any) -> "Node":
        """A copy with the given fields (`depth`, `bid`, `role`, `name`, `props`, `opaque`) changed."""
        _, depth, bid, role, name, props, opaque = self
        node = Node(
            changes.pop("depth", depth),
            changes.pop("bid", bid),
            changes.pop("role", role),
            changes.pop("name", name),
            changes.pop("props", props),
            changes.pop("opaque", opaque),
        )
        if changes:
            raise TypeError(f"Node has no field to replace called {', '.join(sorted(changes))}")
        return node

    _replace = __replace__ = replace  # the tuple's own would leave a stale line

    def with_prop(self, key: str, value: Value = None) -> "Node":
        """A copy with property `key` set, in its old place if it was there, otherwise at the end."""
        if any(name == key for name, _ in self.props):
            return self.replace(props=tuple((k, value) if k == key else (k, v) for k, v in self.props))
        return self.replace(props=(*self.props, (key, value)))

    def without(self, key: str) -> "Node":
        """A copy without property `key`."""
        return self.replace(props=tuple(prop for prop in self.props if prop[0] != key))


# --- pages --------------------------------------------------------------------------------------------------

_set = object.__setattr__


class Page:
    """An immutable accessibility tree: its nodes in document order.

    Args:
        nodes: The nodes, in document order.
        text: The serialised page where the caller already has it (trusted, for speed); else made on demand.
        keys: By bid, the keys of the controls that the task's expectation names, where the world tells them (the
            browser, of a page that was not made here). Only scripted agents look at them: they are no part of
            the text, and equal pages may differ in them.
    """

    __slots__ = ("_hash", "_index", "_repeated", "_text", "keys", "nodes")

    nodes: tuple[Node, ...]
    keys: Mapping[int, str]
    _text: str | None
    _hash: int | None
    _index: dict[int, int] | None
    _repeated: frozenset[int]

    def __init__(self, nodes: Iterable[Node], text: str | None = None, keys: Mapping[int, str] | None = None) -> None:
        _set(self, "nodes", nodes if type(nodes) is tuple else tuple(nodes))
        _set(self, "_text", text)
        _set(self, "keys", {} if keys is None else keys)
        _set(self, "_hash", None)
        _set(self, "_index", None)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Page is immutable; cannot set {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Page is immutable; cannot delete {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return Page, (self.nodes, self._text, self.keys)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return self.nodes == other.nodes if isinstance(other, Page) else NotImplemented

    def __hash__(self) -> int:
        if self._hash is None:
            _set(self, "_hash", hash(self.nodes))
        return self._hash  # type: ignore[return-value]

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        return f"parse({self.text!r})"

    @property
    def text(self) -> str:
        """The page as text, lines joined by newlines, made once."""
        text = self._text
        if text is None:
            text = "\n".join([node.line for node in self.nodes])
            _set(self, "_text", text)
        return text

    @property
    def opaque_count(self) -> int:
        """Number of lines that did not parse."""
        return sum(node.opaque is not None for node in self.nodes)

    @property
    def next_bid(self) -> int:
        """The largest bid plus one; 1 on a page without bids."""
        return max((node.bid for node in self.nodes if node.bid is not None), default=0) + 1

    def _bids(self) -> dict[int, int]:
        index = self._index
        if index is None:
            index = {}
            repeated = set()
            for position, node in enumerate(self.nodes):
                bid = node.bid
                if bid is not None and index.setdefault(bid, position) != position:
                    repeated.add(bid)
            _set(self, "_repeated", frozenset(repeated))
            _set(self, "_index", index)
        return index

    def by_bid(self, bid: int) -> Node | None:
        """The first node with this bid, None if there is none."""
        position = self._bids().get(bid)
        return None if position is None else self.nodes[position]

    def index_of(self, bid: int) -> int | None:
        """The position in `nodes` of the first node with this bid, None if there is none."""
        return self._bids().get(bid)

    def is_unique(self, bid: int) -> bool:
        """Whether exactly one node has this bid."""
        return bid in self._bids() and bid not in self._repeated


def serialise(page: Page) -> str:
    """The page as text: `page.text`."""
    return page.text


# --- reading ------------------------------------------------------------------------------------------------

_HEAD: Final = re.compile(r"(\t*+)( *+[ \t]*+)(?:\[(0|[1-9][0-9]{0,17}+)\][ \t]++)?([A-Za-z_][A-Za-z0-9_-]*+)([ \t]*+)")
_KEY: Final = re.compile(r"[ \t]*+,[ \t]*+([A-Za-z_][A-Za-z0-9_:.-]*+)")
_TOKEN: Final = re.compile(r"[^\s,'\"\\\x00-\x1f\x7f-\x9f\ud800-\udfff]++")
_LITERALS: Final = {"True": True, "False": False}
_TRAILING: Final = " \t\r"


def _scan_props(line: str, position: int) -> Props | None:
    props: list[tuple[str, Value]] = []
    length = len(line)
    while position < length:
        match = _KEY.match(line, position)
        if match is None:
            return None if line[position:].strip(_TRAILING) else tuple(props)
        position = match.end()
        value: Value = None
        if line.startswith("=", position):
            position += 1
            if line.startswith(("'", '"'), position):
                quoted = scan_quoted(line, position)
                if quoted is None:
                    return None
                value, position = quoted
            else:
                token = _TOKEN.match(line, position)
                if token is None:
                    return None
                literal = _LITERALS.get(token[0])
                value = Token(token[0]) if literal is None else literal
                position = token.end()
        props.append((match[1], value))
    return tuple(props)


_REMEMBERED: Final = 256  # longest line, in characters, that is remembered: memory stays bounded whatever is read


def _scan(line: str) -> tuple[Node, str]:
    """Reads a line; gives the node, its depth by leading tabs alone, and the indentation beyond them."""
    head = _HEAD.match(line)
    if head is not None:
        tabs, indent, bid, role, gap = head.groups()
        position = head.end()
        name: tuple[str, int] | None = ("", position)
        if line.startswith(("'", '"'), position):
            name = scan_quoted(line, position) if gap else None
        elif bid is None and role != "RootWebArea":
            name = None  # a lone word without bid and name is prose
        if name is not None:
            props = _scan_props(line, name[1])
            if props is not None:
                return Node(len(tabs), None if bid is None else int(bid), role, name[0], props), indent
    return Node(len(line) - len(line.lstrip("\t")), None, "", "", (), line), ""


@lru_cache(maxsize=8192)
def _scan_again(line: str) -> tuple[Node, str]:
    """`_scan` that remembers: from page to page nearly all lines are the same."""
    return _scan(line)


def parse_line(line: str) -> Node:
    """Reads one line, indented by tabs, into a node; opaque if it does not parse.

    Raises:
        ValueError: The text holds a newline, or nothing but white space: no node is written so.
    """
    if "\n" in line or not line.strip():
        raise ValueError(f"expected one line that is not blank, got {line[:80]!r}")
    return _scan(line)[0]


def parse(text: str) -> Page:
    """Reads a page from any text whatever, in time linear in its length.

    Both quote characters are read everywhere. Lines indented by spaces are understood too: the smallest such
    indentation on the page is one level. What does not parse becomes an opaque node.
    """
    nodes: list[Node] = []
    spaced: list[tuple[int, int]] = []  # position, width of the indentation by spaces
    for line in text.split("\n"):
        if not line or line.isspace():
            continue
        node, indent = (_scan_again if len(line) <= _REMEMBERED else _scan)(line)
        if indent:
            spaced.append((len(nodes), len(indent)))
        nodes.append(node)
    if spaced:
        unit = min((width for position, width in spaced if nodes[position].depth == 0), default=2)
        for position, width in spaced:
            node = nodes[position]
            nodes[position] = node.replace(depth=node.depth + width // unit)
    return Page(tuple(nodes))


# --- differences --------------------------------------------------------------------------------------------

# Beyond these difflib would take many seconds, so a differing middle is then replaced as one block.
_MOST_LINES: Final = 4_000
_MOST_EQUAL_PAIRS: Final = 200_000


def _edit(old: Page, new: Page, position: int, node: Node) -> str:
    bid = node.bid
    if bid is not None:
        before = old.nodes[position]
        if before.bid == bid and before.depth == node.depth and old.is_unique(bid) and new.is_unique(bid):
            return node.line[node.depth :]
    return f"={position} {node.line}"


def _operations(keys: list[object], new_keys: list[object]) -> list[tuple[str, int, int, int, int]]:
    """Opcodes in difflib's form that turn `keys` into `new_keys`."""
    start = 0
    end, new_end = len(keys), len(new_keys)
    while start < end and start < new_end and keys[start] == new_keys[start]:
        start += 1
    while end > start and new_end > start and keys[end - 1] == new_keys[new_end - 1]:
        end, new_end = end - 1, new_end - 1
    mine, theirs = keys[start:end], new_keys[start:new_end]
    middle = [("replace", 0, len(mine), 0, len(theirs))]
    if len(mine) + len(theirs) <= _MOST_LINES:
        counts = Counter(theirs)
        if sum(counts[key] for key in mine) <= _MOST_EQUAL_PAIRS:
            middle = list(SequenceMatcher(None, mine, theirs, False).get_opcodes())
    shifted = [(tag, a + start, b + start, c + start, d + start) for tag, a, b, c, d in middle]
    return [
        ("equal", 0, start, 0, start),
        *shifted,
        ("equal", end, len(keys), new_end, len(new_keys)),
    ]


def diff(old: Page, new: Page) -> str:
    """The changes from `old` to `new`, as lines that a model can read and `patch` can undo; `''` if none.

    Line numbers count the old page's lines from 0. Four kinds of line, told apart by their first character:

    - `[12] textbox 'Name', value='Ann'`: the one node with bid 12 now reads so, at its old place and depth;
    - `=4 <line>`: line 4 is replaced by this line (given with its tabs);
    - `-4` or `-4..9`: line 4, or lines 4 to 9, are gone;
    - `+4 <line>`: this line (given with its tabs) is inserted before line 4.
    """
    before, after = old.nodes, new.nodes
    if before == after:
        return ""
    if len(before) == len(after):
        changed = [i for i, node in enumerate(after) if node is not before[i] and node != before[i]]
        # In place if bids line up; a few changed lines without bid (a title, a text) do not spoil that.
        in_place = all(before[i].bid == after[i].bid for i in changed)
        if in_place and sum(after[i].bid is None for i in changed) <= 2:
            return "\n".join([_edit(old, new, i, after[i]) for i in changed])

    def key(node: Node) -> object:
        bid = node.bid
        unique = bid is not None and old.is_unique(bid) and new.is_unique(bid)
        return (node.depth, bid) if unique else node.line

    lines: list[str] = []
    for tag, start, end, new_start, new_end in _operations([key(n) for n in before], [key(n) for n in after]):
        shared = min(end - start, new_end - new_start)
        for offset in range(shared):
            node = after[new_start + offset]
            if node != before[start + offset]:
                lines.append(_edit(old, new, start + offset, node))
        if tag == "equal":
            continue
        gone = start + shared
        if gone < end:
            lines.append(f"-{gone}" if gone == end - 1 else f"-{gone}..{end - 1}")
        lines += [f"+{end} {node.line}" for node in after[new_start + shared : new_end]]
    return "\n".join(lines)


_SHOWN_BID: Final = re.compile(r"\[([0-9]{1,18}+)\] ")
_NUMBERED: Final = re.compile(r"([=+])([0-9]{1,9}+) (.+)|-([0-9]{1,9}+)(?:\.\.([0-9]{1,9}+))?", re.DOTALL)


def patch(old: Page, diff_text: str) -> Page:
    """The page that `diff(old, page)` describes: `patch(a, diff(a, b)) == b`.

    Raises:
        ValueError: The text is not a difference from `old`.
    """
    if not diff_text:
        return old
    edits: dict[int, Node] = {}
    inserted: dict[int, list[Node]] = {}
    removed: set[int] = set()
    size = len(old.nodes)
    for line in diff_text.split("\n"):
        if line.startswith("["):
            shown = _SHOWN_BID.match(line)
            bid = int(shown[1]) if shown else -1
            position = old.index_of(bid) if old.is_unique(bid) else None
            if position is None:
                raise ValueError(f"expected a line whose bid occurs once on the old page, got {line[:80]!r}")
            edits[position] = parse_line("\t" * old.nodes[position].depth + line)
            continue
        match = _NUMBERED.fullmatch(line)
        if match is None:
            raise ValueError(f"expected '[bid] …', '=n …', '+n …', '-n' or '-n..m', got {line[:80]!r}")
        kind, number, text, first, last = match.groups()
        position = int(number or first)
        end = int(last) if last else position
        if end >= size + (kind == "+") or position > end:
            raise ValueError(f"expected a line number below {size}, the old page's length, got {line[:80]!r}")
        if kind is None:
            removed.update(range(position, end + 1))
        elif kind == "=":
            edits[position] = parse_line(text)
        else:
            inserted.setdefault(position, []).append(parse_line(text))
    nodes: list[Node] = []
    for position, node in enumerate(old.nodes):
        nodes += inserted.get(position, ())
        if position not in removed:
            nodes.append(edits.get(position, node))
    return Page((*nodes, *inserted.get(size, ())))
