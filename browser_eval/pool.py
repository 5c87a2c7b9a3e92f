"""One browser, many tabs: lent to worlds, and replaced when they hang or crash, so that it costs one episode only."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

from playwright.async_api import Browser, BrowserContext, Playwright, async_playwright
from playwright.async_api import Error as PlaywrightError

from advsim.world.base import WorldError
from browser_eval.chromium import launch
from browser_eval.html import Skin
from browser_eval.server import FormServer
from browser_eval.site import Site
from browser_eval.tab import Tab
from browser_eval.world import BrowserWorld

_CLOSE_S = 5.0


class BrowserPool:
    """A Chromium and a loopback server, shared by many worlds. Use as an async context manager.

    Args:
        concurrency: Most episodes that hold a tab at a time; further ones wait in `reset`. Forks are not counted,
            since their originals may be waiting for them.
        port: The server's port; 0 takes a free one.
        skin: How generated forms are dressed.
        site: Files beside an arbitrary HTML page.
        step_s: Deadline of a reset or step in seconds.
        episode_s: Deadline of an episode in seconds, or None.

    Raises:
        BrowserMissing: On entering, when there is no Chromium or it does not start.
        ServerError: On entering, when the port cannot be had.
    """

    def __init__(
        self,
        *,
        concurrency: int = 4,
        port: int = 0,
        skin: Skin = "native",
        site: Site | None = None,
        step_s: float = 20.0,
        episode_s: float | None = None,
    ) -> None:
        if concurrency < 1:
            raise ValueError(f"concurrency must be at least 1, got {concurrency}")
        self.server = FormServer(port)
        self.restarts = 0
        self._slots = asyncio.Semaphore(concurrency)
        self._world_options: dict[str, Any] = {
            "skin": skin, "site": site, "step_s": step_s, "episode_s": episode_s,
        }  # fmt: skip
        self._step_s = step_s
        self._stack = contextlib.AsyncExitStack()
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._launching = asyncio.Lock()
        self._idle: list[Tab] = []
        self._counted: set[Tab] = set()
        self._fresh: set[Tab] = set()
        self._closing: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> BrowserPool:
        _expect_driver_to_go(asyncio.get_running_loop())
        async with self._stack:
            await self._stack.enter_async_context(self.server)
            self._playwright = await self._stack.enter_async_context(async_playwright())
            self._browser = await launch(self._playwright, self.server.port)
            self._stack = self._stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*self._closing, return_exceptions=True)
        if self._browser is not None:
            await _quietly(self._browser.close())
        await self._stack.aclose()

    def world(self) -> BrowserWorld:
        """A world of its own; the caller closes it."""
        return BrowserWorld(self, **self._world_options)

    # --- lending ------------------------------------------------------------------------------------------------

    async def acquire(self, *, fork: bool, fresh: bool) -> Tab:
        """See `TabSource.acquire`. Raises WorldError when the browser cannot be started again."""
        if not fork:
            await self._slots.acquire()
        try:
            tab = await self._tab(fresh)
        except BaseException:
            if not fork:
                self._slots.release()
            raise
        if not fork:
            self._counted.add(tab)
        return tab

    async def release(self, tab: Tab, *, healthy: bool) -> None:
        """See `TabSource.release`."""
        if tab in self._counted:
            self._counted.discard(tab)
            self._slots.release()
        if healthy and tab not in self._fresh and self._alive(tab):
            self._idle.append(tab)
        else:
            self._fresh.discard(tab)
            self._dismiss(tab.page.context)

    def _alive(self, tab: Tab) -> bool:
        browser = self._browser
        return browser is not None and browser.is_connected() and tab.page.context.browser is browser

    async def _tab(self, fresh: bool) -> Tab:
        if not fresh:
            while self._idle:
                tab = self._idle.pop()
                if self._alive(tab) and not tab.crashed and not tab.page.is_closed():
                    return tab
        browser = await self._running()
        context = None
        try:
            async with asyncio.timeout(self._step_s):
                context = await browser.new_context(
                    viewport={"width": 1280, "height": 1024}, locale="en-US", accept_downloads=False
                )
                tab = await Tab.open(context)
        except BaseException as error:
            if context is not None:
                self._dismiss(context)
            if isinstance(error, PlaywrightError):
                raise WorldError(f"no tab: {str(error).strip().splitlines()[0]}") from error
            if isinstance(error, TimeoutError):
                raise WorldError(f"no tab within {self._step_s:g} s") from None
            raise
        if fresh:
            self._fresh.add(tab)
        return tab

    async def _running(self) -> Browser:
        """The browser, started again if it is gone."""
        async with self._launching:
            assert self._playwright is not None, "enter the pool first"
            if self._browser is None or not self._browser.is_connected():
                self.restarts += 1
                self._idle.clear()
                try:
                    async with asyncio.timeout(self._step_s + 30):
                        self._browser = await launch(self._playwright, self.server.port)
                except (RuntimeError, TimeoutError) as error:
                    raise WorldError(f"the browser is gone and does not start again: {error}") from error
            return self._browser

    def _dismiss(self, context: BrowserContext) -> None:
        """Close a context without waiting: what hangs must not hold up others."""
        task = asyncio.ensure_future(_quietly(context.close()))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


_DRIVER_GONE = "Connection closed while reading from the driver"


def _expect_driver_to_go(loop: asyncio.AbstractEventLoop) -> None:
    """Let the loop not complain about one thing: a Ctrl-C in the terminal reaches Playwright's driver as well.

    Playwright leaves a future behind then that nobody asks, and the loop tells of it after everything has ended.
    What ran on the driver says itself that it has failed.
    """
    before = loop.get_exception_handler()
    if isinstance(before, _Complaints):
        return
    loop.set_exception_handler(_Complaints(before))


class _Complaints:
    """The exception handler of a loop, but for that."""

    def __init__(self, before: Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object] | None) -> None:
        self._before = before

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        unasked = str(context.get("message", "")).startswith("Future exception was never retrieved")
        if unasked and str(context.get("exception")) == _DRIVER_GONE:
            return
        if self._before is None:
            loop.default_exception_handler(context)
        else:
            self._before(loop, context)


async def _quietly(work: Coroutine[Any, Any, None]) -> None:
    """Close something that may be broken already: not worth an error, not worth waiting for."""
    with contextlib.suppress(PlaywrightError, TimeoutError):
        async with asyncio.timeout(_CLOSE_S):
            await work
