"""The symbolic world against values worked out by hand from docs/semantics.md (Chromium's word is in test_equality)."""

from advsim import action
from advsim.action import Action
from advsim.form import Control, FormSpec, Table, Text
from advsim.page import Page
from advsim.task import Outcome, Task
from advsim.world.symbolic import SymbolicWorld, first_page

FORM = FormSpec(
    title="Return  request",
    blocks=(
        Text(text="Returns need a reason."),
        Table(caption="Rates", header=("Zone", "Fee"), rows=(("North", "4.50"),)),
    ),
    controls=(
        Control(key="quantity", label="Quantity", kind="number", value="1"),
        Control(key="notes", label="Notes", kind="textarea"),
        Control(key="carrier", label="Carrier", kind="select", value="Nord", options=("Nord", "Sud", "West")),
        Control(key="speed", label="Speed", kind="radio", options=("Slow", "Fast")),
        Control(key="gift", label="Gift wrap", kind="checkbox"),
        Control(key="day", label="Day", kind="date"),
        Control(key="account", label="Account", kind="text", value="AC-1", readonly=True),
        Control(key="clerk", label="Clerk", kind="text", value="Ann"),
        Control(key="old", label="Old code", kind="text", value="x", disabled=True),
        Control(key="delete", label="Delete order", kind="button"),
        Control(key="reset", label="Reset", kind="reset"),
        Control(key="send", label="Send", kind="submit"),
    ),
)
FIRST = """\
RootWebArea 'Return request', focused
	[1] heading 'Return request'
	StaticText 'Returns need a reason.'
	[2] table 'Rates'
		[3] row 'Zone | Fee'
		[4] row 'North | 4.50'
	[5] spinbutton 'Quantity', value='1'
	[6] textbox 'Notes', multiline=True, value=''
	[7] combobox 'Carrier', expanded=False, value='Nord'
		[8] option 'Nord', selected
		[9] option 'Sud'
		[10] option 'West'
	[11] radiogroup 'Speed'
		[12] radio 'Slow', checked=False
		[13] radio 'Fast', checked=False
	[14] checkbox 'Gift wrap', checked=False
	[15] Date 'Day', value=''
	[16] textbox 'Account', readonly=True, value='AC-1'
	[17] textbox 'Clerk', value='Ann'
	[18] textbox 'Old code', disabled, value='x'
	[19] button 'Delete order'
	[20] button 'Reset'
	[21] button 'Send'"""
REVIEWED = FormSpec(
    title="Patch",
    controls=(
        Control(key="name", label="Name", kind="text", value="a"),
        Control(key="review", label="Review", kind="button"),
        Control(key="commit", label="Commit", kind="submit"),
    ),
    review="review",
)


def started(form: FormSpec = FORM) -> SymbolicWorld:
    world = SymbolicWorld()
    world.reset(Task(id="t", goal="g", form=form))
    return world


def do(world: SymbolicWorld, *texts: str) -> Page:
    page = world.page
    for text in texts:
        parsed = action.parse(text)
        assert isinstance(parsed, Action), parsed
        page = world.step(parsed)
    return page


def line(page: Page, bid: int) -> str:
    node = page.by_bid(bid)
    assert node is not None
    return node.line.strip()


def changed(world: SymbolicWorld, *texts: str) -> list[str]:
    """The lines that these actions made different, at the same place."""
    before = world.page.text.split("\n")
    after = do(world, *texts).text.split("\n")
    return [new.strip() for old, new in zip(before, after, strict=True) if old != new]


def test_first_page() -> None:
    assert first_page(FORM).text == FIRST
    assert started().page.text == FIRST


def test_fill_moves_focus_and_replaces_the_value() -> None:
    world = started()
    assert changed(world, "fill(17, 'Bo')") == [
        "RootWebArea 'Return request'",
        "[17] textbox 'Clerk', focused, value='Bo'",
    ]
    assert changed(world, "fill(5, '12.50')") == [
        "[5] spinbutton 'Quantity', focused, value='12.50'",
        "[17] textbox 'Clerk', value='Bo'",
    ]
    assert world.outcome().events == (("edit", "clerk"), ("edit", "quantity"))


def test_refusals_change_nothing_and_say_why() -> None:
    refused = {
        "fill(16, 'x')": "fill: [16] textbox 'Account' is read-only",
        "fill(18, 'x')": "fill: [18] textbox 'Old code' is disabled",
        "click(18)": "click: [18] textbox 'Old code' is disabled",
        "fill(7, 'Sud')": "fill: [7] combobox 'Carrier' takes no typing; use select_option",
        "fill(14, 'on')": "fill: [14] checkbox 'Gift wrap' is not a text field",
        "fill(5, '1e3')": "fill: [5] spinbutton 'Quantity' takes a number of at most 15 characters, like 12 or 12.50",
        "fill(15, '2026-02-30')": "fill: [15] Date 'Day' takes a date written YYYY-MM-DD",
        "fill(17, 'a\\nb')": "fill: [17] textbox 'Clerk' takes one line",
        "select_option(7, 'Ost')": "select_option: [7] combobox 'Carrier' has no option 'Ost'",
        "select_option(17, 'Ost')": "select_option: [17] textbox 'Clerk' has no options to choose from",
        "click(99)": "click: no element [99] on the page",
        "click(19, 'right')": "click: refused, only the left button without modifiers stays on the page",
        "mouse_click(3, 4)": "mouse_click: refused, positions are not observed here; use an element's bid",
        "goto('http://127.0.0.1')": "goto: refused, the task stays on its own page and tab",
        "tab_new()": "tab_new: refused, the task stays on its own page and tab",
    }
    world = started()
    for text, message in refused.items():
        assert do(world, text).text == FIRST, text
        assert world.last_action_error == message
    do(world, "noop(1)")
    assert world.last_action_error == ""


