"""A frozen linear with adapters on it: the products written out, their gradients,
and nobody's effect on another."""

from __future__ import annotations

import pytest
import torch

from trainer.lora.product import Layout, adapted

SIZES = (8, 5, 16)
"""Rows of each stretch."""
IN, OUT, RANK, SCALE = 48, 40, 4, 2.0

Pairs = list[tuple[torch.Tensor, torch.Tensor]]


def stretches(sizes: tuple[int, ...] = SIZES) -> tuple[slice, ...]:
    starts = [sum(sizes[:index]) for index in range(len(sizes))]
    return tuple(slice(start, start + size) for start, size in zip(starts, sizes, strict=True))


def drawn(dtype: torch.dtype, adapter: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, Pairs]:
    """x, weight, a gradient for the outcome, and a pair for each stretch."""
    torch.manual_seed(0)
    x = torch.randn(sum(SIZES), IN, dtype=dtype, requires_grad=True)
    weight = torch.randn(OUT, IN, dtype=dtype)
    pairs = [
        (
            torch.randn(RANK, IN, dtype=adapter, requires_grad=True),
            torch.randn(OUT, RANK, dtype=adapter, requires_grad=True),
        )
        for _ in SIZES
    ]
    return x, weight, torch.randn(sum(SIZES), OUT, dtype=dtype), pairs


def layout(rows: tuple[slice, ...], *, row_parallel: bool = False) -> Layout:
    return Layout(rows=rows, scale=SCALE, row_parallel=row_parallel, group=None)


@pytest.mark.parametrize("row_parallel", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_it_is_the_formula_and_so_are_its_gradients(*, row_parallel: bool, biased: bool) -> None:
    x, weight, grad, pairs = drawn(torch.float64, torch.float64)
    bias = torch.randn(OUT, dtype=torch.float64) if biased else None
    found = adapted(x, weight, bias, layout(stretches(), row_parallel=row_parallel), pairs)
    leaves = [x, *(matrix for pair in pairs for matrix in pair)]
    gradients = torch.autograd.grad(found, leaves, grad)
    parts = [
        x[rows] @ weight.T + SCALE * (x[rows] @ a.T) @ b.T
        for rows, (a, b) in zip(stretches(), pairs, strict=True)
    ]
    by_hand = torch.cat(parts) + (bias if bias is not None else 0)
    assert torch.allclose(found, by_hand, rtol=1e-12, atol=1e-12)
    for mine, other in zip(gradients, torch.autograd.grad(by_hand, leaves, grad), strict=True):
        assert torch.allclose(mine, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_stretchs_adapter_has_the_bits_that_it_has_alone(dtype: torch.dtype) -> None:
    x, weight, grad, pairs = drawn(dtype, torch.float32)
    found = adapted(x, weight, None, layout(stretches()), pairs)
    gradients = torch.autograd.grad(found, [matrix for pair in pairs for matrix in pair], grad)
    for index, rows in enumerate(stretches()):
        alone = x[rows].detach().clone().requires_grad_()
        mine = adapted(alone, weight, None, layout((slice(0, SIZES[index]),)), [pairs[index]])
        expected = torch.autograd.grad(mine, [alone, *pairs[index]], grad[rows].clone())
        assert torch.equal(found[rows], mine)
        assert torch.equal(gradients[2 * index], expected[1])
        assert torch.equal(gradients[2 * index + 1], expected[2])


def test_a_smaller_base_type_loses_no_more_than_its_own_rounding() -> None:
    x, weight, grad, pairs = drawn(torch.bfloat16, torch.float32)
    found = adapted(x, weight, None, layout(stretches()), pairs)
    (gradient,) = torch.autograd.grad(found, [x], grad)
    assert (found.dtype, gradient.dtype) == (torch.bfloat16, torch.bfloat16)
    wide = x.detach().double()
    exact = torch.cat(
        [
            wide[rows] @ weight.double().T + SCALE * (wide[rows] @ a.double().T) @ b.double().T
            for rows, (a, b) in zip(stretches(), pairs, strict=True)
        ]
    )
    assert ((found.double() - exact).abs() <= 2**-7 * exact.abs() + 0.1).all()


def test_a_first_layers_inputs_ask_for_no_gradient_and_get_none() -> None:
    x, weight, grad, pairs = drawn(torch.float32, torch.float32)
    found = adapted(x.detach(), weight, None, layout(stretches()), pairs)
    found.backward(grad)
    assert x.grad is None
    assert all(matrix.grad is not None for pair in pairs for matrix in pair)
