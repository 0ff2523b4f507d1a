"""Distillation over the student's k likeliest tokens, against whole softmaxes in float64."""

from __future__ import annotations

import math

import pytest
import torch

from tests.tiny_model import VOCAB
from trainer.contracts import LossConfig, StepConfig
from trainer.losses.select import best_hint, overlap, select_loss
from trainer.losses.topk import top_k_kl
from trainer.model.candidates import candidate_logprobs, likeliest
from trainer.model.head import Teacher, score
from trainer.model.policy import PolicyModel
from trainer.pull import Place, candidates


def distributions(seed: int, count: int = 6, vocab: int = 12) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(
        torch.randn(count, vocab, generator=generator, dtype=torch.float64).log_softmax(1) for _ in range(2)
    )  # type: ignore[return-value]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("k", [1, 4, 11])
def test_the_kl_over_k_and_a_tail_is_the_formula(seed: int, k: int) -> None:
    student, teacher = distributions(seed)
    ids = student.topk(k, dim=1).indices
    found = top_k_kl(student.gather(1, ids), teacher.gather(1, ids))
    for row, logp, logq in zip(found.tolist(), student.tolist(), teacher.tolist(), strict=True):
        chosen = sorted(range(12), key=lambda v: -logp[v])[:k]
        p, q = ([math.exp(one[v]) for v in chosen] for one in (logp, logq))
        p, q = [*p, 1 - sum(p)], [*q, 1 - sum(q)]
        assert row == pytest.approx(sum(a * math.log(a / b) for a, b in zip(p, q, strict=True)), abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_it_bounds_the_whole_kl_from_below_and_grows_with_k(seed: int) -> None:
    student, teacher = distributions(seed)
    whole = (student.exp() * (student - teacher)).sum(1)
    before = torch.zeros(6, dtype=torch.float64)
    for k in (1, 3, 6, 11):
        ids = student.topk(k, dim=1).indices
        found = top_k_kl(student.gather(1, ids), teacher.gather(1, ids))
        assert (found >= before - 1e-9).all()
        before = found
    assert torch.allclose(before, whole, atol=1e-5)


def test_equals_have_no_kl_and_no_gradient_even_with_no_tail() -> None:
    whole = torch.tensor([[0.5, 0.25, 0.25]], dtype=torch.float64).log().requires_grad_()
    found = top_k_kl(whole, whole.detach())
    found.sum().backward()
    assert found.item() == pytest.approx(0.0, abs=1e-12)
    assert torch.isfinite(whole.grad).all()  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(4))
def test_select_is_the_formula(seed: int) -> None:
    config = LossConfig(opd_clip=0.5)
    now, teacher = distributions(seed, vocab=5)
    prox = (now + 0.4 * distributions(seed + 10, vocab=5)[0]).log_softmax(1)[:, :4]
    now, teacher = now[:, :4], teacher[:, :4]
    found = select_loss(now, prox, teacher, config)
    for row, logp, old, taught in zip(
        found.tolist(), now.tolist(), prox.tolist(), teacher.tolist(), strict=True
    ):
        mass, loss = sum(math.exp(v) for v in old), 0.0
        for a, b, t in zip(logp, old, taught, strict=True):
            pull = math.exp(b) / mass * min(max(t - b, -0.5), 0.5)
            ratio = math.exp(a - b)
            loss -= min(ratio * pull, min(max(ratio, 0.8), 1.28) * pull)
        assert row == pytest.approx(loss, rel=1e-9)


@pytest.mark.parametrize(
    ("ratio", "pull", "gradient"),
    [(1.29, 0.5, 0.0), (1.27, 0.5, -0.635), (0.79, -0.5, 0.0), (0.81, -0.5, 0.405)],
)
def test_select_at_each_clip_edge(ratio: float, pull: float, gradient: float) -> None:
    prox = torch.tensor([[-1.0]], dtype=torch.float64)
    now = (prox + math.log(ratio)).requires_grad_()
    select_loss(now, prox, prox + pull, LossConfig()).sum().backward()
    assert now.grad is not None
    assert now.grad.item() == pytest.approx(gradient, abs=1e-12)


