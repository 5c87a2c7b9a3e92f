"""The trainer's loss and gradient against `docs/method.md` §3.6, written down again with plain autograd."""

import dataclasses

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.train

from transformers import TrainerCallback  # noqa: E402

from advsim.config import Backbone, Learner, Lora  # noqa: E402
from advsim.llm import backbone as weights  # noqa: E402
from advsim.training.learner import Sample, deal_steps, update  # noqa: E402

LORA = Lora(rank=4, alpha=8)


@pytest.fixture
def policy(tiny_backbone):
    model, tokenizer = weights.load(Backbone(path=str(tiny_backbone), device="cpu"))
    return weights.with_adapters(model, LORA, seed=1), tokenizer


def move(model, name, by=0.05, seed=3):
    """Takes an adapter away from the backbone, so that the penalty and its gradient are not zero."""
    generator = torch.Generator().manual_seed(seed)
    tensors = weights.state(model, name)
    weights.set_state(model, name, {k: v + by * torch.randn(v.shape, generator=generator) for k, v in tensors.items()})


def log_probs(model, sample):
    ids = torch.tensor([sample.prompt_ids + sample.completion_ids])
    start = len(sample.prompt_ids)
    logits = model(input_ids=ids).logits[0, start - 1 : -1]
    return torch.log_softmax(logits, -1)[range(len(sample.completion_ids)), list(sample.completion_ids)]


def objective(model, adapter, samples, beta):
    model.set_adapter(adapter)
    count = sum(sum(s.mask) for s in samples)
    total = 0.0
    for s in samples:
        mask = torch.tensor(s.mask, dtype=torch.float32)
        policy = log_probs(model, s)
        with torch.no_grad(), model.disable_adapter():
            reference = log_probs(model, s)
        penalty = torch.exp(reference - policy) - (reference - policy) - 1
        total = total + (mask * (-s.advantage * policy + beta * penalty)).sum()
    return total / count


class Gradients(TrainerCallback):
    def __init__(self):
        self.seen = []

    def on_pre_optimizer_step(self, args, state, control, model=None, **kwargs):
        self.seen.append({n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None})


def draw(seed, count=7, turns=1):
    """Samples of uneven length; with several turns the completion holds tokens that the role did not generate."""
    generator = torch.Generator().manual_seed(seed)

    def ids(low, high):
        size = int(torch.randint(low, high, (), generator=generator))
        return tuple(torch.randint(0, 256, (size,), generator=generator).tolist())

    samples = []
    for i in range(count):
        completion, mask = (), ()
        for turn in range(turns):
            if turn:
                page = ids(3, 12)
                completion, mask = completion + page, mask + (False,) * len(page)
            action = ids(1, 9)
            completion, mask = completion + action, mask + (True,) * len(action)
        advantage = float(torch.randn((), generator=generator))
        samples.append(Sample(ids(2, 30), completion, mask, advantage, group=f"g{i // 3}"))
    return samples


def grouped(samples):
    """Each group's samples with its first one's prompt, as rollouts of one task have it."""
    first = {}
    return [dataclasses.replace(s, prompt_ids=first.setdefault(s.group, s.prompt_ids)) for s in samples]


# On-policy: the adapter is what sampled, at first the backbone. Replayed: it has moved since. Attacked: a dialogue.
BATCHES = {
    "on-policy": ("curriculum", draw(1), 0.0),
    "rollouts": ("executor", grouped(draw(11, turns=3)), 0.05),
    "one prompt": ("executor", [dataclasses.replace(s, prompt_ids=(7,)) for s in draw(12, turns=2)], 0.05),
    "replayed": ("curriculum", draw(2), 0.05),
    "attacked": ("executor", draw(3, turns=4), 0.05),
    "zero-variance": (
        "adversary",
        [Sample(s.prompt_ids, s.completion_ids, s.mask, 0.0, s.group) for s in draw(4)],
        0.05,
    ),
}


@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize(("micro", "checkpointing"), [(1, False), (3, False), (16, False), (3, True)])
def test_loss_and_gradient_equal_the_equation(policy, name, micro, checkpointing):
    model, tokenizer = policy
    adapter, samples, moved = BATCHES[name]
    beta = 0.1
    for other in ("curriculum", "adversary", "executor"):
        move(model, other, moved if other == adapter else 0.05)
    expected = objective(model, adapter, samples, beta)
    expected.backward()
    wanted = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
    model.zero_grad(set_to_none=True)

    gradients = Gradients()
    settings = Learner(
        lr=1e-3,
        beta=beta,
        batch_groups=0,
        micro_batch=micro,
        max_grad_norm=0,
        gradient_checkpointing=checkpointing,
    )
    report = update(model, tokenizer, adapter, samples, settings, seed=0, callbacks=[gradients])

    assert report.steps == 1
    assert report.tokens == sum(sum(s.mask) for s in samples)
    assert report.loss == pytest.approx(expected.item(), abs=1e-5)
    (seen,) = gradients.seen
    assert seen.keys() == wanted.keys()
    assert all(f".{adapter}." in key for key in seen)
    scale = max(g.abs().max().item() for g in wanted.values())
    assert scale > 1e-3 or name == "zero-variance"
    for key in wanted:
        torch.testing.assert_close(seen[key], wanted[key], atol=1e-5, rtol=0)


def test_only_the_named_adapter_changes(policy):
    model, tokenizer = policy
    before = {key: value.clone() for key, value in model.state_dict().items()}
    forward = model.get_base_model().__dict__.get("forward")
    for _ in range(2):
        update(model, tokenizer, "adversary", draw(5), Learner(lr=1e-2), seed=0)
    assert model.get_base_model().__dict__.get("forward") is forward
    changed = {key for key, value in model.state_dict().items() if not torch.equal(value, before[key])}
    assert changed == {key for key in before if ".adversary." in key}


