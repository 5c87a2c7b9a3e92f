"""One tab: a page with its own DevTools session, to send real input, wait for the page to rest and read its tree."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from playwright.async_api import BrowserContext, CDPSession, Dialog
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page as BrowserPage

from advsim.page import Page
from browser_eval import keys, tree
from browser_eval.html import RECEIVED
from browser_eval.server import Served, form_fields

_WORLD = "advsim"
_RECORDER = (Path(__file__).parent / "static" / "recorder.js").read_text()
# What tells that the document is about to be replaced, and what tells that it will not be.
_LEAVING = ("Page.frameScheduledNavigation", "Page.frameRequestedNavigation", "Page.frameStartedNavigating")
_STAYING = ("Page.navigatedWithinDocument", "Page.frameStoppedLoading")
_HTML = [{"name": "Content-Type", "value": "text/html; charset=utf-8"}]
# Runs in the page itself, before its scripts (mulberry32).
_SEEDED = """(() => { let s = 1; Math.random = () => { s = (s + 0x6d2b79f5) | 0;
  let t = Math.imul(s ^ (s >>> 15), 1 | s); t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296; }; })();"""
_log = logging.getLogger(__name__)

Message = list[Any]
"""What the recorder tells: `["edit", key]`, `["activate", key, values]` or `["submit", "", values]`."""


class PageError(RuntimeError):
    """The page does not open or does not answer."""


class Gone(PageError):
    """The document was replaced while it was being asked something."""


async def _close(page: BrowserPage) -> None:
    with contextlib.suppress(PlaywrightError):
        await page.close()


async def _answer(dialog: Dialog) -> None:
    """A box that a script opens stops the page until it is answered: OK, but nothing to a question for text."""
    with contextlib.suppress(PlaywrightError):
        await (dialog.dismiss() if dialog.type == "prompt" else dialog.accept())


class Tab:
    """A page under remote control. Its methods raise Playwright's errors; `world` puts deadlines around them."""

    def __init__(self, page: BrowserPage, cdp: CDPSession) -> None:
        self.page = page
        self.cdp = cdp
        self.messages: list[Message] = []
        self.crashed = False
        self.on_crash: Callable[[], None] = lambda: None
        self._frame = ""
        self._context: int | None = None
        self._leaving = False
        self._reason = ""  # of the latest navigation
        self._scripted = False
        self._named: frozenset[str] = frozenset()
        self._loaded = asyncio.Event()
        self._bids: dict[int, int] = {}
        self._next_bid = 1

    @classmethod
    async def open(cls, context: BrowserContext) -> Tab:
        """Open a tab in a context and prepare it."""
        page = await context.new_page()
        context.on("page", lambda other: asyncio.ensure_future(_close(other)))  # a task stays in one tab
        tab = cls(page, await context.new_cdp_session(page))
        await tab._prepare()
        return tab

    async def _prepare(self) -> None:
        cdp = self.cdp
        cdp.on("Runtime.bindingCalled", self._on_binding)
        cdp.on("Runtime.executionContextCreated", self._on_context)
        cdp.on("Runtime.executionContextsCleared", lambda _: self._forget_context())
        cdp.on("Page.loadEventFired", lambda _: self._on_load())
        cdp.on("Inspector.targetCrashed", lambda _: self._on_crash())
        for name in _LEAVING:
            cdp.on(name, self._on_leaving)
        for name in _STAYING:
            cdp.on(name, self._on_staying)
        self.page.on("crash", lambda _: self._on_crash())
        self.page.on("dialog", lambda dialog: asyncio.ensure_future(_answer(dialog)))
        answers = await asyncio.gather(
            self.cdp.send("Page.getFrameTree"),
            self.cdp.send("Page.enable"),
            self.cdp.send("Runtime.enable"),
            self.cdp.send("DOM.enable"),
            self.cdp.send("Accessibility.enable"),
            self.cdp.send("Runtime.addBinding", {"name": "__advsim", "executionContextName": _WORLD}),
            self.cdp.send("Page.addScriptToEvaluateOnNewDocument", {"source": _RECORDER, "worldName": _WORLD}),
        )
        self._frame = answers[0]["frameTree"]["frame"]["id"]

    # --- events -----------------------------------------------------------------------------------------------

    def _on_binding(self, event: dict[str, Any]) -> None:
        if event["name"] == "__advsim":
            self.messages.append(json.loads(event["payload"]))

    def _on_context(self, event: dict[str, Any]) -> None:
        context = event["context"]
        if context["name"] == _WORLD and context["auxData"].get("frameId") == self._frame:
            self._context = context["id"]

    def _forget_context(self) -> None:
        self._context = None

    def _on_leaving(self, event: dict[str, Any]) -> None:
        if event.get("frameId") != self._frame or str(event.get("url", "")).startswith("javascript:"):
            return
        self._reason = str(event.get("reason", self._reason))
        if event.get("navigationType", "differentDocument") not in ("sameDocument", "historySameDocument"):
            self._leaving = True
            self._loaded.clear()

    def _on_staying(self, event: dict[str, Any]) -> None:
        # A download or an empty answer (204) ends the loading and leaves the old document where it was.
        if event.get("frameId") == self._frame:
            self._leaving = False
            self._loaded.set()

    def _on_load(self) -> None:
        self._leaving = False
        # Backend ids are numbers of a renderer process, and the next page may have another: never mix the two.
        self._bids = {}
        self._loaded.set()

    def _on_crash(self) -> None:
        if not self.crashed:  # two events tell of it
            self.crashed = True
            self.on_crash()

    # --- the page ---------------------------------------------------------------------------------------------

    async def navigate(self, url: str) -> None:
        """Open an address as a new episode: numbering and messages start afresh."""
        self._loaded.clear()
        self._context = None
        answer = await self.cdp.send("Page.navigate", {"url": url})
        if answer.get("errorText"):
            raise PageError(f"the page does not open: {answer['errorText']}")
        await self._loaded.wait()
        self._next_bid = 1
        self.messages.clear()

    async def guard(self, served: Served, origin: str, named: frozenset[str]) -> None:
        """Prepare the tab for a page that was not made here, once and for all.

        Its random numbers become the same in each episode, so that a fork can be replayed. Its forms may name any
        address: what they send anywhere is received here. Its links lead nowhere but to `origin`. `observe` tells
        which bids have the keys `named`.
        """
        self._scripted, self._named = True, named
        await self.cdp.send("Page.addScriptToEvaluateOnNewDocument", {"source": _SEEDED})
        self.cdp.on("Fetch.requestPaused", lambda e: asyncio.ensure_future(self._intercept(e, served, origin)))
        await self.cdp.send("Fetch.enable", {"patterns": [{"urlPattern": "*", "resourceType": "Document"}]})

    async def _intercept(self, event: dict[str, Any], served: Served, origin: str) -> None:
        request, ident = event["request"], {"requestId": event["requestId"]}
        form = self._reason.startswith("formSubmission") and event.get("frameId") == self._frame
        own = request["url"].startswith(f"{origin}/")
        try:
            if own and form and request["method"] == "POST":  # whatever the path: the page's own server is ours
                await self.cdp.send("Fetch.continueRequest", ident | {"url": f"{origin}/submit/{served.token}"})
            elif own and not form:
                await self.cdp.send("Fetch.continueRequest", ident)
            elif form:
                await self._receive(request, served)
                answer = {"responseCode": 200, "responseHeaders": _HTML, "body": b64encode(RECEIVED.encode()).decode()}
                await self.cdp.send("Fetch.fulfillRequest", ident | answer)
            else:
                await self.cdp.send("Fetch.fulfillRequest", ident | {"responseCode": 204})
        except PlaywrightError as error:
            _log.debug("request gone before it was answered: %s", error)

    async def _receive(self, request: dict[str, Any], served: Served) -> None:
        if request["method"] == "GET":
            served.receive(parse_qsl(urlsplit(request["url"]).query, keep_blank_values=True))
            return
        kind = next((v for k, v in request["headers"].items() if k.lower() == "content-type"), "")
        parts = request.get("postDataEntries", [])
        body = b"".join(b64decode(part["bytes"]) for part in parts if "bytes" in part)
        served.receive(form_fields(kind, body))

    async def call(self, function: str, *arguments: Any) -> Any:
        """Call a function of the recorder's world with plain values. Raises Gone when the document is replaced."""
        params = {
            "functionDeclaration": function,
            "executionContextId": await self._isolated(),
            "arguments": [{"value": a} for a in arguments],
            "returnByValue": True,
            "awaitPromise": True,
        }
        return await self._evaluate(params)

    async def call_on(self, backend: int, function: str, *arguments: Any) -> Any:
        """Call a function of the recorder's world on an element."""
        answer = await self.cdp.send(
            "DOM.resolveNode", {"backendNodeId": backend, "executionContextId": await self._isolated()}
        )
        params = {
            "functionDeclaration": function,
            "objectId": answer["object"]["objectId"],
            "arguments": [{"value": a} for a in arguments],
            "returnByValue": True,
        }
        return await self._evaluate(params)

    async def _isolated(self) -> int:
        if self._context is None:
            raise Gone("no document")
        return self._context

    async def _evaluate(self, params: dict[str, Any]) -> Any:
        try:
            answer = await self.cdp.send("Runtime.callFunctionOn", params)
        except PlaywrightError as error:
            if any(text in str(error) for text in ("context was destroyed", "Cannot find context", "navigated")):
                raise Gone(str(error)) from error
            raise
        if "exceptionDetails" in answer:
            raise PageError(f"recorder: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    async def settle(self, *, scripted: bool = False) -> None:
        """Wait until what was begun has happened: handlers have run and a new document, if one is on its way, is there.

        Args:
            scripted: The page has scripts of others, which may go on by timers: wait for a quiet moment.
        """
        for _ in range(5):  # a page may forward to another page
            try:
                await self.call("() => advsim.flush()")
                if scripted and not self._leaving:
                    await self.call("() => advsim.rest(500)")
            except Gone:
                self._leaving = self._leaving or not self._loaded.is_set()
            if not self._leaving:
                return
            await self._loaded.wait()

    async def observe(self) -> Page:
        """The page as it is, by Chromium's accessibility tree."""
        nodes = (await self.cdp.send("Accessibility.getFullAXTree"))["nodes"]
        asked = tree.readonly_candidates(nodes)
        described = await asyncio.gather(
            *(self.cdp.send("DOM.describeNode", {"backendNodeId": backend}) for backend in asked)
        )
        readonly = frozenset(
            backend
            for backend, answer in zip(asked, described, strict=True)
            if "readonly" in answer["node"].get("attributes", [])[::2]
        )
        clickable = await self._clickable() if self._scripted else frozenset()
        page = tree.build(nodes, self._bid, readonly, clickable)
        keys = await self._keys() if self._named else {}
        return Page(page.nodes, keys={n.bid: keys[n.bid] for n in page.nodes if n.bid in keys}) if keys else page

    async def _keys(self) -> dict[int, str]:
        """By bid, the keys of the controls that the expectation names and that the page has."""
        asked = await self.cdp.send(
            "Runtime.callFunctionOn",
            {
                "functionDeclaration": "(named) => advsim.controls(named).flat()",
                "executionContextId": await self._isolated(),
                "arguments": [{"value": sorted(self._named)}],
            },
        )
        held = asked["result"]["objectId"]
        told = await self.cdp.send("Runtime.getProperties", {"objectId": held, "ownProperties": True})
        flat = [p["value"] for p in told["result"] if p["name"].isdigit()]  # element, key, element, key, …
        nodes = await asyncio.gather(
            *(self.cdp.send("DOM.describeNode", {"objectId": element["objectId"]}) for element in flat[::2])
        )
        await self.cdp.send("Runtime.releaseObject", {"objectId": held})
        by_backend = zip((n["node"]["backendNodeId"] for n in nodes), (key["value"] for key in flat[1::2]), strict=True)
        return {self._bids[backend]: key for backend, key in by_backend if backend in self._bids}

    async def _clickable(self) -> frozenset[int]:
        """Elements that listen to clicks: on a page without semantics nothing else tells that they are controls."""
        snapshot = await self.cdp.send("DOMSnapshot.captureSnapshot", {"computedStyles": []})
        nodes = snapshot["documents"][0]["nodes"]
        names = snapshot["strings"]
        return frozenset(
            nodes["backendNodeId"][i]
            for i in nodes.get("isClickable", {}).get("index", ())
            if names[nodes["nodeName"][i]] not in ("HTML", "BODY", "LABEL")  # they listen for others
        )

    def _bid(self, backend: int) -> int:
        bid = self._bids.get(backend)
        if bid is None:
            bid = self._bids[backend] = self._next_bid
            self._next_bid += 1
        return bid

    def backend(self, bid: int) -> int:
        """The element that has this bid. Raises KeyError."""
        for backend, known in self._bids.items():
            if known == bid:
                return backend
        raise KeyError(bid)

    # --- input ------------------------------------------------------------------------------------------------

    async def click_at(self, x: float, y: float) -> None:
        """Move the mouse there and click."""
        point = {"x": x, "y": y}
        button = {**point, "button": "left", "clickCount": 1}
        send = self.cdp.send
        await asyncio.gather(  # in this order: the session keeps it
            send("Input.dispatchMouseEvent", {"type": "mouseMoved", **point}),
            send("Input.dispatchMouseEvent", {"type": "mousePressed", **button}),
            send("Input.dispatchMouseEvent", {"type": "mouseReleased", **button}),
        )

    async def move_to(self, x: float, y: float) -> None:
        """Move the mouse there."""
        await self.cdp.send("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y})

    async def wheel(self, dx: float, dy: float) -> None:
        """Turn the wheel, at the page's corner, where no number field would take it for a step."""
        event = {"type": "mouseWheel", "x": 1, "y": 1, "deltaX": dx, "deltaY": dy}
        await self.cdp.send("Input.dispatchMouseEvent", event)

    async def press(self, *names: str) -> None:
        """Press and release keys one after the other (`keys.press` has the names)."""
        events: Iterable[keys.Event] = (event for name in names for event in keys.press(name))
        await asyncio.gather(*(self.cdp.send("Input.dispatchKeyEvent", event) for event in events))

    async def insert(self, text: str) -> None:
        """Insert text at the caret, in place of the selection, as an input method does."""
        await self.cdp.send("Input.insertText", {"text": text})
