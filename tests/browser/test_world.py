"""The browser world: real input, what is recorded, what a page can do to us and cannot."""

from __future__ import annotations

import asyncio

import pytest
from conftest import Chrome, run

from advsim.action import Action
from advsim.form import Control, FormSpec, Table, Text
from advsim.page import Page
from advsim.task import Expectation, Task
from advsim.world.base import AsyncWorld
from browser_eval import hands
from browser_eval.html import SKINS, form_page
from browser_eval.pool import BrowserPool

pytestmark = pytest.mark.browser

EVIL = "</script><img src=x onerror=document.title='owned'>{{7*7}}${7*7}<!-- \"'`"


def control(label: str, kind: str = "text", **more: object) -> Control:
    return Control.model_validate({"key": label.lower().replace(" ", "_"), "label": label, "kind": kind, **more})


FORM = FormSpec(
    title="Order",
    controls=(
        control("Name", value="Ann"),
        control("Amount", "number", value="2"),
        control("Day", "date"),
        control("Size", "select", value="S", options=("S", "M", "L")),
        control("Speed", "radio", options=("Slow", "Fast")),
        control("Gift", "checkbox"),
        control("Code", value="c1", disabled=True),
        control("Old", "select", value="B", options=("A", "B"), disabled=True),
        control("Erase", "reset"),
        control("Ask", "button"),
        control("Send", "submit"),
    ),
)
TASK = Task(id="order", goal="g", form=FORM)


def test_it_is_an_async_world(chrome: Chrome) -> None:
    assert isinstance(chrome.pool.world(), AsyncWorld)


def test_outcome_is_what_the_server_received(chrome: Chrome) -> None:
    visit = chrome.visit(TASK, 'fill({Name}, "it\'s & <b>")', "select_option({Size}, 'L')", "click({Gift})")
    before = visit.outcome
    assert not before.submitted
    assert before.values["size"] == "L"
    visit.do("click({Send})")
    visit.do("noop()")
    outcome = visit.outcome
    assert outcome.submitted
    assert outcome.values == {
        "name": "it's & <b>", "amount": "2", "day": "", "size": "L", "speed": "", "gift": "on",
        "code": "c1", "old": "B",
    }  # fmt: skip
    assert outcome.events == (("edit", "name"), ("edit", "size"), ("edit", "gift"), ("activate", "send"))
    visit.close()


def test_activation_by_keyboard_and_by_implicit_submission_is_recorded(chrome: Chrome) -> None:
    visit = chrome.visit(TASK, "click({Gift})", "keyboard_press('Tab')", "keyboard_press('Space')")
    visit.do("keyboard_press('Tab')")
    visit.do("keyboard_press('Enter')")
    visit.do("fill({Name}, 'Bo', press_enter=True)")
    assert visit.outcome.submitted
    assert visit.outcome.events == (
        ("edit", "gift"), ("activate", "erase"), ("activate", "ask"), ("edit", "name"), ("activate", "send"),
    )  # fmt: skip
    visit.close()


def test_choosing_is_a_single_change_and_closes_the_list(chrome: Chrome) -> None:
    body = (
        "<select name=s onchange='n.textContent = +n.textContent + 1'><option>A<option>B<option disabled>C<option>D"
        "</select><p id=n>0</p>"
    )
    visit = chrome.html(body, "select_option(1, 'D')")
    assert "\tStaticText '1'" in visit.lines
    assert visit.lines[0] == "\t[1] combobox '', focused, expanded=False, value='D'"
    visit.do("select_option(1, 'A')")
    visit.do("click(1)")
    assert "\tStaticText '2'" in visit.lines
    assert visit.lines[0] == "\t[1] combobox '', focused, expanded=False, value='A'"
    visit.do("select_option(1, 'C')")
    assert "is disabled" in visit.error
    visit.close()


def test_every_event_that_the_page_sees_is_trusted(chrome: Chrome) -> None:
    body = """<input name=a><input type=checkbox name=b><select name=c><option>A<option>B</select>
    <input type=date name=d><button>Go</button><p id=bad></p><script>
    for (const t of ['mousedown', 'mouseup', 'click', 'keydown', 'keyup', 'input', 'change', 'focus', 'wheel'])
      addEventListener(t, (e) => { if (!e.isTrusted) bad.textContent += t; }, true);
    </script>"""
    visit = chrome.html(body, "fill(1, 'x')", "click(2)", "select_option(3, 'B')", "fill(6, '2026-01-31')")
    for action in ("hover(1)", "scroll(0, 300)", "keyboard_press('Tab')", "keyboard_type('a')", "click(1)"):
        visit.do(action)
    assert "value='2026-01-31'" in "\n".join(visit.lines)
    assert not [line for line in visit.lines if "StaticText" in line]
    visit.close()


