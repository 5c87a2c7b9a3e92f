"""Arbitrary pages: real ones from the package `miniwob`, and small ones for each way in which a form can end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Chrome, Visit, run

from advsim.rewards.strict import strict
from advsim.world.base import WorldError
from browser_eval.pages import PageTaskError, load_page_task
from browser_eval.pool import BrowserPool

pytestmark = pytest.mark.browser

# Page -> expected values, final control, actions. The pages draw their problems at random; the harness
# gives every episode the same random numbers, so that the answers can be written down.
MINIWOB: dict[str, tuple[dict[str, str], str, list[str]]] = {
    "enter-text": ({"tt": "Truman"}, "subbtn", ["fill(1, 'Truman')", "click({Submit})"]),
    "enter-date": ({"tt": "2010-01-10"}, "subbtn", ["fill(1, '2010-01-10')", "click({Submit})"]),
    "enter-time": ({"tt": "23:57"}, "subbtn", ["fill(1, '23:57')", "click({Submit})"]),
    "enter-password": (
        {"password": "U9", "verify": "U9"}, "subbtn", ["fill(1, 'U9')", "fill(2, 'U9')", "click({Submit})"],
    ),
    "login-user": (
        {"username": "kenda", "password": "99kS"},
        "subbtn",
        ["fill(1, 'kenda')", "fill(2, '99kS')", "click({Login})"],
    ),
    "choose-list": ({"options": "Aurie"}, "Submit", ["select_option(2, 'Aurie')", "click({Submit})"]),
    "click-checkboxes": (
        {"ch0": "on", "ch1": "on", "ch2": "on", "ch3": ""},
        "subbtn",
        ["click({9kSLQ0E})", "click({mh})", "click({tnCk})", "click({Submit})"],
    ),
    "click-option": ({"radio": "eQA"}, "subbtn", ["click({eQA})", "click({Submit})"]),
    "form-sequence-2": ({"input-3": "49"}, "subbtn", ["click(2)", "fill(6, '49')", "click({Submit})"]),
}  # fmt: skip


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Writes a page and its task; gives their paths."""

    def files(page: str | None, task: object) -> tuple[Path, Path]:
        html, data = tmp_path / "page.html", tmp_path / "task.json"
        if page is not None:
            html.write_text(page, "utf-8")
        data.write_text(task if isinstance(task, str) else json.dumps(task), "utf-8")
        return html, data

    return files


@pytest.mark.parametrize("name", MINIWOB)
def test_miniwob(name: str, tmp_path: Path) -> None:
    miniwob = pytest.importorskip("miniwob")
    root = Path(miniwob.__file__).parent / "html"
    values, final, actions = MINIWOB[name]
    data = tmp_path / "task.json"
    data.write_text(json.dumps({"goal": "As the page says.", "expectation": {"values": values, "final": final}}))
    task, site = load_page_task(root / "miniwob" / f"{name}.html", data, root=root)
    # Its clock of ten seconds is no part of the task, and a slow machine's tests are no part of it either.
    assert task.html is not None
    patient = task.html.replace("window.onload = ", "core.EPISODE_MAX_TIME = 1e7; window.onload = ")
    task = task.model_copy(update={"html": patient})

    async def main() -> None:
        async with BrowserPool(site=site, step_s=60) as pool:
            chrome = Chrome.__new__(Chrome)
            chrome.pool = pool
            visit = Visit(chrome, pool.world())
            visit.page = await visit.world.reset(task)
            for text in ["click({START})", *actions]:
                await visit.go(text)
                assert visit.error == ""
            outcome = await visit.world.outcome()
            assert outcome is not None
            assert task.expectation is not None
            result = strict(task.expectation, outcome)
            assert result.good, (result.reasons, outcome)
            # The page's own judge agrees: its last reward is near 1.
            texts = [node.name for node in visit.page.nodes if node.role == "StaticText"]
            assert float(texts[texts.index("Last reward:") + 1]) > 0.5
            await visit.world.close()

    run(main())


FIELD = "<label>Who <input name=who></label>"
ENDS = {
    "a form without an action": f"<form method=post>{FIELD}<button name=go>Go</button></form>",
    "a form that is got": f"<form>{FIELD}<button name=go>Go</button></form>",
    "a form for another host": f"<form method=post action=https://a.test/x>{FIELD}<button name=go>Go</button></form>",
    "a form got from another host": f"<form action=http://example.com/x?a=b>{FIELD}<button name=go>Go</button></form>",
    "a form for another path": f"<form method=post action=/x>{FIELD}<button name=go>Go</button></form>",
    "parts for another path": (
        f"<form method=post action=/x/y?z=1 enctype=multipart/form-data>{FIELD}<button name=go>Go</button></form>"
    ),
    "a form in parts": f"<form method=post enctype=multipart/form-data>{FIELD}<button name=go>Go</button></form>",
    "a submit that a script takes": (
        f"<form onsubmit='event.preventDefault(); this.remove()'>{FIELD}<button name=go>Go</button></form>"
    ),
    "a button without a form": f"{FIELD}<button name=go onclick='document.body.textContent = \"Thanks\"'>Go</button>",
    "a form that a script sends": (
        f"<form method=post>{FIELD}</form><button name=go onclick='document.forms[0].submit()'>Go</button>"
    ),
    "something plain that listens": (
        f"{FIELD}<div id=go style='cursor:pointer'>Go</div>"
        "<script>document.getElementById('go').addEventListener('click', () => {})</script>"
    ),
    "a key of its accessible name": f"<form method=post>{FIELD}<button>go</button></form>",
}


