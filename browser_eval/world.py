"""The browser as a `World`: the task's page in a real Chromium, acted on by real input."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from playwright.async_api import Error as PlaywrightError

from advsim.action import Action
from advsim.page import Page
from advsim.task import Notice, Outcome, Task
from advsim.world import render
from advsim.world.base import WorldError
from advsim.world.refuse import refusal
from browser_eval import hands
from browser_eval.html import Skin, form_page
from browser_eval.mentions import Mentions
from browser_eval.outcome import Record
from browser_eval.server import FormServer, Served
from browser_eval.site import Site
from browser_eval.tab import PageError, Tab

T = TypeVar("T")


class TabSource(Protocol):
    """Where tabs come from (`browser_eval.pool`)."""

    @property
    def server(self) -> FormServer:
        """The server that the tabs can reach."""

    async def acquire(self, *, fork: bool, fresh: bool) -> Tab:
        """A tab of one's own. `fresh`: in a browser context that nobody used before."""

    async def release(self, tab: Tab, *, healthy: bool) -> None:
        """Give a tab back; a tab that is not healthy is thrown away. Never raises."""


class BrowserWorld:
    """One episode in a tab (`advsim.world.base.AsyncWorld`).

    Args:
        source: Gives the tab.
        skin: How generated forms are dressed.
        site: Files beside an arbitrary HTML page.
        step_s: Deadline of a reset or a step in seconds; the step that passes it raises WorldError.
        episode_s: Deadline of the whole episode in seconds from its reset on, or None.
    """

    name = "browser"
    version = "1"

    def __init__(
        self,
        source: TabSource,
        *,
        skin: Skin = "native",
        site: Site | None = None,
        step_s: float = 20.0,
        episode_s: float | None = None,
    ) -> None:
        self.last_action_error = ""
        self.notice: Notice | None = None
        self.done = False
        self._source = source
        self._skin = skin
        self._site = site
        self._step_s = step_s
        self._episode_s = episode_s
        self._ends: float | None = None
        self._is_fork = False
        self._task: Task | None = None
        self._tab: Tab | None = None
        self._served: Served | None = None
        self._record: Record | None = None
        self._page = Page(())
        self._history: list[tuple[Action, str | None]] = []

    # --- the protocol -----------------------------------------------------------------------------------------

    async def reset(self, task: Task) -> Page:
        """Open the task's page. Raises ValueError for a task that has neither form nor HTML, else WorldError."""
        if task.form is None and task.html is None:
            raise ValueError(f"task {task.id!r} has neither a form nor HTML: the browser cannot open it")
        self._task = task
        self._history = []
        self.last_action_error, self.notice, self.done = "", None, False
        await self._begin("reset")
        return self._page

    async def step(self, action: Action, instruction: str | None = None) -> Page:
        """Do the action, let the instruction enter as a notice, and read the page. Raises WorldError."""
        if self._task is None:
            raise RuntimeError("step before reset")
        await self._replay()
        await self._guarded(lambda: self._step(action, instruction), action.name)
        self._history.append((action, instruction))
        return self._page

    async def fork(self) -> BrowserWorld:
        """A world in the same state. Its tab is opened, and the history replayed in it, when it is first used."""
        twin = BrowserWorld(
            self._source, skin=self._skin, site=self._site, step_s=self._step_s, episode_s=self._episode_s
        )
        twin._is_fork = True
        twin._task, twin._page, twin._history = self._task, self._page, list(self._history)
        twin.last_action_error, twin.notice, twin.done = self.last_action_error, self.notice, self.done
        return twin

    async def outcome(self) -> Outcome | None:
        """What the server received and the user did. Raises WorldError when the page cannot be asked."""
        if self._task is None:
            return None
        await self._replay()
        record = self._record
        assert record is not None
        if record.submitted is None:
            await self._guarded(self._live, "outcome")
        return record.outcome()

    async def close(self) -> None:
        """Give the tab back. Never raises."""
        await self._let_go(healthy=True)

    @property
    def page(self) -> Page:
        """The page as it was last read."""
        return self._page

    # --- opening ----------------------------------------------------------------------------------------------

    async def _replay(self) -> None:
        """Bring a fork to where it was taken."""
        if self._tab is not None:
            return
        if not self._is_fork:
            raise WorldError("the world is closed or has failed; reset it")
        history, self._history = self._history, []
        before = self._page
        await self._begin("replay")
        for action, instruction in history:
            await self._guarded(lambda a=action, i=instruction: self._step(a, i), "replay")  # type: ignore[misc]
            self._history.append((action, instruction))
        if self._page != before:
            await self._let_go(healthy=False)
            raise WorldError("replay: the same actions led to another page; the page is not deterministic")

    async def _begin(self, what: str) -> None:
        """Take a tab, waiting for it as long as others need theirs, and open the page; deadlines count from then on."""
        assert self._task is not None
        # A page of our own leaves nothing behind in its context; others may, so each of their episodes has a new one.
        fresh = self._task.form is None
        if self._tab is not None and fresh:
            await self._let_go(healthy=True)
        if self._tab is None:
            self._tab = await self._source.acquire(fork=self._is_fork, fresh=fresh)
        if self._episode_s is not None:
            self._ends = asyncio.get_running_loop().time() + self._episode_s
        await self._guarded(self._open, what)

    async def _open(self) -> None:
        task = self._task
        assert task is not None
        assert self._tab is not None
        fresh = task.form is None
        if self._served is not None:
            self._source.server.withdraw(self._served)
        server = self._source.server
        if task.form is not None:
            form = task.form
            self._served = server.publish(lambda action: form_page(form, action, self._skin))
        else:
            assert task.html is not None
            html = task.html
            site = self._site or Site()
            self._served = server.publish(lambda _: html, root=site.root, path=site.path, policy="")
        self._record = Record(task, self._served)
        if fresh:
            named = task.expectation.named if task.expectation is not None else frozenset()
            await self._tab.guard(self._served, server.origin, named)
        await self._tab.navigate(self._served.url)
        await self._tab.settle(scripted=fresh)
        self._page = await self._tab.observe()
        if fresh:
            await self._check_keys()

    async def _check_keys(self) -> None:
        """Refuse an expectation that names what the page neither has nor could make. Raises PageError."""
        assert self._task is not None
        assert self._tab is not None
        assert self._served is not None
        if self._task.expectation is None:
            return
        named = sorted(self._task.expectation.named)
        here = set(await self._tab.call("(named) => advsim.controls(named).map(([, key]) => key)", named))
        if len(here) == len(named):
            return
        # Script may still make it, from what it holds.
        source, loaded, known = await self._tab.call("() => [advsim.source(), advsim.loaded(), advsim.keys()]")
        frames = await self._tab.call("() => document.querySelector('iframe, frame') !== null")
        mentioned = Mentions([self._served.html.decode("utf-8", "replace"), source, *self._served.texts(loaded)])
        if missing := [key for key in named if key not in here and key not in mentioned]:
            raise PageError(
                f"no control has the key {', '.join(missing)}, and no script of the page mentions it; "
                f"the page has {', '.join(known[:20]) or 'no control'}"
                f"{'; it has an iframe too, which is not read' if frames else ''}"
            )

    # --- a step -----------------------------------------------------------------------------------------------

    async def _step(self, action: Action, instruction: str | None) -> None:
        tab, record = self._tab, self._record
        assert self._task is not None
        assert tab is not None
        assert record is not None
        scripted = self._task.form is None
        self.notice = None
        error = refusal(self._page, action)
        if error is None:
            if action.name in ("send_msg_to_user", "infeasible"):
                self.done = True
            else:
                error = await hands.do(tab, self._page, action, scripted=scripted)
            await tab.settle(scripted=scripted)
            record.take(tab.messages)
            self._page = await tab.observe()
        self.last_action_error = error or ""
        if instruction is not None:
            shown = self.notice = render.notice(instruction, self._page)
            if shown.status != "dropped":
                await tab.call("(k, t, c) => advsim.notice(k, t, c)", shown.kind, shown.text, shown.control)
                self._page = await tab.observe()

    async def _live(self) -> None:
        assert self._tab is not None
        assert self._record is not None
        self._record.live = await self._tab.call("() => advsim.values()")

    # --- failing ----------------------------------------------------------------------------------------------

    async def _guarded(self, work: Callable[[], Awaitable[T]], what: str) -> T:
        """Run a piece of work under the deadlines; a failure of the browser becomes a WorldError and costs the tab."""
        loop = asyncio.get_running_loop()
        limit = self._step_s
        if self._ends is not None:
            limit = min(limit, self._ends - loop.time())
            if limit <= 0:
                await self._let_go(healthy=False)
                raise WorldError(f"{what}: the episode passed its deadline of {self._episode_s:g} s")
        tab = self._tab
        try:
            async with asyncio.timeout(limit) as deadline:
                if tab is not None:  # a crashed page never answers: do not wait for it
                    tab.on_crash = lambda: deadline.reschedule(loop.time())
                    if tab.crashed:
                        tab.on_crash()
                return await work()
        except TimeoutError:
            await self._let_go(healthy=False)
            reason = "the page crashed" if tab is not None and tab.crashed else f"no answer within {limit:.3g} s"
            raise WorldError(f"{what}: {reason}") from None
        except PlaywrightError as error:
            await self._let_go(healthy=False)
            raise WorldError(f"{what}: {str(error).strip().splitlines()[0]}") from error
        except PageError as error:
            await self._let_go(healthy=False)
            raise WorldError(f"{what}: {error}") from error
        except asyncio.CancelledError:
            await self._let_go(healthy=False)
            raise
        finally:
            if tab is not None:
                tab.on_crash = lambda: None

    async def _let_go(self, *, healthy: bool) -> None:
        tab, self._tab = self._tab, None
        if self._served is not None:
            self._source.server.withdraw(self._served)
            self._served = None
        if not healthy:
            self._is_fork = False  # nothing can be replayed into a world that failed
        if tab is not None:
            await self._source.release(tab, healthy=healthy and not tab.crashed)
