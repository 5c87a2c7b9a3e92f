"""Policies: an engine, an adapter's name and a role's prompts, as the executors and attackers that an episode asks for.

Each session keeps the token ids of its part as they were sampled (`Turn`), for the learner.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from advsim.action import Action
from advsim.agents import adversary, executor
from advsim.agents.executor import Mode
from advsim.agents.proposal import ProposalError
from advsim.agents.protocol import EngineError
from advsim.llm.chat import ChatFormat
from advsim.llm.engine import Completion, Engine, Memory
from advsim.page import Page
from advsim.seeds import derive
from advsim.task import Attack, Task


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a role is sampled.

    Attributes:
        temperature, max_new_tokens: Of one completion.
        max_tokens: Longest conversation, completion included.
        verbose: Whether the prompts explain the formats in words (for a model that was not trained on them).
    """

    temperature: float
    max_new_tokens: int
    max_tokens: int = 4096
    verbose: bool = False


@dataclass(frozen=True, slots=True)
class Tokens:
    """A conversation as the learner needs it.

    Attributes:
        prompt_ids: Up to the first sampled token.
        completion_ids: From there on, to the last sampled token.
        mask: Which of those were sampled.
        logprobs: Of those that were sampled, as the engine gave them.
    """

    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]
    mask: tuple[bool, ...]
    logprobs: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class _Piece:
    """Ids that were given to the policy, and the completion that it gave back."""

    given: tuple[int, ...]
    completion: Completion


def _tokens(pieces: list[_Piece]) -> Tokens:
    completion: list[int] = []
    mask: list[bool] = []
    logprobs: list[float] = []
    for index, piece in enumerate(pieces):
        if index:
            completion += piece.given
            mask += [False] * len(piece.given)
        completion += piece.completion.token_ids
        mask += [True] * len(piece.completion.token_ids)
        logprobs += piece.completion.logprobs
    prompt = pieces[0].given if pieces else ()
    return Tokens(prompt, tuple(completion), tuple(mask), tuple(logprobs))


class ModelExecutor:
    """An executor whose actions a language model writes (`advsim.agents.executor` has the prompts).

    Args:
        engine: Runs it.
        adapter: The adapter's name in the engine; None for the backbone.
        checkpoint: Hash of the weights, for the ledger.
        chat: The backbone's chat format.
        sampling: Temperature and limits.
        mode: How pages are shown after the first.
        name: For people; the adapter's by default.
    """

    def __init__(
        self,
        engine: Engine,
        adapter: str | None,
        checkpoint: str,
        chat: ChatFormat,
        sampling: Sampling,
        mode: Mode = "diff",
        name: str | None = None,
    ) -> None:
        self.engine, self.adapter, self.checkpoint = engine, adapter, checkpoint
        self.chat, self.sampling, self.mode = chat, sampling, mode
        self.name = name or adapter or "base"

    def begin(self, task: Task, seed: int) -> ModelExecutorSession:
        """See `Executor.begin`. Only the goal is looked at."""
        return ModelExecutorSession(self, task.goal, seed)