def test_the_trainers_folder_lies_where_it_is_told_and_goes(policy, tmp_path):
    model, tokenizer = policy
    seen = []

    class Look(TrainerCallback):
        def on_step_end(self, args, *more, **kwargs):
            seen.extend(tmp_path.iterdir())
            assert args.output_dir == str(seen[0])

    update(model, tokenizer, "executor", draw(5), Learner(lr=1e-2), seed=0, callbacks=[Look()], folder=tmp_path)
    assert len(seen) >= 1
    assert all(folder.match(".trainer-*.tmp") for folder in seen)
    assert not list(tmp_path.iterdir())


def test_without_the_penalty_zero_variance_moves_nothing(policy):
    model, tokenizer = policy
    move(model, "executor")
    before = weights.digest(weights.state(model, "executor"))
    samples = [Sample(s.prompt_ids, s.completion_ids, s.mask, 0.0, s.group) for s in draw(6)]
    report = update(model, tokenizer, "executor", samples, Learner(lr=1e-2), seed=0, kl=False)
    assert report.loss == 0
    assert weights.digest(weights.state(model, "executor")) == before


def test_the_update_is_a_function_of_adapter_samples_and_seed(policy):
    model, tokenizer = policy
    start = weights.state(model, "executor")
    ends = []
    for seed in (0, 0, 1):
        weights.set_state(model, "executor", start)
        torch.manual_seed(len(ends))  # whatever happened before must not matter
        settings = Learner(lr=1e-2, batch_groups=2, micro_batch=2)
        report = update(model, tokenizer, "executor", draw(7, count=12, turns=2), settings, seed=seed)
        assert report.steps == 2
        ends.append(weights.digest(weights.state(model, "executor")))
    assert ends[0] == ends[1] != ends[2]


def test_empty_completions_are_left_out_and_nothing_is_no_error(policy):
    model, tokenizer = policy
    empty = [Sample((1, 2), (), (), 1.0), Sample((1, 2), (5, 6), (False, False), 1.0)]
    before = weights.digest(weights.state(model, "executor"))
    report = update(model, tokenizer, "executor", empty, Learner(lr=1e-2), seed=0)
    assert (report.steps, report.samples, report.empty) == (0, 0, 2)
    assert weights.digest(weights.state(model, "executor")) == before
    assert update(model, tokenizer, "executor", empty + draw(8, 2), Learner(lr=1e-2), seed=0).empty == 2


def test_groups_that_teach_nothing_can_be_left_out(policy):
    model, tokenizer = policy
    start = weights.state(model, "executor")
    decided = [dataclasses.replace(s, group="same", advantage=1e-17) for s in draw(4, count=3)]
    others = [dataclasses.replace(s, group=f"g{n % 2}") for n, s in enumerate(draw(5, count=6))]
    ends = []
    for samples, skip in (([*decided, *others], True), (others, False), ([*decided, *others], False)):
        weights.set_state(model, "executor", start)
        settings = Learner(lr=1e-2, batch_groups=0, skip_decided=skip)
        report = update(model, tokenizer, "executor", samples, settings, seed=0)
        assert (report.samples, report.decided) == ((6, 3) if skip else (len(samples), 0))
        ends.append(weights.digest(weights.state(model, "executor")))
    assert ends[0] == ends[1] != ends[2]
    report = update(model, tokenizer, "executor", decided, Learner(skip_decided=True), seed=0)
    assert (report.steps, report.decided, report.empty) == (0, 3, 0)


def test_each_optimizer_step_has_its_own_n(policy):
    model, tokenizer = policy
    samples = draw(9, count=12, turns=2)
    first, _ = deal_steps(samples, 2, seed=0)
    gradients = Gradients()
    expected = objective(model, "executor", first, 0.01)
    expected.backward()
    wanted = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
    model.zero_grad(set_to_none=True)
    settings = Learner(lr=1e-3, batch_groups=2, micro_batch=2, max_grad_norm=0)
    update(model, tokenizer, "executor", samples, settings, seed=0, callbacks=[gradients])
    assert len(gradients.seen) == 2
    for key in wanted:
        torch.testing.assert_close(gradients.seen[0][key], wanted[key], atol=1e-5, rtol=0)


def test_groups_stay_whole_and_steps_are_even():
    samples = [Sample((1,), (2,), (True,), 0.0, group=f"g{i % 7}") for i in range(21)]
    steps = deal_steps(samples, 3, seed=4)
    assert sorted(len(step) for step in steps) == [6, 6, 9]
    for step in steps:
        assert all(sum(s.group == g for s in step) == 3 for g in {s.group for s in step})
    assert deal_steps(samples, 3, seed=4) == steps
    assert deal_steps([], 3, seed=4) == []
    assert len(deal_steps(samples, 0, seed=4)) == 1


def test_a_mask_of_the_wrong_length_is_refused():
    with pytest.raises(ValueError, match="a mask as long as the completion"):
        Sample((1,), (2, 3), (True,), 0.0)


def test_saved_adapters_come_back_the_same(policy, tmp_path):
    model, _ = policy
    move(model, "executor")
    digest = weights.save(model, "executor", tmp_path / "executor")
    assert digest == weights.digest(weights.state(model, "executor"))
    assert weights.restore(model, "adversary", tmp_path / "executor") == digest
    assert weights.digest(weights.state(model, "adversary")) == digest
    with pytest.raises(ValueError, match="expected the tensors of adapter"):
        weights.set_state(model, "adversary", {})
