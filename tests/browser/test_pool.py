"""One page or browser that hangs or crashes costs one episode."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pty
import signal
import sys
from collections.abc import Awaitable

import pytest
from conftest import run
from playwright.async_api import Error as PlaywrightError

from advsim.action import Action
from advsim.form import Control, FormSpec
from advsim.task import Task
from advsim.world.base import WorldError
from browser_eval.chromium import BrowserMissing, find_chromium
from browser_eval.pool import BrowserPool
from browser_eval.server import PortInUse
from browser_eval.world import BrowserWorld

pytestmark = pytest.mark.browser

FORM = FormSpec(
    title="F", controls=(Control(key="a", label="A", kind="text"), Control(key="go", label="Go", kind="submit"))
)
GOOD = Task(id="good", goal="g", form=FORM)
HANGS = Task(id="hangs", goal="g", html="<!doctype html><title>H</title><button onclick='for (;;) {}'>Hang</button>")
FILL = Action.of("fill", 2, "x")


async def failure(work: Awaitable[object]) -> str:
    """The message of the WorldError with which this ends."""
    with pytest.raises(WorldError) as caught:
        await work
    assert "\n" not in str(caught.value)
    return str(caught.value)


async def check_works(world: BrowserWorld) -> None:
    await world.reset(GOOD)
    await world.step(FILL)
    await world.step(Action.of("click", 3))
    outcome = await world.outcome()
    assert outcome is not None
    assert outcome.values == {"a": "x"}


def test_a_hanging_page_costs_its_own_episode_only() -> None:
    async def main() -> None:
        async with BrowserPool(concurrency=2, step_s=3) as pool:
            bad, good = pool.world(), pool.world()
            await bad.reset(HANGS)
            await good.reset(GOOD)
            hanging = asyncio.ensure_future(failure(bad.step(Action.of("click", 1))))
            while not hanging.done():
                await good.step(FILL)
            assert await hanging == "click: no answer within 3 s"
            assert "reset it" in await failure(bad.step(FILL))
            assert "reset it" in await failure(bad.outcome())
            await check_works(bad)
            assert pool.restarts == 0
            await bad.close()
            await good.close()

    run(main())


def test_a_crashed_page_ends_its_step_at_once() -> None:
    async def main() -> None:
        async with BrowserPool(step_s=60) as pool:
            world = pool.world()
            await world.reset(GOOD)
            tab = world._tab
            assert tab is not None

            async def crash() -> None:
                with contextlib.suppress(PlaywrightError):
                    await tab.cdp.send("Page.crash")

            crashing = asyncio.ensure_future(crash())

            async def go_on() -> None:
                for _ in range(1000):
                    await world.step(FILL)

            assert await failure(go_on()) == "fill: the page crashed"
            await check_works(world)
            await world.close()
            await crashing

    run(main())


async def browser_process(pool: BrowserPool) -> int:
    """The process of the pool's Chromium, as the browser itself names it."""
    assert pool._browser is not None
    session = await pool._browser.new_browser_cdp_session()
    found = await session.send("SystemInfo.getProcessInfo")
    return next(int(process["id"]) for process in found["processInfo"] if process["type"] == "browser")


def test_a_killed_browser_is_replaced() -> None:
    async def main() -> None:
        async with BrowserPool(concurrency=3) as pool:
            worlds = [pool.world() for _ in range(3)]
            await asyncio.gather(*(world.reset(GOOD) for world in worlds[:2]))
            os.kill(await browser_process(pool), signal.SIGKILL)
            await failure(worlds[0].step(FILL))
            await failure(worlds[1].step(FILL))
            await asyncio.gather(*(check_works(world) for world in worlds))
            assert pool.restarts == 1
            for world in worlds:
                await world.close()

    run(main())


INTERRUPTED = """
import asyncio
from advsim.task import Task
from browser_eval.pool import BrowserPool

async def main():
    async with BrowserPool() as pool:
        world = pool.world()
        await world.reset(Task(id="x", goal="g", html="<!doctype html><title>X</title>"))
        print("open", flush=True)
        asyncio.get_running_loop().create_future().set_exception(Exception("another one"))
        await asyncio.Event().wait()

try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_an_interrupt_in_a_terminal_says_nothing_of_the_driver() -> None:
    process, terminal = pty.fork()
    if process == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell ignores it for what it runs in the background
        os.execv(sys.executable, [sys.executable, "-c", INTERRUPTED])
    said = b""
    while b"open" not in said:
        said += os.read(terminal, 65536)
    os.write(terminal, b"\x03")  # to all processes of the terminal, Playwright's driver too
    with contextlib.suppress(OSError):  # how Linux tells that the other side is closed
        while more := os.read(terminal, 65536):
            said += more
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    text = said.decode()
    assert "interrupted" in text
    assert "another one" in text  # everything else is told as ever
    assert "driver" not in text


def test_an_episode_has_a_deadline_of_its_own() -> None:
    async def main() -> None:
        async with BrowserPool(episode_s=2) as pool:
            world = pool.world()
            await world.reset(GOOD)

            async def go_on() -> None:
                while True:
                    await world.step(FILL)

            assert "fill: " in await failure(go_on())
            await check_works(world)
            await world.close()

    run(main())


def test_worlds_wait_for_a_tab_and_forks_do_not() -> None:
    async def main() -> None:
        async with BrowserPool(concurrency=1) as pool:
            first, second = pool.world(), pool.world()
            await first.reset(GOOD)
            waiting = asyncio.ensure_future(check_works(second))
            fork = await first.fork()
            await fork.step(FILL)
            assert not waiting.done()
            await first.close()
            await waiting
            await fork.close()
            await second.close()

    run(main())


def test_a_cancelled_episode_gives_its_tab_back() -> None:
    async def main() -> None:
        async with BrowserPool(concurrency=1, step_s=60) as pool:
            bad = pool.world()
            await bad.reset(HANGS)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await bad.step(Action.of("click", 1))
            await check_works(good := pool.world())
            await good.close()

    run(main())


def test_no_browser_is_one_line_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    class Nothing:
        class chromium:
            executable_path = "/nowhere/chrome"

    monkeypatch.delenv("ADVSIM_CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(BrowserMissing, match="apt-get install chromium") as caught:
        find_chromium(Nothing())  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    monkeypatch.setenv("ADVSIM_CHROMIUM", "/nowhere/mine")
    with pytest.raises(BrowserMissing, match="/nowhere/mine"):
        find_chromium(Nothing())  # type: ignore[arg-type]


def test_a_program_that_is_no_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADVSIM_CHROMIUM", "/bin/false")

    async def main() -> None:
        async with BrowserPool():
            pass

    with pytest.raises(BrowserMissing, match="/bin/false does not start") as caught:
        run(main())
    assert "\n" not in str(caught.value)


def test_the_servers_port_can_be_named_and_be_taken() -> None:
    async def main() -> None:
        async with BrowserPool() as first:
            with pytest.raises(PortInUse, match="is in use"):
                async with BrowserPool(port=first.server.port):
                    pass
            await check_works(world := first.world())
            await world.close()

    run(main())
