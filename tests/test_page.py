import copy
import pickle
import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advsim.page import Node, Page, Token, diff, parse, parse_line, patch, quote, scan_quoted, serialise

FORM = """\
RootWebArea 'Order', focused
\t[1] form ''
\t\t[2] textbox 'Name', editable, required, value='Ann'
\t\t[3] checkbox 'Gift', checked=True
\t\t[4] combobox 'Size', hasPopup='menu', expanded=False
\t\tStaticText 'Total: 3 €'
\t\t[5] button 'Send', clickable"""

# --- known lines, worked out by hand ----------------------------------------------------------------------


def test_every_line_of_a_form_becomes_the_node_it_says():
    assert parse(FORM).nodes == (
        Node(0, None, "RootWebArea", "Order", (("focused", None),)),
        Node(1, 1, "form", ""),
        Node(2, 2, "textbox", "Name", (("editable", None), ("required", None), ("value", "Ann"))),
        Node(2, 3, "checkbox", "Gift", (("checked", True),)),
        Node(2, 4, "combobox", "Size", (("hasPopup", "menu"), ("expanded", False))),
        Node(2, None, "StaticText", "Total: 3 €"),
        Node(2, 5, "button", "Send", (("clickable", None),)),
    )


def test_a_canonical_page_prints_as_it_was_read():
    assert serialise(parse(FORM)) == FORM
    assert parse(FORM).opaque_count == 0


@pytest.mark.parametrize(
    ("line", "node"),
    [
        # WebWorld and BrowserGym dialects
        (
            '\t[227] link "It\'s here", clickable, visible, url=\'http://x\', value="a"',
            Node(
                1,
                227,
                "link",
                "It's here",
                (("clickable", None), ("visible", None), ("url", "http://x"), ("value", "a")),
            ),
        ),
        ("[9] checkbox 'x', checked='false'", Node(0, 9, "checkbox", "x", (("checked", "false"),))),
        ('RootWebArea "Say \\"hi\\""', Node(0, None, "RootWebArea", 'Say "hi"')),
        ("RootWebArea, focused", Node(0, None, "RootWebArea", "", (("focused", None),))),
        ("[0] generic, visible", Node(0, 0, "generic", "", (("visible", None),))),
        ("[7] heading 'A', level=2", Node(0, 7, "heading", "A", (("level", Token("2")),))),
        ("[7] heading 'A', level='2'", Node(0, 7, "heading", "A", (("level", "2"),))),
        ("[7] slider '', min=-0.5, x=None", Node(0, 7, "slider", "", (("min", Token("-0.5")), ("x", Token("None"))))),
        # structure inside quotes is text
        ("[1] link '[2] link', url='a, b=c]'", Node(0, 1, "link", "[2] link", (("url", "a, b=c]"),))),
        ("StaticText ', focused'", Node(0, None, "StaticText", ", focused")),
        # escapes: Python's and JSON's
        (r"StaticText 'it\'s \\ \n \x41 \u00e9 \U0001f600 \d'", Node(0, None, "StaticText", "it's \\ \n A é 😀 \\d")),
        (r"StaticText '\ud83d\ude00'", Node(0, None, "StaticText", "😀")),
        (r"StaticText '\U00110000 \x4'", Node(0, None, "StaticText", "\\U00110000 \\x4")),
        # generous with blanks
        ("[1]  link  'x' ,  visible,focused \r", Node(0, 1, "link", "x", (("visible", None), ("focused", None)))),
        ("[007] link 'x'", Node(0, None, "", "", (), "[007] link 'x'")),
    ],
)
def test_a_line_is_read_as(line, node):
    assert parse(line).nodes == (node,)
    assert parse_line(line) == node


@pytest.mark.parametrize(
    "line",
    [
        "[a12] link 'x'",
        "[-1] link 'x'",
        "[1.0] link 'x'",
        "[] link 'x'",
        "[1]link 'x'",
        "[1] link'x'",
        "[1] 'x'",
        "[1]",
        "[1] link 'x",
        "[1] link 'x\"",
        "[1] link 'x' focused",
        "[1] link 'x',",
        "[1] link 'x', value=",
        "[1] link 'x', value='y",
        "[1] link 'x', value = 'y'",
        "[1] link 'x', =3",
        "[1] link 'it's'",
        "[" + "9" * 5000 + "] link 'x'",
        "[٣] link 'x'",
        "Hello",
        "Hello, world",
        "```",
        "\t  <b>bold</b> ",
        "\u202e[1] link 'x'",
        "-3",
        "+3 [1] link 'x'",
    ],
)
def test_a_line_that_does_not_parse_is_kept_verbatim_and_counted(line):
    page = parse(f"RootWebArea 'T'\n{line}\n[1] link 'x'")
    assert [node.opaque for node in page.nodes] == [None, line, None]
    assert page.opaque_count == 1
    assert page.text.split("\n")[1] == line
    assert page.nodes[1].depth == len(line) - len(line.lstrip("\t"))


