"""The browser world without an event loop."""

from __future__ import annotations

import pytest

pytest.importorskip("playwright")

from advsim.action import parse
from advsim.form import Control, FormSpec
from advsim.task import Task
from advsim.world.base import World, WorldError
from browser_eval.blocking import BlockingBrowserWorld

pytestmark = pytest.mark.browser

FORM = FormSpec(
    title="F",
    controls=(
        Control(key="a", label="A", kind="text"),
        Control(key="b", label="B", kind="checkbox"),
        Control(key="go", label="Go", kind="submit"),
    ),
)


def test_it_is_a_world_and_forks() -> None:
    world = BlockingBrowserWorld()
    assert isinstance(world, World)
    assert world.outcome() is None
    page = world.reset(Task(id="t", goal="g", form=FORM))
    assert page.text.count("\n") == 4
    world.step(parse("fill(2, 'x')"))  # type: ignore[arg-type]
    world.step(parse("fill(4, 'x')"))  # type: ignore[arg-type]
    assert "not a text field" in world.last_action_error
    fork = world.fork()
    assert fork.last_action_error == world.last_action_error
    fork.step(parse("click(3)"))  # type: ignore[arg-type]
    world.step(parse("click(4)"), "Show a banner: 'Hello there'")  # type: ignore[arg-type]
    assert world.notice is not None
    ours, theirs = world.outcome(), fork.outcome()
    assert ours is not None
    assert theirs is not None
    assert (ours.submitted, ours.values) == (True, {"a": "x", "b": ""})
    assert (theirs.submitted, theirs.values) == (False, {"a": "x", "b": "on"})
    fork.close()
    world.close()
    with pytest.raises(WorldError, match="closed"):
        world.step(parse("noop()"))  # type: ignore[arg-type]