class ModelExecutorSession:
    """One model in one episode: a conversation that grows by a page and an action a turn."""

    def __init__(self, policy: ModelExecutor, goal: str, seed: int) -> None:
        self._policy = policy
        self._goal = goal
        self._seed = seed
        self._pages: list[Page] = []
        self._errors: list[str] = []
        self._completions: list[Completion] = []
        self._pieces: list[_Piece] = []  # the kept turns; `_cut` turns before them were cut off
        self._cut = 0
        self._memory = Memory()

    async def act(self, page: Page, error: str) -> str:
        """See `ExecutorSession.act`.

        Raises:
            EngineError: The engine failed, or goal and page alone are longer than a conversation may be.
        """
        policy, limits = self._policy, self._policy.sampling
        self._pages.append(page)
        self._errors.append(error)
        if self._pieces:
            given = self._next(len(self._pages) - 1)
        else:
            given = tuple(policy.chat.opening(executor.first_message(self._goal, page, policy.mode, limits.verbose)))
        past = [i for piece in self._pieces for i in (*piece.given, *piece.completion.token_ids)]
        if len(past) + len(given) + limits.max_new_tokens > limits.max_tokens:
            past, given = self._shorten()
        completion = await policy.engine.generate(
            policy.adapter,
            [*past, *given],
            max_tokens=limits.max_new_tokens,
            temperature=limits.temperature,
            seed=derive(self._seed, "turn", len(self._pages)),
            memory=self._memory,
        )
        self._completions.append(completion)
        self._pieces.append(_Piece(given, completion))
        return completion.text

    def fork(self, turns: int) -> ModelExecutorSession:
        """See `ExecutorSession.fork`. Turns that were cut off later are remembered only as far as they were kept."""
        other = ModelExecutorSession(self._policy, self._goal, self._seed)
        other._pages, other._errors = self._pages[:turns], self._errors[:turns]
        other._completions = self._completions[:turns]
        other._memory = self._memory.fork()
        if turns >= self._cut + 1:
            other._cut, other._pieces = self._cut, self._pieces[: turns - self._cut]
        elif turns:
            other._pieces = other._rebuilt(0, turns)
        return other

    def tokens(self) -> Tokens:
        """The conversation as it stands at the end: with turns cut off, its last window."""
        return _tokens(self._pieces)

    def release(self) -> None:
        """Lets the engine's memory go; the session can still go on, at the price of reading anew."""
        self._memory = Memory()

    def _next(self, turn: int) -> tuple[int, ...]:
        said = self._completions[turn - 1].token_ids
        text = executor.next_message(self._pages[turn - 1], self._pages[turn], self._errors[turn], self._policy.mode)
        return tuple(self._policy.chat.reply(said, text))

    def _rebuilt(self, first: int, turns: int) -> list[_Piece]:
        """The turns first..turns as if the conversation had begun with the first of them."""
        policy = self._policy
        text = executor.first_message(self._goal, self._pages[first], policy.mode, policy.sampling.verbose)
        given = [tuple(policy.chat.opening(text)), *(self._next(turn) for turn in range(first + 1, turns))]
        return [_Piece(ids, self._completions[first + i]) for i, ids in enumerate(given)]

    def _shorten(self) -> tuple[list[int], tuple[int, ...]]:
        """Cuts whole turns off the beginning until there is room: the past that is left, and what is given now."""
        policy, limits = self._policy, self._policy.sampling
        now = len(self._pages) - 1
        for first in range(self._cut + 1, now + 1):
            pieces = self._rebuilt(first, now) if first < now else []
            if pieces:
                given = self._next(now)
            else:
                text = executor.first_message(self._goal, self._pages[now], policy.mode, limits.verbose)
                given = tuple(policy.chat.opening(text))
            past = [i for piece in pieces for i in (*piece.given, *piece.completion.token_ids)]
            if len(past) + len(given) + limits.max_new_tokens <= limits.max_tokens:
                self._cut, self._pieces = first, pieces
                return past, given
        raise EngineError(
            f"goal and page alone are too long: expected at most {limits.max_tokens} tokens with "
            f"{limits.max_new_tokens} for the reply"
        )