@pytest.mark.parametrize("how", ENDS)
def test_every_way_in_which_a_form_ends(chrome: Chrome, how: str) -> None:
    visit = chrome.html(ENDS[how], "fill({Who}, 'Ann & Bo')")
    assert not visit.outcome.submitted
    visit.do("click(2)")
    outcome = visit.outcome
    assert outcome.submitted
    assert outcome.values["who"] == "Ann & Bo"
    assert outcome.events == (("edit", "who"), ("activate", "go"))
    visit.close()


def test_a_form_posted_to_another_path_is_received_by_the_server(chrome: Chrome) -> None:
    body = "<form method=post action=/x enctype=multipart/form-data>" + FIELD
    visit = chrome.html(body + "<input type=hidden name=csrf value=t><button name=go value=1>Go</button></form>")
    visit.do("fill({Who}, 'Ann')")
    visit.do("click({Go})")
    assert visit.outcome.values == {"who": "Ann", "csrf": "t", "go": "1"}
    assert visit.page.nodes[0].name == "Received"
    visit.close()


def test_keys_and_values_of_choices(chrome: Chrome) -> None:
    body = """<form method=post>
      <select name=size><option value=1>Small<option value=2>Large</select>
      <label><input type=radio name=way value=a> By air</label><label><input type=radio name=way value=b> By sea</label>
      <label><input type=checkbox name=extra value=x> X</label><label><input type=checkbox name=extra value=y> Y</label>
      <label><input type=checkbox id=terms> Terms</label>
      <textarea aria-label="A note"></textarea><input name=off value=kept disabled><input type=hidden name=csrf value=t>
      <button name=go>Go</button></form>"""
    visit = chrome.html(body, "select_option(1, 'Large')", "click({By sea})", "click({Y})", "click({Terms})")
    visit.do("fill({A note}, 'hi')")
    visit.do("click({Go})")
    wanted = {
        "size": "Large", "way": "By sea", "extra=x": "", "extra=y": "on", "terms": "on", "A note": "hi", "off": "kept",
    }  # fmt: skip
    assert {key: visit.outcome.values.get(key) for key in wanted} == wanted
    edits = [key for kind, key in visit.outcome.events if kind == "edit"]
    assert edits == ["size", "way", "extra=y", "terms", "A note"]
    visit.close()


def test_a_form_that_the_browser_holds_back_is_not_submitted(chrome: Chrome) -> None:
    body = "<form method=post><input name=who required><button name=go>Go</button></form>"
    visit = chrome.html(body, "click({Go})")
    assert not visit.outcome.submitted
    visit.do("fill(1, 'x')")
    visit.do("click({Go})")
    assert visit.outcome.submitted
    visit.close()


def test_a_task_stays_on_its_page(chrome: Chrome) -> None:
    body = (
        "<a href=https://example.com/>Away</a><a href=/elsewhere target=_blank>Tab</a><a href='#x'>Here</a>"
        "<button onclick='alert(1); document.title = confirm(2)'>Ask</button>"
        "<button onclick='window.open(\"about:blank\")'>Window</button>"
    )
    visit = chrome.html(body)
    for name in ("Away", "Tab", "Here", "Window", "Ask"):
        visit.do("click({" + name + "})")
        assert visit.error == ""
        assert visit.line("Away").startswith("[1] link 'Away'")
    assert visit.page.nodes[0].name == "true"
    visit.close()


def test_widgets_made_by_script(chrome: Chrome) -> None:
    body = """<div role=switch id=wifi aria-label=Wifi aria-checked=false tabindex=0>&nbsp;</div>
    <div role=listbox id=fruit aria-label=Fruit><div role=option>Fig</div><div role=option>Kiwi</div></div>
    <div role=button id=go tabindex=0>Go</div><script>
      wifi.onclick = () => wifi.setAttribute('aria-checked', wifi.getAttribute('aria-checked') === 'false');
      for (const o of fruit.children) o.onclick = () => {
        for (const p of fruit.children) p.setAttribute('aria-selected', p === o); };
      go.onkeydown = (e) => { if (e.key === 'Enter') document.title = 'sent'; };
    </script>"""
    visit = chrome.html(body, "click({Wifi})", "select_option({Fruit}, 'Kiwi')", "click({Kiwi})")
    visit.do("keyboard_press('Tab')")
    visit.do("keyboard_press('Enter')")
    assert visit.page.nodes[0].name == "sent"
    assert {k: visit.outcome.values[k] for k in ("wifi", "fruit")} == {"wifi": "on", "fruit": "Kiwi"}
    assert visit.outcome.events == (("edit", "wifi"), ("edit", "fruit"), ("activate", "go"))
    visit.close()


