"""Losses in the hands of torch: compiled, transformed, in half precision, on other devices."""

from functools import partial

import numpy as np
import pytest
import torch
from torch.func import functional_call, grad, vmap

from helpers.brute_force import FAMILIES, brute_force
from identica import AlignUniform, InfoNCE, Laplace, Normal, VonMisesFisher
from identica.losses._fused import mean_log_sum_exp, opaque

HALF = [torch.bfloat16, torch.float16]


def codes(n=12, dtype=torch.float32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    h, noise = torch.randn(2, n, 3, generator=generator)
    return h.to(dtype), (h + 0.3 * noise).to(dtype)


def exactly(h, h_pos, family):
    """By loops over plain floats, from the values that half precision has left."""
    return brute_force(h.double(), h_pos.double(), family, 0.7, False, None, True, False)


@pytest.mark.parametrize("family", FAMILIES, ids=str)
@pytest.mark.parametrize("dtype", HALF, ids=str)
def test_codes_of_half_precision_lose_nothing_in_the_loss(family, dtype):
    h, h_pos = codes(dtype=dtype)
    value = InfoNCE(family, 0.7)(h, h_pos)
    assert value.dtype == torch.float32
    assert value.item() == pytest.approx(exactly(h, h_pos, family), rel=1e-5)


def test_alignment_and_uniformity_in_half_precision():
    h, h_pos = codes(dtype=torch.bfloat16)
    value, wide = AlignUniform()(h, h_pos), AlignUniform()(h.double(), h_pos.double())
    assert value.dtype == torch.float32
    assert value.item() == pytest.approx(wide.item(), rel=1e-5)


@pytest.mark.parametrize("family", [Laplace(0.7), VonMisesFisher(2.0)], ids=str)
@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_autocast_leaves_the_loss_alone(family, kind):
    h, h_pos = codes(dtype=kind)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = InfoNCE(family, 0.7)(h, h_pos)
    assert value.dtype == kind
    assert torch.equal(value, InfoNCE(family, 0.7)(h, h_pos))


def test_gradients_come_back_in_half_precision():
    h, h_pos = codes(dtype=torch.bfloat16)
    InfoNCE(Normal(1.0))(h.requires_grad_(), h_pos).backward()
    wide = h.detach().float().requires_grad_()
    InfoNCE(Normal(1.0))(wide, h_pos.float()).backward()
    assert h.grad.dtype == torch.bfloat16
    assert torch.equal(h.grad, wide.grad.bfloat16())


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_a_transform_of_torch_func_sees_plain_torch(family):
    loss = InfoNCE(family, 0.7)
    batches = [codes(seed=seed) for seed in (1, 2)]
    h, h_pos = (torch.stack(part) for part in zip(*batches, strict=True))
    values = vmap(loss)(h, h_pos)
    expected = [exactly(*batch, family) for batch in batches]
    assert values.tolist() == pytest.approx(expected, rel=1e-5)
    slopes = vmap(grad(loss))(h, h_pos)
    for found, (one, positive) in zip(slopes, batches, strict=True):
        wide = one.double().requires_grad_()
        loss(wide, positive.double()).backward()
        assert np.allclose(found, wide.grad, atol=1e-5)


def test_a_transform_does_not_look_at_values_in_evaluation():
    h, h_pos = codes()
    loss = InfoNCE(Laplace(1.0)).eval()
    assert vmap(loss)(h[None], h_pos[None]).item() == pytest.approx(loss(h, h_pos).item())


def test_the_slope_of_a_learnt_temperature_by_torch_func():
    h, h_pos = codes()
    loss = InfoNCE(Normal(1.0), 0.7, learn_tau=True)

    def value(parameters):
        return functional_call(loss, parameters, (h, h_pos))

    slope = grad(value)({"log_tau": loss.log_tau.detach()})["log_tau"]
    loss(h, h_pos).backward()
    assert slope.item() == pytest.approx(loss.log_tau.grad.item(), rel=1e-5)


@pytest.mark.parametrize("family", [Laplace(0.7), VonMisesFisher(2.0)], ids=str)
@pytest.mark.filterwarnings("default")  # of torch's compiler about itself
def test_the_loss_can_be_compiled_as_a_whole(family):
    """Without a C++ compiler: the graph is what matters here, not the code that is made of it."""
    loss = InfoNCE(family, 0.7)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    for batch in (12, 15, 20):  # sizes are symbols from the second on
        found = []
        for function in (compiled, loss):
            h, h_pos = codes(batch)
            value = function(h.requires_grad_(), h_pos)
            value.backward()
            found.append((value.item(), h.grad))
        assert found[0][0] == pytest.approx(found[1][0], rel=1e-5)
        assert np.allclose(found[0][1], found[1][1], atol=1e-6)


@pytest.mark.parametrize("p", [None, 1.0, 2.5])
@pytest.mark.parametrize("beside", [True, False])
@pytest.mark.filterwarnings("default")
def test_the_kernel_is_an_operator_as_torch_wants_it(p, beside):
    """By torch's own checks: schema, shapes and strides without values, gradients."""
    h, keys = (x.requires_grad_() for x in codes())
    more = torch.linspace(-1, 1, 12) if beside else None
    scale = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
    torch.library.opcheck(opaque, (h, keys.T.contiguous().T, more, scale, more, p, 1, 7))


def test_the_operator_has_the_gradients_of_the_kernel():
    found = []
    for kernel in (
        lambda *x: opaque(*x, 1.0, 1, 7)[0],
        partial(mean_log_sum_exp, p=1.0, first=1, count=7),
    ):
        h, keys = codes()
        more = torch.linspace(-1, 1, 12)
        tensors = h, keys, more, torch.tensor(1.5), more.clone()
        for tensor in tensors:
            tensor.requires_grad_()
        kernel(*tensors).backward()
        found.append([tensor.grad for tensor in tensors])
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


def without_doubles(tensor):
    """What moving a tensor to an Apple GPU does, on the CPU."""
    if tensor.dtype == torch.float64:
        raise TypeError("Cannot convert a MPS Tensor to float64 dtype")
    return tensor.clone()


@pytest.mark.parametrize("options", [{}, {"learn_tau": True}, {"anneal": (0.1, 5)}], ids=str)
def test_a_device_without_doubles_takes_the_loss(options):
    h, h_pos = codes()
    loss, moved = (InfoNCE(Normal(1.0), 0.7, **options) for _ in range(2))
    moved._apply(without_doubles)
    assert {tensor.dtype for tensor in moved.parameters()} == {torch.float32}
    assert moved.log_tau.requires_grad == loss.log_tau.requires_grad
    assert moved(h, h_pos).item() == pytest.approx(loss(h, h_pos).item(), rel=1e-5)
