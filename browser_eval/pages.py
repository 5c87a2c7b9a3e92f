"""Any HTML page with a JSON expectation as a task.

The JSON holds `goal`, `expectation` (`advsim.task.Expectation`) and, if wished, `id`. A control's key is its `name`
attribute, else its `id`, else its accessible name; boxes that share a name are `name=value`. Choices are told by
the names that the user sees.
"""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

from pydantic import ValidationError

from advsim.task import Expectation, Task
from browser_eval.site import Site

_KNOWN = {"id", "goal", "expectation"}


class PageTaskError(ValueError):
    """A page or its JSON cannot be used; one line."""


def load_page_task(page: Path, task: Path, root: Path | None = None) -> tuple[Task, Site]:
    """Read a page and its expectation.

    Args:
        page: An HTML file.
        task: A JSON file.
        root: Folder whose files the page may load; the page's own folder by default.

    Returns:
        The task, and where its page stands among its files (for `BrowserPool(site=…)`).

    Raises:
        PageTaskError: A file is missing or not what it should be, the page has nothing to fill in or press, or
            the expectation names controls that a page without script does not have.
    """
    html = _read(page)
    text = _read(task)
    try:
        data = json.loads(text)
    except ValueError as error:
        raise PageTaskError(f"{task}: not JSON: {error}") from None
    if not isinstance(data, dict):
        raise PageTaskError(f"{task}: expected an object with goal and expectation, got {type(data).__name__}")
    if unknown := sorted(map(str, set(data) - _KNOWN)):
        raise PageTaskError(f"{task}: unknown keys {', '.join(unknown)}; known are {', '.join(sorted(_KNOWN))}")
    folder = (root or page.parent).resolve()
    if not page.resolve().is_relative_to(folder):
        raise PageTaskError(f"{page} is not below the folder {folder} that is to be served")
    try:
        made = Task.model_validate({"id": page.stem, **data, "html": html})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the object"
        raise PageTaskError(f"{task}: {where}: {first['msg']}") from None
    if made.expectation is None:
        raise PageTaskError(f"{task}: no expectation: without it nothing can be checked")
    _check(page, html, made.expectation)
    return made, Site(folder, page.resolve().relative_to(folder).as_posix())


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        raise PageTaskError(f"{path}: no such file") from None
    except UnicodeDecodeError:
        raise PageTaskError(f"{path}: not UTF-8 text") from None
    except OSError as error:
        raise PageTaskError(f"{path}: {error.strerror}") from None


def _check(page: Path, html: str, expectation: Expectation) -> None:
    """What can be known without running the page: script may make any control later."""
    found = _Controls()
    found.feed(html)
    found.close()
    if found.scripts:
        return
    if not found.controls and found.frames:
        raise PageTaskError(
            f"{page}: its form is in an iframe, which is not read; give the frame's own HTML as the page"
        )
    if not found.controls:
        raise PageTaskError(f"{page}: no form on this page: it has no field and no button")
    if missing := sorted(expectation.named - found.keys):
        known = ", ".join(sorted(found.keys)[:20])
        frames = "; it has an iframe too, which is not read" if found.frames else ""
        raise PageTaskError(f"{page}: no control has the key {', '.join(missing)}; the page has {known}{frames}")


class _Controls(HTMLParser):
    """Every key by which a control on the page might go."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: set[str] = set()
        self.controls = 0
        self.scripts = False
        self.frames = False
        self._texts: list[tuple[str, list[str]]] = []
        self._labels: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {k: v or "" for k, v in attrs}
        if tag == "script" or any(k.startswith("on") for k in given):
            self.scripts = True
        if tag in ("iframe", "frame"):
            self.frames = True
        if tag in ("button", "label", "a"):
            self._texts.append((tag, []))
        widget = given.get("role") in ("button", "checkbox", "switch", "radiogroup", "listbox", "textbox", "combobox")
        if tag in ("input", "select", "textarea", "button") or widget or "contenteditable" in given:
            self.controls += given.get("type") != "hidden"
            for key in ("name", "id", "aria-label", "value", "title", "placeholder", "alt"):
                if given.get(key):
                    self.keys.add(" ".join(given[key].split()))
            if given.get("type") == "checkbox" and given.get("name"):
                self.keys.add(f"{given['name']}={given.get('value', 'on')}")

    def handle_data(self, data: str) -> None:
        for _, texts in self._texts:
            texts.append(data)

    def handle_endtag(self, tag: str) -> None:
        if self._texts and self._texts[-1][0] == tag:
            _, texts = self._texts.pop()
            self.keys.add(" ".join("".join(texts).split()))
