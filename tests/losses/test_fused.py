"""The fused log-sum-exp against the plain formula in float64."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from identica.errors import InputError
from identica.losses import _fused
from identica.losses._fused import mean_log_sum_exp

POWERS = [None, 0.5, 1, 1.5, 2, 3, 4.2]
ONE = torch.tensor(1.0)


def plain(
    queries: Tensor,
    keys: Tensor,
    positives: Tensor | None,
    scale: Tensor,
    biases: Tensor | None = None,
    **how: Any,
) -> Tensor:
    """The formula as it stands, with every pair in memory."""
    p, first, count = how["p"], how["first"], how["count"]
    if p is None:
        similarity = scale * queries @ keys.T
    else:
        d = (queries[:, None] - keys).abs()
        apart = torch.where(d > 0, d, 1) ** p  # keeps the infinite slope at 0 out of the gradient
        similarity = -scale * torch.where(d > 0, apart, 0).sum(-1)
    similarity = similarity if biases is None else similarity + biases
    index = torch.arange(len(keys)) - torch.arange(len(queries))[:, None] - first
    similarity = similarity.masked_fill(index % len(keys) >= count, -torch.inf)
    if positives is not None:
        similarity = torch.cat([similarity, positives[:, None]], dim=1)
    return similarity.logsumexp(1).mean()


def value_and_gradients(function: Any, dtype: torch.dtype, tensors: Any, how: Any) -> list[Tensor]:
    copies = {id(x): x.detach().to(dtype).requires_grad_() for x in tensors if x is not None}
    inputs = [None if x is None else copies[id(x)] for x in tensors]  # the same tensor stays one
    value = function(*inputs, **how)
    return [x.detach().double() for x in (value, *torch.autograd.grad(value, copies.values()))]


def check(*tensors: Tensor | None, tolerance: float = 1e-5, **how: Any) -> None:
    ours = value_and_gradients(mean_log_sum_exp, torch.float32, tensors, how)
    truth = value_and_gradients(plain, torch.float64, tensors, how)
    for x, y in zip(ours, truth, strict=True):
        assert x.shape == y.shape
        error = (x - y).abs()
        assert error.max() <= tolerance * y.abs().max() + 1e-30
        assert error.norm() <= tolerance * y.norm() + 1e-30


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize(
    ("a", "k", "n", "first", "count"),
    [
        (40, 40, 10, 0, 40),  # all keys
        (40, 40, 10, 1, 39),  # all but oneself
        (41, 41, 3, 1, 38),  # nearly all
        (37, 61, 1, 5, 7),  # a short window, one coordinate
        (61, 37, 4, -3, 20),  # more queries than keys: windows wrap around
        (6, 2000, 5, 700, 1500),  # longer than a block of keys, across the end
        (9, 9, 2, 4, 1),  # one key each
        (3, 2, 2, 1, 1),
        (1, 1, 1, 0, 1),
    ],
)
def test_equals_the_formula_in_float64(
    p: float | None, a: int, k: int, n: int, first: int, count: int
) -> None:
    queries, keys, scale = normal(a, n), normal(k, n, seed=1), torch.tensor(0.7)
    how = {"p": p, "first": first, "count": count}
    check(queries, keys, normal(a, seed=2), scale, **how)
    check(queries, keys, None, scale, **how)
    check(queries, keys, normal(a, seed=2), scale, 3 * normal(k, seed=3), **how)
    check(queries, keys, None, scale, 3 * normal(k, seed=3), **how)
    if a == k:
        check(queries, queries, normal(a, seed=2), scale, **how)


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("spread", [1.0, 1e4])
@pytest.mark.parametrize("first", [0, 1])
def test_any_scale_and_distance(p: float | None, scale: float, spread: float, first: int) -> None:
    codes = spread * normal(50, 10)
    check(codes, codes, None, torch.tensor(scale), p=p, first=first, count=50 - first)
    check(codes, codes.clone(), normal(50), torch.tensor(scale), p=p, first=first, count=20)


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("spread", [1.0, 10.0])
@pytest.mark.parametrize("shift", [0.0, -1000.0])
def test_any_bias(p: float | None, scale: float, spread: float, shift: float) -> None:
    """Biases that dominate or hardly count, that cancel the similarities, and that have much in common."""
    codes, scales = normal(50, 10) / scale ** (1 / (p or 2)), torch.tensor(scale)
    biases = spread * normal(50, seed=1) + shift
    how = {"p": p, "first": 1, "count": 49}
    check(codes, codes.clone(), None, scales, biases, **how)
    check(codes, codes, normal(50) + shift, scales, biases, **how)
    near = (codes.norm(dim=1) ** (p or 2)) * scale + shift
    check(codes, codes.clone(), normal(50) + shift, scales, near, **how)


@pytest.mark.parametrize("p", [None, 1, 2])
def test_without_a_bias_the_bits_are_those_of_zeros(p: float | None) -> None:
    queries, keys, positives = normal(40, 5), normal(60, 5, seed=1), normal(40, seed=2)
    inputs, how = (queries, keys, positives, ONE), {"p": p, "first": 3, "count": 50}
    without = value_and_gradients(mean_log_sum_exp, torch.float32, inputs, how)
    zeros = value_and_gradients(mean_log_sum_exp, torch.float32, (*inputs, torch.zeros(60)), how)
    assert all(torch.equal(x, y) for x, y in zip(without, zeros[:-1], strict=True))


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("scale", [0.02, 1.0])
def test_many_coordinates(p: float | None, scale: float) -> None:
    codes = normal(120, 200)
    check(codes, codes, normal(120), torch.tensor(scale), p=p, first=1, count=119)


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("offset", [-60.0, -10.0, 10.0, 60.0, 500.0])
def test_positives_may_dominate_or_vanish(p: float | None, offset: float) -> None:
    codes, keys = normal(30, 3), normal(30, 3, seed=1)
    # an exponent of size a is rounded by a/2²⁴, and so is what is summed
    largest = 0.0 if p is None else float(((codes[:, None] - keys).abs() ** p).sum(-1).max())
    check(
        codes,
        keys,
        normal(30, seed=2) + offset,
        ONE,
        tolerance=max(1e-5, 2**-24 * largest),
        p=p,
        first=0,
        count=30,
    )


@pytest.mark.parametrize("p", POWERS)
def test_close_keys_far_from_the_origin(p: float | None) -> None:
    codes = 1000 + 0.1 * normal(60, 4)
    check(codes, codes, None, ONE, p=p, first=1, count=59)


@pytest.mark.parametrize("p", POWERS)
def test_equal_coordinates_have_no_slope(p: float | None) -> None:
    codes = normal(64, 6).relu()  # half of the coordinates coincide at 0
    codes[1] = codes[0]
    check(codes, codes.clone(), None, ONE, p=p, first=0, count=64)
    if p is not None:
        same = torch.ones(8, 3, requires_grad=True)
        mean_log_sum_exp(same, same.detach(), None, ONE, p=p, first=0, count=8).backward()
        assert same.grad is not None
        assert torch.equal(same.grad, torch.zeros(8, 3))


def test_many_keys() -> None:
    check(normal(16, 3), normal(32768, 3, seed=1), None, ONE, p=1, first=0, count=32768)


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.usefixtures("two_threads")
def test_threads_share_the_work_and_the_bits_repeat(p: float | None) -> None:
    codes = normal(403, 10)
    how = {"p": p, "first": 1, "count": 402}
    check(codes, codes, None, ONE, **how)
    inputs = (codes, normal(403, 10, seed=1), normal(403), ONE, normal(403, seed=2))
    check(*inputs, **how)
    once = value_and_gradients(mean_log_sum_exp, torch.float32, inputs, how)
    for _ in range(3):
        again = value_and_gradients(mean_log_sum_exp, torch.float32, inputs, how)
        assert all(torch.equal(x, y) for x, y in zip(once, again, strict=True))


@pytest.mark.usefixtures("two_threads")
def test_callers_in_many_threads_do_not_disturb_each_other() -> None:
    batches = [normal(300, 5, seed=seed) for seed in range(8)]

    def value(codes: Tensor) -> float:
        return mean_log_sum_exp(codes, codes, None, ONE, p=1, first=0, count=300).item()

    alone = [value(codes) for codes in batches]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(value, batches * 5)) == alone * 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.usefixtures("two_threads")
def test_works_in_a_forked_child() -> None:
    codes = normal(300, 5)
    expected = mean_log_sum_exp(codes, codes, None, ONE, p=1, first=0, count=300)
    child = os.fork()
    if child == 0:
        try:
            value = mean_log_sum_exp(codes, codes, None, ONE, p=1, first=0, count=300)
            os._exit(0 if torch.equal(value, expected) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_value_alone_is_the_same_and_only_wanted_gradients_come() -> None:
    queries, keys = normal(20, 4).requires_grad_(), normal(20, 4, seed=1)
    how: Any = {"p": 2, "first": 0, "count": 20}
    value = mean_log_sum_exp(queries, keys, None, ONE, **how)
    with torch.no_grad():
        alone = mean_log_sum_exp(queries, keys, None, ONE, **how)
    assert not alone.requires_grad
    assert torch.equal(value, alone)
    (three,) = torch.autograd.grad(3 * value, queries, retain_graph=True)
    (one,) = torch.autograd.grad(value, queries, retain_graph=True)
    torch.testing.assert_close(three, 3 * one)
    with pytest.raises(RuntimeError, match="no second derivatives"):
        torch.autograd.grad(value, queries, create_graph=True)


def test_layout_of_the_inputs_does_not_matter() -> None:
    queries, keys = normal(4, 20), normal(40, 8, seed=1)
    how: Any = {"p": 1, "first": 0, "count": 20}
    strided = mean_log_sum_exp(queries.T, keys[::2, ::2], None, ONE, **how)
    packed = mean_log_sum_exp(queries.T.clone(), keys[::2, ::2].clone(), None, ONE, **how)
    assert torch.equal(strided, packed)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("where", [0, 1, 2, 4])
def test_what_is_not_finite_gives_nan(bad: float, where: int) -> None:
    inputs = [normal(8, 2), normal(8, 2), normal(8), ONE.clone(), normal(8)]
    inputs[where].view(-1)[3] = bad
    inputs = [x.requires_grad_() for x in inputs]
    value = mean_log_sum_exp(*inputs, p=1, first=0, count=8)
    value.backward()
    assert value.isnan()
    assert all(x.grad is not None and x.grad.isnan().all() for x in inputs)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"queries": normal(8, 2).double()}, "queries"),
        ({"biases": normal(8).double()}, "biases"),
        ({"scale": torch.tensor(0.0)}, "scale"),
        ({"scale": torch.tensor(torch.nan)}, "scale"),
    ],
)
def test_bad_input_is_named(change: dict[str, Any], name: str) -> None:
    good: dict[str, Any] = {"queries": normal(8, 2), "keys": normal(8, 2), "positives": normal(8)}
    good |= {"scale": ONE, "p": 1, "first": 0, "count": 8}
    with pytest.raises(InputError, match=f"^{name} must"):
        mean_log_sum_exp(**(good | change))


@pytest.mark.parametrize(
    ("learns", "enabled", "asked"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_gradients_are_computed_where_somebody_asks(monkeypatch, learns, enabled, asked):
    evaluate, seen = _fused._evaluate, []

    def watched(*arguments: Any, gradient: bool) -> tuple[Any, ...]:
        seen.append(gradient)
        return evaluate(*arguments, gradient=gradient)

    monkeypatch.setattr(_fused, "_evaluate", watched)
    h = torch.randn(9, 2, generator=torch.Generator().manual_seed(0)).requires_grad_(learns)
    with torch.set_grad_enabled(enabled):
        mean_log_sum_exp(h, h, None, ONE, p=2, first=1, count=8)
    assert seen == [asked]
