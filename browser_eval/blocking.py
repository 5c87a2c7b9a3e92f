"""The browser world for callers without an event loop (gymnasium): the same world, on a loop in a thread of its own."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from advsim.action import Action
from advsim.page import Page
from advsim.task import Notice, Outcome, Task
from advsim.world.base import WorldError
from browser_eval.html import Skin
from browser_eval.pool import BrowserPool
from browser_eval.site import Site
from browser_eval.world import BrowserWorld

T = TypeVar("T")


class _Shared:
    """A loop in a thread, with pools of tabs on it that all worlds of this process share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pools: dict[tuple[Skin, Site | None], BrowserPool] = {}

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run on the loop and wait."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="browser-world", daemon=True).start()
                atexit.register(self.close)
            loop = self._loop
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    def pool(self, skin: Skin, site: Site | None) -> BrowserPool:
        """The pool for this skin and site, started if need be."""
        with self._lock:
            pool = self._pools.get((skin, site))
        if pool is None:
            # As many worlds as the caller likes: a synchronous caller waits for nobody else's tab.
            pool = BrowserPool(concurrency=1024, skin=skin, site=site)
            self.run(pool.__aenter__())
            with self._lock:
                self._pools[(skin, site)] = pool
        return pool

    def close(self) -> None:
        """Close the browsers and stop the loop."""
        loop, self._loop = self._loop, None
        if loop is None:
            return
        for pool in self._pools.values():
            closing = asyncio.run_coroutine_threadsafe(pool.__aexit__(None, None, None), loop)
            try:
                closing.result(timeout=10)
            except (TimeoutError, RuntimeError):
                break  # the process is ending; Playwright's driver takes the browser with it
        self._pools.clear()
        loop.call_soon_threadsafe(loop.stop)


_shared = _Shared()


def _forget() -> None:
    """In a forked process the thread and the browser are the parent's: begin anew."""
    global _shared
    _shared = _Shared()


os.register_at_fork(after_in_child=_forget)


class BlockingBrowserWorld:
    """`advsim.world.base.World` over a real browser.

    All worlds of a process share one browser, which starts with the first reset and ends with the process.

    Args:
        skin: How generated forms are dressed.
        site: Files beside an arbitrary HTML page.
    """

    name = BrowserWorld.name
    version = BrowserWorld.version

    def __init__(self, *, skin: Skin = "native", site: Site | None = None) -> None:
        self._skin: Skin = skin
        self._site = site
        self._world: BrowserWorld | None = None
        self.last_action_error = ""
        self.notice: Notice | None = None
        self.done = False

    def reset(self, task: Task) -> Page:
        """See `World.reset`. Raises BrowserMissing, ValueError or WorldError."""
        if self._world is None:
            self._world = _shared.pool(self._skin, self._site).world()
        return self._do(self._world, self._world.reset(task))

    def step(self, action: Action, instruction: str | None = None) -> Page:
        """See `World.step`. Raises WorldError."""
        world = self._begun()
        return self._do(world, world.step(action, instruction))

    def fork(self) -> BlockingBrowserWorld:
        """See `World.fork`."""
        twin = BlockingBrowserWorld(skin=self._skin, site=self._site)
        twin._world = _shared.run(self._begun().fork())
        twin._copy(twin._world)
        return twin

    def outcome(self) -> Outcome | None:
        """See `World.outcome`."""
        return None if self._world is None else _shared.run(self._world.outcome())

    def close(self) -> None:
        """Give the tab back."""
        world, self._world = self._world, None
        if world is not None:
            _shared.run(world.close())

    def _begun(self) -> BrowserWorld:
        if self._world is None:
            raise WorldError("the world is closed or was never reset")
        return self._world

    def _do(self, world: BrowserWorld, work: Coroutine[Any, Any, Page]) -> Page:
        page = _shared.run(work)
        self._copy(world)
        return page

    def _copy(self, world: BrowserWorld) -> None:
        self.last_action_error, self.notice, self.done = world.last_action_error, world.notice, world.done
