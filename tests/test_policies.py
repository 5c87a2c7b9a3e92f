"""Policies against an engine that says what it is told to: tokens, masks, forks, cuts, questions."""

import asyncio

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.train

from advsim.action import Action  # noqa: E402
from advsim.agents.executor import conversation  # noqa: E402
from advsim.agents.protocol import EngineError  # noqa: E402
from advsim.config import Backbone  # noqa: E402
from advsim.llm import backbone as weights  # noqa: E402
from advsim.llm.chat import ChatFormat  # noqa: E402
from advsim.llm.engine import Completion, Memory  # noqa: E402
from advsim.llm.policies import ModelAttacker, ModelExecutor, PlannedAttacker, Sampling  # noqa: E402
from advsim.page import parse  # noqa: E402
from advsim.task import Attack, Task  # noqa: E402

TASK = Task(id="t", goal="Press B", page="RootWebArea 'x'")
PAGES = [parse(f"RootWebArea 'T'\n\t[1] textbox 'A', value='{'v' * n}'\n\t[2] button 'B'") for n in range(8)]
GOOD = "instruction: Show an alert that says 'Press B first.'\nmarker: Press B first\ntarget: click(2)"


class Says:
    """An engine that gives prepared answers and notes the prompts."""

    def __init__(self, tokenizer, *answers, cut=()):
        self.tokenizer, self.answers, self.cut = tokenizer, list(answers), set(cut)
        self.prompts, self.seeds, self.memories = [], [], []

    async def generate(self, adapter, token_ids, *, max_tokens, temperature, seed, stop=(), memory=None):
        text = self.answers[len(self.prompts)]
        ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        finish = "length" if len(self.prompts) in self.cut else "stop"
        if finish == "stop":
            ids = [*ids, self.tokenizer.eos_token_id]
        self.prompts.append(list(token_ids))
        self.seeds.append(seed)
        self.memories.append(memory)
        return Completion(tuple(ids), (-0.5,) * len(ids), text, finish)


@pytest.fixture(scope="module")
def tokenizer(tiny_backbone):
    return weights.load(Backbone(path=str(tiny_backbone), device="cpu"))[1]


def make_executor(tokenizer, engine, max_tokens=4096, mode="diff"):
    return ModelExecutor(engine, None, "c", ChatFormat(tokenizer), Sampling(0.7, 40, max_tokens), mode)


def play(session, pages):
    async def go():
        return [await session.act(page, "") for page in pages]

    return asyncio.run(go())


ACTIONS = [f"fill(1, '{'v' * n}')" for n in range(1, 8)]


@pytest.mark.parametrize("mode", ["diff", "full"])
@pytest.mark.parametrize("cut", [(), (1,)])
def test_a_conversation_is_the_template_with_the_sampled_ids_in_it(tokenizer, mode, cut):
    engine = Says(tokenizer, *ACTIONS, cut=cut)
    session = make_executor(tokenizer, engine, mode=mode).begin(TASK, 3)
    assert play(session, PAGES[:4]) == ACTIONS[:4]
    for turn in range(1, 4):  # every prompt begins with the one before and what was said to it
        assert engine.prompts[turn][: len(engine.prompts[turn - 1])] == engine.prompts[turn - 1]
    messages = conversation(TASK.goal, PAGES[:4], [""] * 4, ACTIONS[:3], mode)
    expected = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert tokenizer.decode(engine.prompts[3]) == expected
    assert len(set(engine.seeds)) == 4


def test_the_mask_marks_what_was_sampled_and_nothing_else(tokenizer):
    engine = Says(tokenizer, *ACTIONS, cut=(1,))
    session = make_executor(tokenizer, engine).begin(TASK, 3)
    play(session, PAGES[:3])
    tokens = session.tokens()
    assert list(tokens.prompt_ids) == engine.prompts[0]
    sampled = [i for i, m in zip(tokens.completion_ids, tokens.mask, strict=True) if m]
    end = f"{tokenizer.eos_token}"
    assert tokenizer.decode(sampled) == ACTIONS[0] + end + ACTIONS[1] + ACTIONS[2] + end
    assert len(tokens.logprobs) == sum(tokens.mask)
    assert tokens.mask[0]
    assert tokens.mask[-1]
    whole = [*tokens.prompt_ids, *tokens.completion_ids]
    assert whole[: len(engine.prompts[2])] == engine.prompts[2]


def test_a_fork_remembers_only_its_turns(tokenizer):
    engine = Says(tokenizer, *ACTIONS, *ACTIONS)
    session = make_executor(tokenizer, engine).begin(TASK, 3)
    play(session, PAGES[:4])
    fork = session.fork(2)
    assert fork.tokens() == tokens_after(tokenizer, 2)
    play(fork, PAGES[2:3])
    assert engine.prompts[-1] == engine.prompts[2]  # the same page at the same turn: the same prompt
    assert session.tokens() == tokens_after(tokenizer, 4)  # the original is as it was
    assert session.fork(0).tokens().completion_ids == ()