def test_blank_lines_are_dropped_and_the_empty_page_is_the_empty_text():
    assert parse("") == parse("\n \n\t\n\u2028") == Page(())
    assert Page(()).text == ""
    assert parse("\n[1] link 'x'\n\n") == parse("[1] link 'x'")


def test_the_smallest_indentation_by_spaces_is_one_level():
    page = parse("RootWebArea 'T'\n    [1] form ''\n        [2] link 'x'\n        nonsense\n\t[3] link 'y'")
    assert [node.depth for node in page.nodes] == [0, 1, 2, 0, 1]
    assert page.nodes[3].line == "        nonsense"
    assert parse("RootWebArea 'T'\n [1] form ''\n  [2] link 'x'").nodes[2].depth == 2


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("", "''"),
        ("a", "'a'"),
        ("it's", '"it\'s"'),
        ('a "b"', "'a \"b\"'"),
        ("'\"", "'\\'\"'"),
        ("a\\b\n\r\t", r"'a\\b\n\r\t'"),
        ("\x00\x0b\x0c\x1c\x7f\x85", r"'\x00\x0b\x0c\x1c\x7f\x85'"),
        ("\u2028\u2029", r"'\u2028\u2029'"),
        ("\ud800\udc00", r"'\U0000d800\U0000dc00'"),
        ("\u202eمرحبا 😀\xa0\u200d", "'\u202eمرحبا 😀\xa0\u200d'"),
    ],
)
def test_text_is_quoted_as(text, written):
    assert quote(text) == written
    assert scan_quoted(written, 0) == (text, len(written))
    assert scan_quoted(f"x={written}, y", 2) == (text, 2 + len(written))


def test_a_missing_end_quote_is_none():
    assert scan_quoted("'abc", 0) is None
    assert scan_quoted("'abc\\'", 0) is None


# --- nodes and pages as values ------------------------------------------------------------------------------


def test_accessors():
    node = parse_line("[4] textbox 'N', focused, required=True, value='', checked=False, level=2")
    assert node.flag("focused")
    assert node.flag("required")
    assert not node.flag("checked")
    assert not node.flag("value")
    assert not node.flag("absent")
    assert node.get("focused") is None
    assert node.get("absent") is None
    assert (node.get("value"), node.get("checked"), node.get("level")) == ("", "False", "2")


def test_replacing_makes_the_new_line_and_leaves_the_old_node():
    node = parse_line("\t[4] textbox 'N', focused, value='a'")
    assert node.replace(name="M", depth=0, bid=None).line == "textbox 'M', focused, value='a'"
    assert node._replace(name="M").line == "\t[4] textbox 'M', focused, value='a'"
    assert node.with_prop("value", "b").line == "\t[4] textbox 'N', focused, value='b'"
    assert node.with_prop("selected").line == "\t[4] textbox 'N', focused, value='a', selected"
    assert node.with_prop("checked", True).line.endswith(", checked=True")
    assert node.without("focused").line == "\t[4] textbox 'N', value='a'"
    assert node.line == "\t[4] textbox 'N', focused, value='a'"
    with pytest.raises(TypeError, match="colour"):
        node.replace(colour="red")


def test_the_three_kinds_of_value_are_never_equal():
    nodes = [Node(0, 1, "x", "", (("k", value),)) for value in (None, "True", True, "", "2", Token("2"), False)]
    assert len(set(nodes)) == len(nodes)
    assert [parse_line(node.line) for node in nodes] == nodes


def test_page_look_ups():
    page = parse(FORM + "\n[3] link 'again'")
    assert page.by_bid(3) == page.nodes[3]
    assert page.by_bid(99) is None
    assert (page.index_of(5), page.index_of(99)) == (6, None)
    assert (page.is_unique(5), page.is_unique(3), page.is_unique(99)) == (True, False, False)
    assert (page.next_bid, Page(()).next_bid, parse("[0] link ''").next_bid) == (6, 1, 1)
    assert len(page) == 8