def test_at_the_start_of_a_step_select_has_the_gradient_of_the_reverse_kl_over_the_set() -> None:
    logits = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    logits.requires_grad_()
    now = logits.log_softmax(1)
    teacher = distributions(5, count=3, vocab=4)[1]
    (found,) = torch.autograd.grad(
        select_loss(now, now.detach(), teacher, LossConfig(opd_clip=20.0)).sum(), logits, retain_graph=True
    )
    (expected,) = torch.autograd.grad((now.exp() * (now - teacher)).sum(), logits)
    assert torch.allclose(found, expected, atol=1e-12)


def test_the_hint_that_speaks_of_the_same_tokens_teaches() -> None:
    student = torch.tensor([[1, 2], [3, 4]])
    teachers = torch.tensor([[[1, 9], [8, 9]], [[2, 1], [4, 7]], [[1, 2], [4, 7]]])
    assert overlap(student, teachers).tolist() == [0.25, 0.75, 0.75]
    assert best_hint(student, teachers) == 1


def states(seed: int, count: int = 20) -> torch.Tensor:
    return torch.randn(count, 64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("chunk", [3, 100])
def test_the_likeliest_tokens_are_those_of_the_whole_distribution(model: PolicyModel, chunk: int) -> None:
    hidden = states(0)
    found = likeliest(model, hidden, 5, chunk=chunk)
    assert torch.equal(found, (hidden @ model.head.T).topk(5, dim=1).indices)


def test_candidates_and_their_gradients_equal_a_whole_log_softmax(model: PolicyModel) -> None:
    generator = torch.Generator().manual_seed(3)
    tokens = torch.randint(0, VOCAB, (20,), generator=generator)
    ids = torch.randint(0, VOCAB, (20, 4), generator=generator)
    heat, weights = torch.linspace(0.5, 1.5, 20), torch.randn(20, 4, generator=generator)
    ours, theirs = states(1).requires_grad_(), states(1).requires_grad_()
    said = score(model, ours, tokens, heat, chunk=7).logprob
    found = candidate_logprobs(model, ours, ids, token=tokens, logprob=said, temperature=heat)
    expected = (theirs @ model.head.T / heat[:, None]).log_softmax(1).gather(1, ids)
    assert torch.allclose(found, expected, atol=1e-5)
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    assert ours.grad is not None
    assert theirs.grad is not None
    assert torch.allclose(ours.grad, theirs.grad, atol=1e-5)


def place(model: PolicyModel) -> Place:
    hidden, tokens, heat = states(1), torch.arange(20), torch.full((20,), 0.7)
    said = score(model, hidden, tokens, heat, chunk=64).logprob
    return Place(hidden, tokens, said, heat, sizes=(8, 12))


@pytest.mark.parametrize("kind", ["top_k", "top_k_select"])
def test_several_hints_are_mixed_or_the_best_is_chosen_for_each_reply(model: PolicyModel, kind: str) -> None:
    now = place(model)
    # the second teacher is the student on the first reply, the first one on the second
    teachers = torch.stack([states(8), states(9)])
    teachers[1, :8], teachers[0, 8:] = now.hidden[:8], now.hidden[8:]
    config = StepConfig(loss=LossConfig(opd_kind=kind, top_k=3))  # type: ignore[arg-type]
    found = candidates(model, now, None, Teacher(teachers, torch.full((2, 20), 0.5)), config)
    assert found.logprob.shape == (20, 3)
    if kind == "top_k_select":
        assert torch.allclose(found.teacher, found.prox, atol=1e-5)
    else:
        logq = (teachers @ model.head.T / 0.7).softmax(2).mean(0).log()
        ids = (now.hidden @ model.head.T).topk(3, dim=1).indices
        assert torch.allclose(found.teacher, logq.gather(1, ids), atol=1e-5)
