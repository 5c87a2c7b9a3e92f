"""One browser for all tests of this folder; what a test breaks, the pool replaces."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from typing import Any

import pytest

pytest.importorskip("playwright")

from advsim.action import Action, ActionError, parse
from advsim.page import Page
from advsim.task import Outcome, Task
from browser_eval.pool import BrowserPool
from browser_eval.world import BrowserWorld


class Chrome:
    """A pool on a loop of its own, for tests that are plain functions."""

    def __init__(self, runner: asyncio.Runner, pool: BrowserPool) -> None:
        self.run = runner.run
        self.pool = pool

    def visit(self, task: Task, *actions: str, world: BrowserWorld | None = None) -> Visit:
        """Open a task and do actions; the world stays open for `Visit.close`."""
        visit = Visit(self, world or self.pool.world())
        visit.page = self.run(visit.world.reset(task))
        for action in actions:
            visit.do(action)
        return visit

    def html(self, body: str, *actions: str, **expectation: Any) -> Visit:
        """The same for a page given by its body."""
        expected = {"values": {"x": "y"}, "final": "go"} | expectation
        # A page that never mentions a key of its expectation is refused.
        keys = "<!-- x go -->"
        html = f"<!doctype html><html><head><title>T</title>{keys}</head><body>{body}</body></html>"
        return self.visit(Task(id="page", goal="g", html=html, expectation=expected), *actions)


class Visit:
    """An episode under way."""

    page: Page

    def __init__(self, chrome: Chrome, world: BrowserWorld) -> None:
        self.chrome = chrome
        self.world = world

    def do(self, action: str, instruction: str | None = None) -> Page:
        """One action, by its text; `{Name}` is the bid of the line that has this name."""
        return self.chrome.run(self.go(action, instruction))

    async def go(self, action: str, instruction: str | None = None) -> Page:
        """`do` for a test that is a coroutine."""
        for node in self.page.nodes:
            if node.bid is not None and node.name:
                action = action.replace("{" + node.name + "}", str(node.bid))
        parsed = parse(action)
        assert isinstance(parsed, Action), parsed.message if isinstance(parsed, ActionError) else parsed
        self.page = await self.world.step(parsed, instruction)
        return self.page

    @property
    def lines(self) -> list[str]:
        """The page's lines without the root."""
        return self.page.text.split("\n")[1:]

    @property
    def error(self) -> str:
        return self.world.last_action_error

    @property
    def outcome(self) -> Outcome:
        found = self.chrome.run(self.world.outcome())
        assert found is not None
        return found

    def line(self, name: str) -> str:
        """The line with this name, without its indentation."""
        return next(node.line.strip() for node in self.page.nodes if node.name == name)

    def close(self) -> None:
        self.chrome.run(self.world.close())


@pytest.fixture(scope="session")
def chrome() -> Iterator[Chrome]:
    with asyncio.Runner() as runner:
        pool = BrowserPool(concurrency=64, step_s=60)
        runner.run(pool.__aenter__())
        yield Chrome(runner, pool)
        runner.run(pool.__aexit__(None, None, None))


def run(work: Awaitable[Any]) -> Any:
    """Run a test's own coroutine."""

    async def main() -> Any:
        return await work

    return asyncio.run(main())