def test_pages_are_immutable_hashable_and_copied_whole():
    page = parse(FORM)
    with pytest.raises(AttributeError, match="immutable"):
        page.nodes = ()
    with pytest.raises(AttributeError):
        page.nodes[0].name = "x"
    assert {page: 1}[parse(FORM)] == 1
    assert page != parse(FORM + "\n[6] link 'x'")
    assert page != FORM
    assert pickle.loads(pickle.dumps(page)) == copy.deepcopy(page) == page
    assert pickle.loads(pickle.dumps(page)).nodes[2].line == page.nodes[2].line


def test_a_given_text_is_used():
    page = Page(parse(FORM).nodes, FORM)
    assert page.text is FORM


def test_a_node_is_one_line_or_refused():
    for line in ("", " \t", "a\nb"):
        with pytest.raises(ValueError, match="one line"):
            parse_line(line)


# --- differences -------------------------------------------------------------------------------------------


def test_a_focus_move_and_a_value_are_two_short_lines():
    old = parse("RootWebArea 'T'\n\t[1] textbox 'A', focused\n\t[2] textbox 'B'")
    new = parse("RootWebArea 'T'\n\t[1] textbox 'A', value='x'\n\t[2] textbox 'B', focused")
    assert diff(old, new) == "[1] textbox 'A', value='x'\n[2] textbox 'B', focused"
    assert patch(old, diff(old, new)) == new
    assert diff(old, old) == diff(old, parse(old.text)) == ""
    assert patch(old, "") == old


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("", "[1] a 'x'", "+0 [1] a 'x'"),
        ("[1] a 'x'", "", "-0"),
        ("RootWebArea 'T', focused\n\t[1] a ''", "RootWebArea 'T'\n\t[1] a '', focused",
         "=0 RootWebArea 'T'\n[1] a '', focused"),
        # a banner comes in, three lines go
        ("[1] a ''\n[2] a ''", "[1] a ''\n\t[3] alert 'Stop'\n[2] a ''", "+1 \t[3] alert 'Stop'"),
        ("[1] a ''\n[2] a ''\n[3] a ''\n[4] a ''\n[5] a ''", "[1] a ''\n[5] a '', focused",
         "-1..3\n[5] a '', focused"),
        # a bid that moved in depth, is not unique, or changed is no plain edit
        ("[1] a 'x'", "\t[1] a 'x'", "=0 \t[1] a 'x'"),
        ("[1] a 'x'\n[1] a 'y'", "[1] a 'x'\n[1] a 'z'", "=1 [1] a 'z'"),
        ("[1] a 'x'", "[2] a 'x'", "=0 [2] a 'x'"),
        ("[1] a 'x'\n[1] a 'y'", "[1] a 'z'\n[2] b ''", "=0 [1] a 'z'\n=1 [2] b ''"),
        # lines without bid that moved up are not each rewritten
        ("\n".join(f"StaticText '{c}'" for c in "abcd"), "\n".join(f"StaticText '{c}'" for c in "bcde"),
         "-0\n+4 StaticText 'e'"),
        # opaque lines that look like a difference
        ("-3", "+3 x", "=0 +3 x"),
        ("[1] a 'x'", "[1] a 'x'\n[1] a 'x", "+1 [1] a 'x"),
        ("[1] a 'x'\n-0", "[1] a 'y'\n-0", "[1] a 'y'"),
    ],
)  # fmt: skip
def test_the_difference_is_written(old, new, text):
    assert diff(parse(old), parse(new)) == text
    assert patch(parse(old), text) == parse(new)


@pytest.mark.parametrize(
    "text",
    ["x", "[9] a 'x'", "[1] a 'x'\n", "-7", "-1..0", "=7 [1] a ''", "=0", "+0", "+8 [1] a ''", "-", "[x] a ''"],
)
def test_a_text_that_is_no_difference_is_refused(text):
    with pytest.raises(ValueError, match="expected"):
        patch(parse(FORM), text)