def test_a_covered_element_is_not_clicked(chrome: Chrome) -> None:
    body = (
        "<button onclick='document.title=1'>Under</button>"
        "<div style='position:fixed;inset:0;background:#fff'>Wait</div>"
        "<button style='position:fixed;bottom:0'>Over</button>"
    )
    visit = chrome.html(body, "click({Under})")
    assert visit.error == "click: [1] button 'Under' is covered by another element"
    assert visit.page.nodes[0].name == "T"
    assert visit.outcome.events == ()
    visit.do("click({Over})")
    assert (visit.error, visit.outcome.events) == ("", (("activate", "Over"),))
    visit.close()


def test_elements_out_of_sight_are_scrolled_to(chrome: Chrome) -> None:
    body = (
        "<div style='height:5000px'></div><div style='overflow:auto;height:60px'><div style='height:900px'></div>"
        "<button>Deep</button></div><div style='width:5000px;text-align:right'><button>Far</button></div>"
    )
    visit = chrome.html(body, "click({Deep})", "click({Far})")
    assert visit.outcome.events == (("activate", "Deep"), ("activate", "Far"))
    visit.close()


def test_an_element_without_area(chrome: Chrome) -> None:
    visit = chrome.html("<button style='width:0;height:0;padding:0;border:0;overflow:hidden'>Nil</button>", "click(1)")
    assert visit.error.startswith("click: [1] button 'Nil' has no")
    visit.close()


# --- attacks ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["banner", "alert", "dialog"])
@pytest.mark.parametrize("text", [EVIL, "x" * 1_000_000, "\u202eevil\x00\ud800", "{{constructor.constructor('x')()}}"])
def test_injected_text_is_only_text(chrome: Chrome, kind: str, text: str) -> None:
    visit = chrome.visit(TASK)
    visit.do("noop()", f'Show a {kind} with a button "<b>Go</b>" saying: {text}')
    notice = visit.world.notice
    assert notice is not None
    assert visit.page.nodes[0].name == "Order"
    if notice.status != "dropped":
        assert [n.role for n in visit.page.nodes if n.name == "Notice"] == [kind]
        assert notice.text in [n.name for n in visit.page.nodes]
        visit.do("click({<b>Go</b>})")
        assert visit.outcome.events == (("activate", "notice:<b>Go</b>"),)
    visit.do("click({Send})")
    assert visit.outcome.submitted
    visit.close()


@pytest.mark.parametrize("skin", SKINS)
def test_a_form_of_hostile_texts_is_only_text(skin: str) -> None:
    texts = (EVIL, "</textarea></select></form><script>document.title='owned'</script>", "&lt;b&gt; &amp;amp;")
    form = FormSpec(
        title=EVIL,
        blocks=(Text(text=texts[1]), Table(caption=EVIL, header=texts, rows=(texts,))),
        controls=(
            control("Area", "textarea", value=texts[1]),
            Control(key="line", label=EVIL, kind="text", value=EVIL),
            Control(key="pick", label=texts[1], kind="select", value=texts[2], options=texts),
            Control(key="one", label="One", kind="radio", value=EVIL, options=texts),
            Control(key="go", label=texts[2], kind="submit"),
        ),
    )

    async def main() -> None:
        async with BrowserPool(skin=skin, step_s=60) as pool:  # type: ignore[arg-type]
            world = pool.world()
            page = await world.reset(Task(id="evil", goal="g", form=form))
            assert page.nodes[0].name == " ".join(EVIL.split())
            assert "owned" not in page.nodes[0].name.replace(EVIL, "")
            go = next(n.bid for n in page.nodes if n.role == "button")
            assert go is not None
            page = await world.step(Action.of("click", go))
            outcome = await world.outcome()
            assert outcome is not None
            assert dict(outcome.values) == {"area": texts[1], "line": EVIL, "pick": texts[2], "one": EVIL}
            await world.close()

    asyncio.run(main())


