"""The shipped backbone: no benchmark in its data, a stable chat template, a lossless tokenizer, and that it acts."""

from __future__ import annotations

import hashlib
import itertools
import re
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import advsim
from advsim import config
from advsim.action import Action
from advsim.agents import curriculum, executor
from advsim.agents.curriculum import problem_hash
from advsim.rewards.strict import strict
from advsim.task import Task
from advsim.training.imitation import HELD_OUT, Source, benchmark_problems, drills, episodes, example, proposers
from advsim.training.imitation.notices import GIVE_UP, order_for
from advsim.training.imitation.thoughts import Guide
from advsim.world.symbolic import SymbolicWorld
from benchmark_forms import load, stream
from benchmark_forms.registry import families

FOLDER = Path(advsim.__file__).parent / "backbone"
SEED = 1  # what the model card says


# --- the data ----------------------------------------------------------------------------------------------------


def test_no_benchmark_problem_is_ever_drawn() -> None:
    excluded = benchmark_problems()
    assert len(excluded) == 300
    assert {problem_hash(t) for t in load("bench-small")} <= excluded
    source = Source(excluded=excluded)
    goals = {t.goal for name in ("bench", "bench-small") for t in load(name)}
    texts = set()
    for step in range(40):
        rng = Random(f"{SEED}/{step}")
        for _ in range(100):
            task = source.task(rng)
            assert problem_hash(task) not in excluded
            texts.add(task.goal)
    assert len(texts) > 1500
    # A goal of few words can occur in both; the problem, its page and answer included, cannot.
    assert len(texts & goals) < 0.1 * len(goals)


def test_an_excluded_problem_is_drawn_again() -> None:
    drawn = [Source(settings=(("small", 1.0),)).task(Random(n)) for n in range(50)]
    excluded = frozenset(problem_hash(t) for t in drawn)
    source = Source(settings=(("small", 1.0),), excluded=excluded)
    assert all(problem_hash(source.task(Random(n))) not in excluded for n in range(50))


def test_examples_of_a_seed_hold_no_excluded_page() -> None:
    pages = set()
    for task in itertools.chain(load("bench"), load("bench-small")):
        pages.add(executor.first_message(task.goal, SymbolicWorld().reset(task)))
    source = Source(excluded=benchmark_problems(), settings=(("micro", 0.2), ("tiny", 0.4), ("small", 0.4)))
    for n in range(2000):
        assert example(f"{SEED}/{n}", "executor", source)[0].content not in pages


def test_held_out_families_are_never_drawn() -> None:
    assert set(HELD_OUT) < set(families())
    for name in ("smoke", "tiny", "smollm2"):
        assert config.load(Path(__file__).parents[1] / "configs" / f"{name}.yaml").tasks.held_out == HELD_OUT
    wide = Source(settings=(("tiny", 1.0), ("small", 1.0), ("wide", 1.0)))
    assert {wide.task(Random(n)).family for n in range(600)} == set(families()) - set(HELD_OUT)
    # By hash, and by the words that only their goals begin with.
    problems = {problem_hash(t) for t in itertools.islice(stream(1, families=HELD_OUT, settings=("small",)), 300)}
    source = Source(excluded=benchmark_problems(), settings=(("micro", 1.0), ("drill", 1.0), ("small", 1.0)))
    for n in range(1000):
        task = source.task(Random(n))
        assert problem_hash(task) not in problems
        assert not re.match(r"Book for|Take the one on the", task.goal)


def test_families_can_be_chosen() -> None:
    source = Source(families=("returns_policy",), settings=(("tiny", 1.0),))
    assert {source.task(Random(n)).family for n in range(50)} == {"returns_policy"}


def test_examples_are_fixed_by_their_seed_and_learn_something_right() -> None:
    source = Source()
    for role in ("executor", "curriculum", "adversary"):
        for n in range(100):
            messages = example(f"x/{n}", role, source)
            assert messages == example(f"x/{n}", role, source)
            assert messages[0].role == "user"
            assert messages[-1].role == "assistant"
            assert messages[-1].learn
            assert not any(m.learn for m in messages if m.role == "user")


def test_imitated_episodes_without_notices_succeed() -> None:
    for task in itertools.islice(stream(21, settings=("tiny", "small")), 200):
        world = SymbolicWorld()
        page = world.reset(task)
        guide = Guide(task)
        while not world.done:
            page = world.step(guide.move(page).action)
        assert task.expectation is not None
        assert strict(task.expectation, world.outcome()).good


