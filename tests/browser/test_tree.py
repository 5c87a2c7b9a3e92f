"""What the tree says of HTML that nobody here made (generated forms: `tests/test_equality.py`)."""

from __future__ import annotations

import pytest
from conftest import Chrome

pytestmark = pytest.mark.browser

PAGES = {
    "inline text is one line": (
        "<p>Hello <b>bold <i>world</i></b>!<br>Next</p><div>A <code>b</code> c</div>",
        ["StaticText 'Hello bold world! Next'", "StaticText 'A b c'"],
    ),
    "links and images": (
        "<p>See <a href='#x'>the <b>rules</b></a> now</p><img src='data:,' alt='A cat'><img src='data:,' alt=''>",
        ["StaticText 'See'", "[1] link 'the rules'", "StaticText 'now'", "[2] image 'A cat'"],
    ),
    "lists": (
        "<ul><li>One</li><li>Two <b>too</b></li></ul><ol aria-label='Steps'><li>Go</li></ol>",
        ["StaticText 'One'", "StaticText 'Two too'", "[1] list 'Steps'", "\tStaticText 'Go'"],
    ),
    "rows of text are one line, rows with controls are not": (
        "<table border=1><caption>People</caption><tr><th>Name</th><th>Do</th></tr>"
        "<tr><td>Ann <b>Lee</b></td><td>-</td></tr><tr><td>Bob</td><td><button>Drop</button></td></tr></table>",
        [
            "[1] table 'People'",
            "\t[2] row 'Name | Do'",
            "\t[3] row 'Ann Lee | -'",
            "\t[4] row ''",
            "\t\tStaticText 'Bob'",
            "\t\t[5] button 'Drop'",
        ],
    ),
    "labels are not said twice": (
        "<label>City <input></label><label for=a>Age</label><input id=a type=number required>"
        "<span id=n>Note</span><textarea aria-labelledby=n></textarea><label>Yes <input type=checkbox checked></label>",
        [
            "[1] textbox 'City', value=''",
            "[2] spinbutton 'Age', required, value=''",
            "[3] textbox 'Note', multiline=True, value=''",
            "[4] checkbox 'Yes', checked=True",
        ],
    ),
    "a label of nothing stays": ("<label>Lonely</label> <input>", ["StaticText 'Lonely'", "[1] textbox '', value=''"]),
    "groups": (
        "<fieldset><legend>Size</legend><label><input type=radio name=s>S</label></fieldset>",
        ["[1] group 'Size'", "\t[2] radio 'S', checked=False"],
    ),
    "widgets": (
        "<div role=switch aria-label=Wifi aria-checked=true tabindex=0></div>"
        "<ul role=listbox aria-label=Fruit><li role=option aria-selected=true>Fig</li><li role=option>Kiwi</li></ul>"
        "<div role=slider aria-label=Loud aria-valuenow=3 aria-valuemin=0 aria-valuemax=9 tabindex=0></div>"
        "<div contenteditable aria-label=Memo role=textbox>hi</div><button aria-pressed=false>Mute</button>"
        "<div role=checkbox aria-checked=mixed aria-label=All tabindex=0></div>",
        [
            "[1] switch 'Wifi', checked=True",
            "[2] listbox 'Fruit'",
            "\t[3] option 'Fig', selected",
            "\t[4] option 'Kiwi'",
            "[5] slider 'Loud', value='3'",
            "[6] textbox 'Memo', multiline=True, value='hi'",
            "[7] button 'Mute', pressed=False",
            "[8] checkbox 'All', checked=mixed",
        ],
    ),
    "a list that is always open": (
        "<select size=3 aria-label=Pick multiple><option selected>A<option>B</select>",
        ["[1] listbox 'Pick', multiselectable=True", "\t[2] option 'A', selected", "\t[3] option 'B'"],
    ),
    "dialogs and hidden things": (
        "<div role=dialog aria-label=Ask><p>Sure?</p><button>Yes</button></div><p hidden>no</p>"
        "<div style='display:none'><button>no</button></div><div aria-hidden=true>no</div>",
        ["[1] dialog 'Ask'", "\tStaticText 'Sure?'", "\t[2] button 'Yes'"],
    ),
    "frames are named and not entered": (
        "<iframe title=Advert srcdoc='<button>Buy</button>'></iframe><p>After</p>",
        ["[1] Iframe 'Advert'", "StaticText 'After'"],
    ),
    "what listens to clicks can be clicked": (
        "<div id=a>Open</div><script>document.getElementById('a').addEventListener('click', () => {})</script>",
        ["[1] generic 'Open', clickable"],
    ),
    "an empty page": ("", []),
}


@pytest.mark.parametrize("name", PAGES)
def test_tree(chrome: Chrome, name: str) -> None:
    body, expected = PAGES[name]
    visit = chrome.html(body)
    assert visit.lines == ["\t" + line for line in expected]
    visit.close()


def test_an_element_keeps_its_number_and_numbers_are_not_used_again(chrome: Chrome) -> None:
    body = (
        "<button onclick=\"this.insertAdjacentHTML('beforebegin', '<button>New</button>')\">Add</button>"
        "<button onclick='this.remove()'>Drop</button><button>Last</button>"
    )
    visit = chrome.html(body)
    visit.do("click({Add})")
    assert visit.lines[:2] == ["\t[4] button 'New'", "\t[1] button 'Add', focused"]
    visit.do("click({Drop})")
    visit.do("click({Add})")
    assert [line.split("]")[0] for line in visit.lines] == ["\t[4", "\t[5", "\t[1", "\t[3"]
    visit.close()