def test_the_page_goes_on_by_itself_until_it_rests(chrome: Chrome) -> None:
    body = "<button onclick='setTimeout(() => { document.body.append(\"Later\") }, 10)'>Go</button>"
    visit = chrome.html(body, "click(1)")
    assert visit.lines[-1] == "\tStaticText 'Later'"
    visit.close()


GOOD_TASK = {"goal": "g", "expectation": {"values": {"who": "x"}, "final": "go"}}
GOOD_PAGE = ENDS["a form without an action"]


@pytest.mark.parametrize(
    ("page", "task", "said"),
    [
        ("<p>Only text</p>", GOOD_TASK, "no form on this page"),
        ("<iframe srcdoc='<input name=who>'></iframe>", GOOD_TASK, "its form is in an iframe, which is not read"),
        ("<iframe src=f.html></iframe><button name=go>Go</button>", GOOD_TASK, "has an iframe too, which is not read"),
        (GOOD_PAGE, {**GOOD_TASK, "goals": 1}, "unknown keys goals"),
        (GOOD_PAGE, {"goal": "g"}, "expectation"),
        (GOOD_PAGE, {"expectation": GOOD_TASK["expectation"]}, "goal"),
        (
            GOOD_PAGE,
            {"goal": "g", "expectation": {"values": {"whom": "x"}, "final": "go"}},
            "no control has the key whom",
        ),
        (GOOD_PAGE, {"goal": "g", "expectation": {"values": {"who": 1}, "final": "go"}}, "values.who"),
        (GOOD_PAGE, {"goal": "g", "expectation": {"values": {"who": ""}, "final": "go", "x": 1}}, "x: "),
        (GOOD_PAGE, '{"goal": "g", "expec', "not JSON"),
        (GOOD_PAGE, "[]", "expected an object"),
        (None, GOOD_TASK, "no such file"),
    ],
)
def test_bad_input_is_one_clear_line(write: Any, page: str | None, task: object, said: str) -> None:
    with pytest.raises(PageTaskError) as caught:
        load_page_task(*write(page, task))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bytes_that_are_no_text(write: Any) -> None:
    page, task = write("", GOOD_TASK)
    page.write_bytes(b"<button>\xff\xfe</button>")
    with pytest.raises(PageTaskError, match="not UTF-8"):
        load_page_task(page, task)


def test_a_page_loads_files_from_its_folder_only(write: Any, tmp_path: Path) -> None:
    (tmp_path / "name.js").write_text("document.title = 'loaded'")
    page, task = write(f"<script src=name.js></script>{GOOD_PAGE}", GOOD_TASK)
    made, site = load_page_task(page, task)
    assert (site.root, site.path) == (tmp_path.resolve(), "page.html")

    async def main() -> None:
        async with BrowserPool(site=site) as pool:
            world = pool.world()
            assert (await world.reset(made)).nodes[0].name == "loaded"
            await world.close()

    run(main())
    inner = tmp_path / "inner"
    inner.mkdir()
    with pytest.raises(PageTaskError, match="not below the folder"):
        load_page_task(page, task, root=inner)


@pytest.mark.parametrize(
    ("script", "key", "there"),
    [
        ("document.title = 'x'", "whom", False),
        ("document.body.append(document.createElement('iframe'))", "whom", False),
        ("addEventListener('click', () => { document.body.innerHTML = '<input name=later>' })", "later", True),
        ("const make = (i) => '<input name=ch' + i + '>'", "ch7", True),
        ("const make = (kind) => `<input name=${kind}Name>`; make('user')", "userName", True),
    ],
)
def test_a_wrong_key_on_a_page_with_script_is_an_error(write: Any, script: str, key: str, there: bool) -> None:
    expectation = {"values": {"who": "x", key: "y"}, "final": "go"}
    page, data = write(f"{GOOD_PAGE}<script>{script}</script>", {"goal": "g", "expectation": expectation})
    task, site = load_page_task(page, data)

    async def main() -> str:
        async with BrowserPool(site=site) as pool:
            world = pool.world()
            try:
                await world.reset(task)
            except WorldError as error:
                return str(error)
            finally:
                await world.close()
        return ""

    said = run(main())
    missing = "reset: no control has the key whom, and no script of the page mentions it; the page has who, go"
    if "iframe" in script:
        missing += "; it has an iframe too, which is not read"
    assert said == ("" if there else missing)


def test_a_key_that_a_script_file_mentions(write: Any, tmp_path: Path) -> None:
    (tmp_path / "make.js").write_text("onclick = () => document.write('<input name=later>')")
    expectation = {"values": {"later": "x"}, "final": "go"}
    task, site = load_page_task(
        *write(f"{GOOD_PAGE}<script src=make.js></script>", {"goal": "g", "expectation": expectation})
    )

    async def main() -> None:
        async with BrowserPool(site=site) as pool:
            world = pool.world()
            await world.reset(task)
            await world.close()

    run(main())