def test_thoughts_are_read_from_the_page_and_state_each_value_before_it_is_entered() -> None:
    for task in itertools.islice(stream(22, settings=("small",)), 150):
        assert task.form is not None
        assert task.expectation is not None
        world = SymbolicWorld()
        page = world.reset(task)
        guide, stated = Guide(task), []
        while not world.done:
            move = guide.move(page)
            assert executor.parse(move.text) == move.action
            *evidence, last = move.thought.split("\n")
            for line in evidence:
                sums = re.fullmatch(r"(\d+)([-+*/])(\d+)=(\d+)", line)
                if sums:
                    a, b, c = int(sums[1]), int(sums[3]), int(sums[4])
                    assert c == {"+": a + b, "-": a - b, "*": a * b, "/": -(-a // b)}[sums[2]]
                else:
                    stated.append(line)
            stated.append(last)
            page = world.step(move.action)
        assert strict(task.expectation, world.outcome()).good
        for key, value in task.expectation.values.items():
            control = task.form.control(key)
            shown = {"on": "yes", "": "no"}.get(value, value) if control.kind == "checkbox" else value
            assert any(
                line
                in (f"{control.label} {shown}", f"{control.label} {shown}, is yes", f"{control.label} {shown}, is no")
                for line in stated
            )


@pytest.mark.parametrize("kind", drills.DRILLS)
def test_drills_have_their_answer_on_the_page_and_are_solved(kind: str) -> None:
    for n in range(60):
        task = drills.drill_task(Random(f"{kind}/{n}"), kind)
        assert task.form is not None
        assert task.expectation is not None
        world = SymbolicWorld()
        page = world.reset(task)
        text = task.goal + page.text
        if kind != "sums":
            assert all(value in text for value in task.expectation.values.values())
        guide = Guide(task)
        while not world.done:
            page = world.step(guide.move(page).action)
        assert strict(task.expectation, world.outcome()).good


def test_wide_tasks_are_a_familys_with_more_values() -> None:
    counts = []
    for n in range(60):
        rng = Random(n)
        family = rng.choice(Source().families)
        task = drills.wide_task(rng, family)
        assert task.family == family
        assert task.expectation is not None
        counts.append(len(task.expectation.values))
        world = SymbolicWorld()
        page = world.reset(task)
        guide = Guide(task)
        while not world.done:
            page = world.step(guide.move(page).action)
        assert strict(task.expectation, world.outcome()).good
    assert max(counts) >= 4


def test_proposals_to_imitate_are_valid_and_keep_roles_apart() -> None:
    source = Source(settings=(("tiny", 0.5), ("small", 0.5)))
    looked_up = 0
    for n in range(150):
        text = proposers.curriculum_example(Random(n), source)[1].content
        task = curriculum.parse(text, frozenset())
        assert isinstance(task, Task)
        assert task.form is not None
        looked_up += bool(task.form.blocks)
        for role in ("keep", "never"):
            labels = [line.split("'")[1] for line in text.splitlines() if line.startswith(role)]
            assert labels == sorted(labels)
            assert len(set(labels)) == 2
    assert looked_up > 50


def test_some_notices_are_obeyed_and_some_need_nothing() -> None:
    rng = Random(9)
    orders = [order_for(rng, Source().task(rng))[1] for _ in range(300)]
    assert sum(bool(o.press) for o in orders) > 60
    assert sum(bool(o.values) for o in orders) > 60
    assert sum(o.stop for o in orders) > 5
    assert sum(not (o.press or o.values or o.stop) for o in orders) > 20


def test_demonstrators_differ_in_whether_they_write_what_they_think() -> None:
    def first_words(**manner: float) -> list[bool]:
        source = Source(settings=(("small", 1.0),))
        return [
            episodes.executor_example(Random(n), source, notices=0.0, stumbles=0.0, **manner)[1].content.startswith(
                "<think>"
            )
            for n in range(400)
        ]

    assert all(first_words(silent=0.0))
    assert not any(first_words(silent=1.0))
    assert abs(sum(first_words()) / 400 - (1 - episodes.SILENT)) < 0.08
    # The same task, the same actions: a silent demonstrator is as right.
    for n in range(30):
        said = episodes.executor_example(Random(n), Source(), silent=0.0, unheeded=1.0)
        done = episodes.executor_example(Random(n), Source(), silent=1.0, unheeded=1.0)
        assert [executor.parse(m.content) for m in said[1::2]] == [executor.parse(m.content) for m in done[1::2]]
        assert [m.content for m in said[::2]] == [m.content for m in done[::2]]


def test_demonstrators_differ_in_what_they_make_of_a_notice() -> None:
    def given_up(unheeded: float) -> int:
        found = 0
        for n in range(400):
            messages = episodes.executor_example(Random(n), Source(), notices=1.0, stumbles=0.0, unheeded=unheeded)
            found += executor.parse(messages[-1].content) == GIVE_UP
        return found

    assert given_up(1.0) == 0
    always = given_up(0.0)
    assert always > 20
    assert 0.3 < given_up(episodes.UNHEEDED) / always < 0.8


# --- the shipped folder --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tokenizer():  # type: ignore[no-untyped-def]
    transformers = pytest.importorskip("transformers")
    return transformers.AutoTokenizer.from_pretrained(FOLDER, local_files_only=True)


@pytest.mark.train
def test_the_card_names_these_weights() -> None:
    card = (FOLDER / "MODEL_CARD.md").read_text()
    digest = hashlib.sha256((FOLDER / "model.safetensors").read_bytes()).hexdigest()
    assert digest in card
    assert "scripts/make_backbone.py --steps" in card
    assert f"--seed {SEED}`" in card
    assert not list(FOLDER.glob("*.bin")) + list(FOLDER.glob("*.pt"))
    assert sum(f.stat().st_size for f in FOLDER.iterdir()) < 20 * 2**20


@pytest.mark.train
def test_rendering_fewer_messages_is_a_prefix_of_rendering_more(tokenizer) -> None:  # type: ignore[no-untyped-def]
    source = Source()
    odd = [
        {"role": "user", "content": " \n x "},
        {"role": "assistant", "content": "\n y\n"},
        {"role": "user", "content": ""},
    ]
    conversations = [
        [{"role": m.role, "content": m.content} for m in example(f"p/{n}", "executor", source)] for n in range(20)
    ]
    for messages in (odd, [{"role": "system", "content": "s"}, *odd], *conversations):
        whole = tokenizer.apply_chat_template(messages, tokenize=False)
        whole_ids = tokenizer.apply_chat_template(messages, return_dict=True)["input_ids"]
        for k in range(1, len(messages)):
            if messages[k]["role"] != "assistant":
                continue
            part = tokenizer.apply_chat_template(messages[:k], tokenize=False, add_generation_prompt=True)
            assert whole.startswith(part)
            ids = tokenizer.apply_chat_template(messages[:k], return_dict=True, add_generation_prompt=True)["input_ids"]
            assert whole_ids[: len(ids)] == ids


@pytest.mark.train
@settings(max_examples=300, deadline=None)
@given(text=st.text(st.characters(codec="utf-8")))
def test_the_tokenizer_gives_any_text_back(tokenizer, text: str) -> None:  # type: ignore[no-untyped-def]
    ids = tokenizer.encode(text, add_special_tokens=False)
    assert tokenizer.decode(ids, clean_up_tokenization_spaces=False) == text


@pytest.mark.train
def test_digits_and_words_are_the_same_tokens_wherever_they_stand(tokenizer) -> None:  # type: ignore[no-untyped-def]
    def tokens(text: str) -> list[str]:
        return list(tokenizer.tokenize(text))

    for value in ("4071", "Clara", "red", "12.50", "2026-03-12"):
        alone = tokens(value)
        for text in (f"Set Name {value}.", f"\n\t[3] textbox 'Name', value='{value}'\n", f"fill(3, '{value}')"):
            assert " ".join(alone) in " ".join(tokens(text)), (value, text)
    assert tokens("click(12)")[1] == "12"
    assert "12" in tokens("\n\t[12] button 'Save'")


@pytest.mark.train
def test_the_backbone_loads_acts_and_mostly_writes_actions(tokenizer) -> None:  # type: ignore[no-untyped-def]
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    model = transformers.AutoModelForCausalLM.from_pretrained(FOLDER, local_files_only=True)
    assert model.config.model_type == "llama"
    assert model.dtype == torch.float32
    parsed = finished = 0
    for task in itertools.islice(stream(31, settings=("tiny",)), 6):
        world = SymbolicWorld()
        pages, errors = [world.reset(task)], [""]
        completions: list[str] = []
        while not world.done and len(completions) < 8:
            messages = executor.conversation(task.goal, pages, errors, completions)
            ids = tokenizer.apply_chat_template(
                messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
            )
            with torch.no_grad():
                out = model.generate(
                    **ids, do_sample=False, temperature=None, top_k=None, top_p=None, max_new_tokens=96
                )
            assert int(out[0, -1]) == tokenizer.eos_token_id
            completions.append(tokenizer.decode(out[0, ids["input_ids"].shape[1] :], skip_special_tokens=True))
            action = executor.parse(completions[-1])
            if isinstance(action, Action):
                parsed += 1
            pages.append(world.step(action if isinstance(action, Action) else Action.of("noop")))
            errors.append(world.last_action_error)
        finished += world.outcome().submitted
    assert parsed >= 12
    assert finished >= 2


@pytest.mark.train
def test_the_card_holds_no_placeholder() -> None:
    assert not re.search(r"\{[a-z]+\}", (FOLDER / "MODEL_CARD.md").read_text())