def test_a_thousand_rows_with_one_changed_and_one_gone_stay_short():
    rows = [f"\t[{i}] row 'r{i}'\n\t\tStaticText 'same'" for i in range(1, 1001)]
    old = parse("\n".join(rows))
    rows[500] += ", focused"
    del rows[700]
    new = parse("\n".join(rows))
    text = diff(old, new)
    assert patch(old, text) == new
    assert len(text.split("\n")) <= 3


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("StaticText 'a'\n" * 4000, "StaticText 'b'\nStaticText 'a'\n" * 2000),
        ("\n".join(f"[{i}] a ''" for i in range(6000)), "\n".join(f"[{i}] a ''" for i in reversed(range(6000)))),
        ("StaticText 'a'\nStaticText 'b'\n" * 900, "StaticText 'b'\nStaticText 'c'\n" * 900),
    ],
)
def test_hard_differences_take_no_long_time(old, new):
    old, new = parse(old), parse(new)
    start = time.perf_counter()
    assert patch(old, diff(old, new)) == new
    assert time.perf_counter() - start < 5


# --- properties -----------------------------------------------------------------------------------------

IDENTIFIERS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,8}", fullmatch=True)
TEXTS = st.text(
    st.one_of(
        st.characters(),
        st.characters(categories=["Cs"]),
        st.sampled_from("'\"\\[](),= \n\r\t\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\u202e\U0001f600ux0"),
    ),
    max_size=12,
)
VALUES = st.one_of(st.none(), st.booleans(), TEXTS, st.sampled_from(["0", "-1.5", "None", "a[b]", "é"]).map(Token))
NODES = st.tuples(
    st.integers(0, 3),
    st.one_of(st.none(), st.integers(0, 5), st.integers(0, 10**18 - 1)),
    IDENTIFIERS,
    TEXTS,
    st.lists(st.tuples(IDENTIFIERS, VALUES), max_size=3).map(tuple),
).map(lambda fields: Node(*fields))
OPAQUE = (
    st.one_of(
        TEXTS,
        st.sampled_from(["-1", "-0..1", "+0 x", "=0 x", "=0 [1] a ''", "[1] a 'x", "[a1] a 'x'", "  x", "\t[", "\r."]),
    )
    .filter(lambda line: "\n" not in line and line.strip())
    .map(parse_line)
)
PAGES = st.lists(st.one_of(NODES, NODES, OPAQUE), max_size=8).map(Page)


@st.composite
def related_pages(draw):
    """Two pages of which the second was made from the first by a few edits."""
    old = draw(PAGES)
    nodes = list(old.nodes)
    for _ in range(draw(st.integers(0, 4))):
        position = draw(st.integers(0, len(nodes)))
        kind = draw(st.sampled_from(["insert", "delete", "change", "move"]))
        if kind == "insert" or position == len(nodes):
            nodes.insert(position, draw(st.one_of(NODES, OPAQUE)))
        elif kind == "delete":
            del nodes[position]
        elif kind == "move":
            nodes.insert(draw(st.integers(0, len(nodes) - 1)), nodes.pop(position))
        elif nodes[position].opaque is None:
            nodes[position] = nodes[position].with_prop("value", draw(VALUES))
    return old, Page(nodes)


@settings(derandomize=True, deadline=None, max_examples=400)
@given(PAGES)
def test_parse_undoes_serialise(page):
    assert parse(serialise(page)) == page
    assert len(page.text.split("\n")) == max(1, len(page))
    for node in page.nodes:
        if node.opaque is None:
            assert len(node.line.splitlines()) == 1
            assert node.line.encode()


@settings(derandomize=True, deadline=None, max_examples=400)
@given(TEXTS, TEXTS)
def test_any_text_survives_pythons_own_repr(name, value):
    # BrowserGym prints names and values with repr(), which we did not write. Two escaped halves of a surrogate
    # pair are one character to us, as in JSON.
    name = name.encode("utf-16", "surrogatepass").decode("utf-16", "ignore")
    value = value.encode("utf-16", "surrogatepass").decode("utf-16", "ignore")
    node = parse_line(f"\t[3] link {name!r}, visible, value={value!r}, checked=True")
    assert node == Node(1, 3, "link", name, (("visible", None), ("value", value), ("checked", True)))


@settings(derandomize=True, deadline=None, max_examples=400)
@given(st.one_of(st.text(), TEXTS, st.lists(TEXTS).map("\n".join)))
def test_reading_is_total_and_drops_no_line(text):
    page = parse(text)
    assert parse(page.text) == page
    assert len(page) == sum(bool(line.strip()) for line in text.split("\n"))


@settings(derandomize=True, deadline=None, max_examples=400)
@given(PAGES, PAGES)
def test_patch_undoes_diff_of_any_two_pages(old, new):
    assert patch(old, diff(old, new)) == new
    assert (diff(old, new) == "") == (old == new)