class ModelAttacker:
    """An adversary whose injections a language model writes (`advsim.agents.adversary` has the prompts).

    Args:
        engine: Runs it.
        adapter: The adapter's name in the engine; None for the backbone.
        checkpoint: Hash of the weights; becomes the attacks' source.
        chat: The backbone's chat format.
        sampling: Temperature and limits.
        mode: `static` decides once, on the first page; `reactive` is asked before each transition.
        max_queries: Most questions in an episode.
        name: For people.
    """

    def __init__(
        self,
        engine: Engine,
        adapter: str | None,
        checkpoint: str,
        chat: ChatFormat,
        sampling: Sampling,
        mode: Literal["static", "reactive"] = "reactive",
        max_queries: int = 11,
        name: str | None = None,
    ) -> None:
        self.engine, self.adapter, self.checkpoint = engine, adapter, checkpoint
        self.chat, self.sampling, self.mode, self.max_queries = chat, sampling, mode, max_queries
        self.name = name or adapter or "base"

    def begin(self, task: Task, seed: int) -> ModelAttackerSession:
        """See `Attacker.begin`. Only the goal is looked at."""
        return ModelAttackerSession(self, task.goal, seed)

    async def ask(self, text: str, seed: int, memory: Memory | None = None) -> _Piece:
        """One question; `memory` of an earlier one saves reading what both begin with.

        Raises:
            EngineError: It is too long.
        """
        given = tuple(self.chat.opening(text))
        limits = self.sampling
        if len(given) + limits.max_new_tokens > limits.max_tokens:
            raise EngineError(f"expected a question of at most {limits.max_tokens} tokens, got {len(given)}")
        completion = await self.engine.generate(
            self.adapter,
            given,
            max_tokens=limits.max_new_tokens,
            temperature=limits.temperature,
            seed=seed,
            memory=memory,
        )
        return _Piece(given, completion)

    async def propose(self, task: Task, page: Page, seed: int) -> tuple[Attack | ProposalError, Tokens, str]:
        """A static attack on a task's first page: what was read from it, its tokens and its text."""
        piece = await self.ask(adversary.static_prompt(task.goal, page, self.sampling.verbose), seed)
        attack = adversary.parse_attack(piece.completion.text, self.checkpoint)
        return attack, _tokens([piece]), piece.completion.text


class ModelAttackerSession:
    """One model attacking one episode.

    Attributes:
        questions: Tokens of every question so far; each is a conversation of its own.
        malformed: How many answers were neither an attack nor a wait.
    """

    def __init__(self, policy: ModelAttacker, goal: str, seed: int) -> None:
        self._policy = policy
        self._goal = goal
        self._seed = seed
        self._planned: Attack | None = None
        self._memory = Memory() if policy.mode == "reactive" else None
        self.questions: list[Tokens] = []
        self.texts: list[str] = []
        self.malformed = 0

    async def before(self, turn: int, page: Page, pending: Action | None) -> Attack | None:
        """See `AttackerSession.before`. An answer that cannot be read lets the action pass."""
        policy = self._policy
        if policy.mode == "static":
            if not self.questions:
                attack = await self._ask(adversary.static_prompt(self._goal, page, policy.sampling.verbose), None)
                self._planned = attack if isinstance(attack, Attack) else None
            return self._planned if self._planned is not None and self._planned.turn == turn else None
        if len(self.questions) >= policy.max_queries:
            return None
        text = adversary.reactive_prompt(self._goal, page, pending, policy.sampling.verbose)
        attack = await self._ask(text, turn)
        if attack is not None:
            self._memory = None  # the last question, as a rule
        return attack

    async def _ask(self, text: str, turn: int | None) -> Attack | None:
        policy = self._policy
        piece = await policy.ask(text, derive(self._seed, "attack", len(self.questions)), self._memory)
        self.questions.append(_tokens([piece]))
        answer = piece.completion.text
        self.texts.append(answer)
        if turn is None:
            attack: Attack | ProposalError | None = adversary.parse_attack(answer, policy.checkpoint)
        else:
            attack = adversary.parse_reactive(answer, turn, policy.checkpoint)
        if isinstance(attack, ProposalError):
            self.malformed += 1
            return None
        return attack


class PlannedAttacker:
    """Carries out a given attack at its turn: one proposed before, or one of an earlier round."""

    def __init__(self, attack: Attack, name: str = "adversary") -> None:
        self.attack = attack
        self.name = name
        self.checkpoint = attack.source

    def begin(self, task: Task, seed: int) -> PlannedAttacker:
        """See `Attacker.begin`; it has no state, so it is its own session."""
        return self

    async def before(self, turn: int, page: Page, pending: Action | None) -> Attack | None:
        """See `AttackerSession.before`."""
        return replace(self.attack) if turn == self.attack.turn else None