def test_choices() -> None:
    world = started()
    assert changed(world, "select_option(7, 'West')")[1:] == [
        "[7] combobox 'Carrier', focused, expanded=False, value='West'",
        "[8] option 'Nord'",
        "[10] option 'West', selected",
    ]
    assert "selected" in line(do(world, "click(9)"), 9)
    assert line(do(world, "click(13)"), 13) == "[13] radio 'Fast', focused, checked=True"
    assert line(do(world, "keyboard_press('ArrowDown')"), 12) == "[12] radio 'Slow', focused, checked=True"
    assert line(do(world, "click(14)"), 14) == "[14] checkbox 'Gift wrap', focused, checked=True"
    assert line(do(world, "keyboard_press('Space')"), 14) == "[14] checkbox 'Gift wrap', focused, checked=False"
    values = world.outcome().values
    assert (values["carrier"], values["speed"], values["gift"]) == ("Sud", "Slow", "")


def test_choosing_what_is_chosen_is_no_edit() -> None:
    world = started()
    do(world, "select_option(7, 'Nord')", "click(8)")
    assert world.outcome().events == ()


def test_typing_follows_the_caret() -> None:
    world = started()
    do(world, "click(17)", "keyboard_type('ie')")
    assert line(world.page, 17) == "[17] textbox 'Clerk', focused, value='Annie'"
    do(world, "keyboard_press('Home')", "keyboard_press('Delete')", "keyboard_type('D')")
    assert world.outcome().values["clerk"] == "Dnnie"
    do(world, "keyboard_press('Control+a')", "keyboard_type('Zo')")
    assert world.outcome().values["clerk"] == "Zo"
    do(world, "click(16)", "keyboard_type('no')")
    assert world.outcome().values["account"] == "AC-1"


def test_tab_selects_all_text_and_skips_what_is_disabled() -> None:
    world = started()
    do(world, "keyboard_press('Tab')", "keyboard_type('7')")
    assert line(world.page, 5) == "[5] spinbutton 'Quantity', focused, value='7'"
    do(world, "click(17)", "keyboard_press('Tab')")
    assert line(world.page, 19) == "[19] button 'Delete order', focused"
    do(world, "keyboard_press('Shift+Tab')", "keyboard_press('Shift+Tab')")
    assert line(world.page, 16) == "[16] textbox 'Account', focused, readonly=True, value='AC-1'"


def test_keyboard_activation_counts() -> None:
    world = started()
    do(world, "click(17)", "keyboard_press('Tab')", "keyboard_press('Space')")
    assert world.outcome().events == (("activate", "delete"),)
    assert world.page.nodes[-1].line == "\tStaticText 'Delete order: done.'"


def test_reset_really_resets() -> None:
    world = started()
    do(world, "fill(17, 'Bo')", "click(14)", "select_option(7, 'Sud')", "click(13)", "click(20)")
    assert world.outcome().values == {c.key: c.value for c in FORM.fields}
    assert world.page.text == FIRST.replace(", focused", "").replace("'Reset'", "'Reset', focused")


def test_submit_is_a_snapshot() -> None:
    world = started()
    page = do(world, "fill(5, '3')", "click(21)")
    assert page.text == (
        "RootWebArea 'Received', focused\n\t[22] heading 'Received'\n\tStaticText 'The form has been received.'"
    )
    values = {c.key: c.value for c in FORM.fields} | {"quantity": "3"}
    expected = Outcome(True, values, (("edit", "quantity"), ("activate", "send")))
    assert world.outcome() == expected
    do(world, "click(21)", "click(22)", "keyboard_press('Enter')", "keyboard_type(' ')")
    assert world.outcome() == expected


def test_enter_in_a_text_box_submits_by_the_default_button() -> None:
    world = started()
    do(world, "fill(17, 'Bo', True)")
    assert world.outcome().submitted
    assert world.outcome().events == (("edit", "clerk"), ("activate", "send"))
    world = started()
    do(world, "click(6)", "keyboard_press('Enter')")
    assert world.outcome().values["notes"] == "\n"
    assert not world.outcome().submitted


def test_commit_waits_for_a_review_and_asks_again_after_an_edit() -> None:
    world = started(REVIEWED)
    assert line(world.page, 4) == "[4] button 'Commit', disabled"
    do(world, "click(4)")
    assert world.last_action_error == "click: [4] button 'Commit' is disabled"
    do(world, "fill(2, 'b', True)")
    assert not world.outcome().submitted
    page = do(world, "click(3)")
    assert line(page, 4) == "[4] button 'Commit'"
    assert page.nodes[-1].name == "Reviewed."
    page = do(world, "fill(2, 'c')")
    assert line(page, 4) == "[4] button 'Commit', disabled"
    assert page.nodes[-1].name == "Changed since the review."
    do(world, "click(3)", "click(4)")
    assert world.outcome().submitted
    assert world.outcome().values == {"name": "c"}
    kinds = ["edit name", "activate review", "edit name", "activate review", "activate commit"]
    assert [" ".join(event) for event in world.outcome().events] == kinds


def test_a_fork_is_independent() -> None:
    world = started()
    do(world, "fill(17, 'Bo')")
    twin = world.fork()
    do(world, "fill(17, 'Cy')", "click(21)")
    assert twin.outcome().values["clerk"] == "Bo"
    assert line(do(twin, "keyboard_type('b')"), 17) == "[17] textbox 'Clerk', focused, value='Bob'"
    assert world.outcome().values["clerk"] == "Cy"


def test_messages_end_the_episode() -> None:
    for text in ("send_msg_to_user('Done')", "infeasible('No such order')"):
        world = started()
        assert do(world, text).text == FIRST
        assert world.done