@settings(derandomize=True, deadline=None, max_examples=800)
@given(related_pages())
def test_patch_undoes_diff_of_related_pages(pages):
    old, new = pages
    assert patch(old, diff(old, new)) == new
    assert patch(new, diff(new, old)) == old
    assert (diff(old, new) == "") == (old == new)


# --- fuzzing: 50,000 pages here and 50,000 actions in test_action.py ---------------------------------------

SNIPPETS = [
    "'", '"', "\\", "\\'", "\\u12", "\\ud83d", "[", "]", "[12]", "(", ")", ",", ", ", "=", "\n", "\r", "\t", " ", "\x00",  # noqa: E501
    "\x0b", "\x85", "\u2028", "\u202e", "\u200f", "مرحبا", "😀", "\ud800", "\udfff", "\ufeff", "value=", "True", "-1", "+0 ",  # noqa: E501
    "=0 ", "StaticText 'a'", "<|im_end|>", "9" * 30, "é",
]  # fmt: skip


def mutated(rng, text):
    for _ in range(rng.randint(1, 4)):
        at = rng.randint(0, len(text))
        kind = rng.random()
        if kind < 0.6:
            text = text[:at] + rng.choice(SNIPPETS) + text[at:]
        elif kind < 0.8:
            text = text[:at] + text[at + rng.randint(1, 5) :]
        elif kind < 0.9:
            text = text[:at] + text[rng.randint(0, len(text)) :]
        else:
            text = text[:at] + chr(rng.choice([rng.randint(0, 0xFF), rng.randint(0, 0x10FFFF)])) + text[at:]
    return text


def test_fifty_thousand_fuzzed_pages():
    rng = random.Random(20261)
    lines = FORM.split("\n")
    previous = parse(FORM)
    opaque = intact = 0
    for case in range(50_000):
        few = rng.sample(lines, rng.randint(1, 3))
        few[0] = mutated(rng, few[0])
        long = rng.choice(SNIPPETS) * (100_000 // 3) if case % 1000 == 0 else ""
        if long:
            few.append(f"[8] textbox 'Long', value={long!r}")
        text = "\n".join(few)
        page = parse(text)
        if long:
            assert page.nodes[-1] == Node(0, 8, "textbox", "Long", (("value", long),))
        written = page.text
        again = parse(written)
        assert again == page, text
        assert again.text == written, text
        assert [node.opaque for node in page.nodes if node.opaque is not None] == [
            line for line in text.split("\n") if line.strip() and parse_line(line).opaque is not None
        ], text
        for line in few[1:]:
            if line in lines:  # a line that was left alone reads as ever, whatever stands beside it
                assert line in written.split("\n"), text
        if not long:
            assert patch(previous, diff(previous, page)) == page, (previous.text, text)
            previous = page
        opaque += page.opaque_count > 0
        intact += page.opaque_count == 0
    assert min(opaque, intact) > 5_000  # the mutations reach both outcomes


@pytest.mark.parametrize(
    "text",
    [
        "\t" * 1_000_000,
        " " * 999_999 + "x",
        "[" * 1_000_000,
        "[1] link '" + "a" * 1_000_000,
        "[1] link '" + "\\" * 999_999,
        "[1] link '" + "\\'" * 500_000,
        "[1] link 'x'" + ", a" * 333_333 + ",",
        "[1] link 'x', a=" + "b" * 1_000_000 + "'",
        "[1] link 'x'" + " " * 1_000_000 + "y",
        "'\n" * 500_000,
        "\n" * 1_000_000,
        "[1] link 'it\\'s'\n" * 60_000,
    ],
)
def test_a_megabyte_is_read_in_linear_time(text):
    start = time.perf_counter()
    page = parse(text)
    assert time.perf_counter() - start < 5
    assert page.opaque_count in (0, len(page))


def test_the_step_of_a_world_is_cheap():
    # 1 / (30,000 transitions a second) is 33 µs; this much of it is ours. Measured: 5 µs.
    page = parse("\n".join(f"\t[{i}] textbox 'Field {i}', visible, value='abc'" for i in range(30)))

    def step():
        nodes = list(page.nodes)
        nodes[3] = nodes[3].replace(props=(("visible", None), ("value", "xyz")))
        nodes[7] = nodes[7].replace(props=(("visible", None), ("focused", None), ("value", "")))
        return Page(tuple(nodes)).text

    best = float("inf")
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(200):
            step()
        best = min(best, (time.perf_counter() - start) / 200)
    assert best < 30e-6
