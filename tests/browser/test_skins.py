"""The oracle does every benchmark task in each skin; what the skins change in the tree is in `docs/skins.md`."""

from __future__ import annotations

import asyncio

import pytest
from conftest import run

from advsim.agents.scripted import make
from advsim.form import Control, FormSpec, Table
from advsim.rewards.strict import strict
from advsim.rollout import episode
from advsim.task import Task
from benchmark_forms import load
from browser_eval.html import Skin
from browser_eval.pool import BrowserPool

pytestmark = pytest.mark.browser
CONCURRENCY = 3


@pytest.mark.parametrize("skin", ["aria", "legacy"])
def test_oracle(skin: Skin) -> None:
    tasks = load("bench")
    oracle = make("oracle")

    async def main() -> list[str]:
        async with BrowserPool(concurrency=CONCURRENCY, skin=skin, step_s=60) as pool:
            turn = asyncio.Semaphore(CONCURRENCY)

            async def one(task: Task) -> str:
                async with turn:
                    world = pool.world()
                    found = (await episode(task, world, oracle, seed=0)).trajectory
                    await world.close()
                if found.error or found.outcome is None:
                    return f"{task.id}: {found.error}"
                assert task.expectation is not None
                result = strict(task.expectation, found.outcome)
                return "" if result.good else f"{task.id}: {result.reasons}\n{found.final_page}"

            return await asyncio.gather(*(one(task) for task in tasks))

    failed = [line for line in run(main()) if line]
    assert not failed, f"{len(failed)} of {len(tasks)}\n" + "\n".join(failed[:5])


FORM = FormSpec(
    title="Desk",
    blocks=(Table(caption="Orders", header=("Id", "Kind"), rows=(("A1", "new"),)),),
    controls=(
        Control(key="who", label="Who", kind="text", value="Ann"),
        Control(key="day", label="Day", kind="date"),
        Control(key="size", label="Size", kind="select", value="S", options=("S", "L")),
        Control(key="way", label="Way", kind="radio", options=("Air", "Sea")),
        Control(key="gift", label="Gift", kind="checkbox", value="on"),
        Control(key="old", label="Old", kind="radio", value="A", options=("A", "B"), disabled=True),
        Control(key="go", label="Go", kind="submit"),
    ),
)
TREES = {
    "native": """RootWebArea 'Desk', focused
[1] heading 'Desk'
[2] table 'Orders'
\t[3] row 'Id | Kind'
\t[4] row 'A1 | new'
[5] textbox 'Who', value='Ann'
[6] Date 'Day', value=''
[7] combobox 'Size', expanded=False, value='S'
\t[8] option 'S', selected
\t[9] option 'L'
[10] radiogroup 'Way'
\t[11] radio 'Air', checked=False
\t[12] radio 'Sea', checked=False
[13] checkbox 'Gift', checked=True
[14] radiogroup 'Old'
\t[15] radio 'A', disabled, checked=True
\t[16] radio 'B', disabled, checked=False
[17] button 'Go'""",
    "aria": """RootWebArea 'Desk', focused
[1] heading 'Desk'
[2] table 'Orders'
\t[3] row 'Id | Kind'
\t[4] row 'A1 | new'
[5] textbox 'Who', value='Ann'
[6] Date 'Day', value=''
[7] listbox 'Size'
\t[8] option 'S', selected
\t[9] option 'L'
[10] radiogroup 'Way'
\t[11] radio 'Air', checked=False
\t[12] radio 'Sea', checked=False
[13] switch 'Gift', checked=True
[14] radiogroup 'Old', disabled
\t[15] radio 'A', disabled, checked=True
\t[16] radio 'B', disabled, checked=False
[17] button 'Go'""",
    "legacy": """RootWebArea 'Desk', focused
[1] heading 'Desk'
StaticText 'Orders'
[2] table ''
\t[3] row 'Id | Kind'
\t[4] row 'A1 | new'
[5] table ''
\t[6] row ''
\t\tStaticText 'Who'
\t\t[7] textbox '', value='Ann'
\t[8] row ''
\t\tStaticText 'Day'
\t\t[9] Date 'Day', value=''
\t[10] row ''
\t\tStaticText 'Size'
\t\t[11] combobox 'Size', expanded=False, value='S'
\t\t\t[12] option 'S', selected
\t\t\t[13] option 'L'
\t[14] row ''
\t\tStaticText 'Way'
\t\t[15] radio '', checked=False
\t\tStaticText 'Air'
\t\t[16] radio '', checked=False
\t\tStaticText 'Sea'
\t[17] row ''
\t\tStaticText 'Gift'
\t\t[18] checkbox '', checked=True
\t[19] row ''
\t\tStaticText 'Old'
\t\t[20] radio '', disabled, checked=True
\t\tStaticText 'A'
\t\t[21] radio '', disabled, checked=False
\t\tStaticText 'B'
\t[22] row ''
\t\t[23] button 'Go'""",
}


@pytest.mark.parametrize("skin", TREES)
def test_tree_of_each_skin(skin: Skin) -> None:
    async def main() -> str:
        async with BrowserPool(skin=skin) as pool:
            world = pool.world()
            page = await world.reset(Task(id="t", goal="g", form=FORM))
            outcome = await world.outcome()
            assert outcome is not None
            assert outcome.values == {field.key: field.value for field in FORM.fields}
            await world.close()
            return page.text

    assert run(main()) == TREES[skin].replace("\n", "\n\t")