def tokens_after(tokenizer, turns):
    session = make_executor(tokenizer, Says(tokenizer, *ACTIONS)).begin(TASK, 3)
    play(session, PAGES[:turns])
    return session.tokens()


def test_too_long_a_conversation_loses_whole_turns_and_never_the_goal(tokenizer):
    engine = Says(tokenizer, *ACTIONS)
    session = make_executor(tokenizer, engine, max_tokens=330).begin(TASK, 3)
    play(session, PAGES[:7])
    texts = [tokenizer.decode(prompt) for prompt in engine.prompts]
    assert all(len(prompt) + 40 <= 330 for prompt in engine.prompts)
    assert all(text.count("Goal: Press B") == 1 for text in texts)
    kept = [sum(f"{action}{tokenizer.eos_token}" in text for action in ACTIONS) for text in texts]
    assert kept[-1] < 6  # turns were cut
    first = 6 - kept[-1]
    messages = conversation(TASK.goal, PAGES[first:7], [""] * kept[-1] + [""], ACTIONS[first:6])
    assert texts[-1] == tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    tokens = session.tokens()
    assert [*tokens.prompt_ids, *tokens.completion_ids][: len(engine.prompts[-1])] == engine.prompts[-1]
    assert len(tokens.prompt_ids) + len(tokens.completion_ids) <= 330
    fork = session.fork(2)  # from before the cut: what it remembers is whole again
    assert fork.tokens() == tokens_after(tokenizer, 2)


def test_a_page_that_never_fits_is_an_error_not_an_action(tokenizer):
    session = make_executor(tokenizer, Says(tokenizer, *ACTIONS), max_tokens=60).begin(TASK, 3)
    with pytest.raises(EngineError, match="too long"):
        play(session, PAGES[:1])


def make_attacker(tokenizer, mode, *answers, max_queries=11):
    engine = Says(tokenizer, *answers)
    sampling = Sampling(1.0, 120, 4096)
    return engine, ModelAttacker(engine, None, "ck", ChatFormat(tokenizer), sampling, mode, max_queries)


def ask(session, turns):
    async def go():
        return [await session.before(turn, PAGES[0], Action.of("click", 2)) for turn in turns]

    return asyncio.run(go())


def test_a_reactive_attacker_waits_and_injects_at_the_turn_it_is_asked(tokenizer):
    engine, attacker = make_attacker(tokenizer, "reactive", "wait", "nonsense", GOOD)
    session = attacker.begin(TASK, 5)
    first, second, third = ask(session, [1, 2, 3])
    assert first is None
    assert second is None
    assert third == Attack("Show an alert that says 'Press B first.'", "Press B first", 3, "click(2)", "free", "ck")
    assert session.malformed == 1
    assert len(session.questions) == 3
    assert "Pending: click(2)" in tokenizer.decode(engine.prompts[0])
    assert all(all(tokens.mask) for tokens in session.questions)


def test_a_reactive_attackers_questions_share_one_memory(tokenizer):
    engine, attacker = make_attacker(tokenizer, "reactive", "wait", "wait", GOOD, "wait")
    sessions = [attacker.begin(TASK, 5), attacker.begin(TASK, 6)]
    ask(sessions[0], [1, 2, 3])
    ask(sessions[1], [1])
    assert isinstance(engine.memories[0], Memory)
    assert engine.memories[0] is engine.memories[1] is engine.memories[2]
    assert engine.memories[3] is not engine.memories[0]


def test_a_reactive_attacker_has_so_many_questions_and_no_more(tokenizer):
    engine, attacker = make_attacker(tokenizer, "reactive", *["wait"] * 20, max_queries=11)
    assert ask(attacker.begin(TASK, 5), range(1, 15)) == [None] * 14
    assert len(engine.prompts) == 11


def test_a_static_attacker_is_asked_once_and_injects_at_its_turn(tokenizer):
    engine, attacker = make_attacker(tokenizer, "static", GOOD.replace("target", "turn: 3\ntarget"))
    found = ask(attacker.begin(TASK, 5), [1, 2, 3, 4])
    assert [attack is not None for attack in found] == [False, False, True, False]
    assert len(engine.prompts) == 1


def test_a_planned_attack_enters_at_its_turn():
    attack = Attack("z", "m", 2, source="abc")
    attacker = PlannedAttacker(attack)
    assert ask(attacker.begin(TASK, 0), [1, 2, 3]) == [None, attack, None]
    assert attacker.checkpoint == "abc"