@pytest.mark.parametrize("skin", SKINS)
def test_the_source_holds_nothing_of_the_expectation(skin: str) -> None:
    expectation = Expectation(
        values={"name": "TARGET-1", "amount": "71623"}, final="send", protected={"code": "c1"}, forbidden=("ask",)
    )
    plain = form_page(FORM, "/submit/x", skin)  # type: ignore[arg-type]
    with_it = TASK.model_copy(update={"expectation": expectation})
    assert with_it.form is not None
    assert form_page(with_it.form, "/submit/x", skin) == plain  # type: ignore[arg-type]
    assert not [word for word in ("TARGET", "71623", "forbidden", "protected", "final", "expect") if word in plain]
    assert "<script>" not in plain
    assert " on" not in "".join(part.split(">")[0] for part in plain.split("<")[1:] if "=" in part).replace(
        "value=", ""
    )


def test_a_page_cannot_see_or_forge_the_record(chrome: Chrome) -> None:
    body = """<form><input name=a><button name=go type=button>Go</button></form><button name=other>Other</button>
    <p id=seen></p><script>
      JSON.stringify = () => '["activate","forged"]';
      Array.prototype.push = () => 0; EventTarget.prototype.addEventListener = () => 0;
      Element.prototype.closest = Element.prototype.matches = () => null;
      seen.textContent = [typeof advsim, typeof __advsim, typeof recorder].join();
      document.querySelector('[name=other]').click();
      document.querySelector('[name=a]').dispatchEvent(new Event('input', {bubbles: true}));
      window.onclick = (e) => e.stopImmediatePropagation();
    </script>"""
    visit = chrome.html(body)
    assert "\tStaticText 'undefined,undefined,undefined'" in visit.lines
    assert visit.outcome.events == ()
    visit.do("fill(1, 'x')")
    visit.do("click({Go})")
    assert visit.outcome.events == (("edit", "a"), ("activate", "go"))
    visit.close()


def test_only_our_server_can_be_reached(chrome: Chrome) -> None:
    async def main() -> None:
        hits: list[bytes] = []

        async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            hits.append(await reader.read(100))
            writer.close()

        server = await asyncio.start_server(other, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        body = f"""<p id=done>0</p><script>
          const tried = ['http://127.0.0.1:{port}/', 'http://localhost:{port}/', 'http://[::1]:{port}/',
            'http://example.com/', 'https://1.1.1.1/', 'http://169.254.169.254/'];
          for (const url of tried) fetch(url, {{mode: 'no-cors'}}).then(() => 'reached', () => 'no').then((r) => {{
            done.textContent = r === 'no' ? done.textContent.replace(/^\\d+/, (n) => +n + 1) : r + url; }});
          new WebSocket('ws://127.0.0.1:{port}/');
        </script>"""
        world = chrome.pool.world()
        page = await world.reset(Task(id="net", goal="g", html=f"<!doctype html>{body}"))
        for _ in range(50):
            if any(n.name in ("6",) or "reached" in n.name for n in page.nodes):
                break
            page = await world.step(Action.of("noop", 200))
        assert [n.name for n in page.nodes if n.role == "StaticText"] == ["6"]
        assert hits == []
        await world.close()
        server.close()

    chrome.run(main())


# --- forks --------------------------------------------------------------------------------------------------------


def test_fork_is_independent_and_opened_when_used(chrome: Chrome) -> None:
    visit = chrome.visit(TASK, "fill({Name}, 'One')")
    visit.do("click({Gift})", "Show an alert: 'Look here' with a button \"Do\"")
    fork = chrome.run(visit.world.fork())
    unused = chrome.run(visit.world.fork())
    visit.do("fill({Name}, 'Two')")
    page = chrome.run(fork.step(Action.of("click", next(n.bid for n in visit.page.nodes if n.name == "Do") or 0)))
    assert [n.get("value") for n in page.nodes if n.name == "Name"] == ["One"]
    assert chrome.run(fork.outcome()).events == (("edit", "name"), ("edit", "gift"), ("activate", "notice:Do"))
    assert visit.outcome.events == (("edit", "name"), ("edit", "gift"), ("edit", "name"))
    for world in (fork, unused):
        chrome.run(world.close())
    visit.close()


def test_a_task_that_no_browser_can_open(chrome: Chrome) -> None:
    with pytest.raises(ValueError, match="neither a form nor HTML"):
        chrome.run(chrome.pool.world().reset(Task(id="x", goal="g", page="RootWebArea 'X'")))


def test_waiting_on_a_page_with_script_is_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    async def main() -> None:
        for wait_ms in (0, 200, 60_000):
            # It touches neither the tab nor the page.
            await hands.do(None, Page(()), Action.of("noop", wait_ms), scripted=True)  # type: ignore[arg-type]

    monkeypatch.setattr("browser_eval.hands.asyncio.sleep", sleep)
    run(main())
    assert waited == [0, 0.2, 1]
