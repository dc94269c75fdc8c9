"""The meta-gradient against central differences, the closed form on quadratics, and itself."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fedwave.errors import ConfigError
from fedwave.learning import Batch, build_model, meta_gradient
from fedwave.learning.meta_gradient import GRADIENT_KINDS
from fedwave.learning.parameters import norm
from fedwave.learning.tasks import Classification
from tests.learning.stacks import SMALL

ALPHA = 0.05
cross_entropy = Classification().loss
Params = dict[str, Tensor]


def quadratic(params: Params, batch: tuple[Tensor, Tensor]) -> Tensor:
    """f(w) = w'Aw/2 - b'w, with w split over two named tensors."""
    matrix, vector = batch
    w = torch.cat([params["first"], params["second"].flatten()])
    return 0.5 * w @ matrix @ w - vector @ w


def random_quadratic(generator: torch.Generator, size: int = 5) -> tuple[Tensor, Tensor]:
    root = torch.randn(size, size, generator=generator, dtype=torch.float64)
    return root + root.T, torch.randn(size, generator=generator, dtype=torch.float64)


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(7)


@pytest.fixture
def weights(generator: torch.Generator) -> Params:
    return {
        "first": torch.randn(1, generator=generator, dtype=torch.float64),
        "second": torch.randn(2, 2, generator=generator, dtype=torch.float64),
    }


def flat(params: Params) -> Tensor:
    return torch.cat([value.flatten() for value in params.values()])


@pytest.mark.parametrize("method", ["exact", "hessian-free"])
@pytest.mark.parametrize("has_own_hessian_batch", [False, True])
def test_equals_the_closed_form_on_quadratics(
    method: str, has_own_hessian_batch: bool, weights: Params, generator: torch.Generator
) -> None:
    support, query, other = (random_quadratic(generator) for _ in range(3))
    hessian_batch = other if has_own_hessian_batch else None
    got = meta_gradient(
        quadratic, weights, support, query, inner_lr=ALPHA, method=method, hessian_batch=hessian_batch
    )
    w = flat(weights)
    adapted = w - ALPHA * (support[0] @ w - support[1])
    outer = query[0] @ adapted - query[1]
    hessian = (hessian_batch or support)[0]
    expected = outer - ALPHA * hessian @ outer
    # Central differences are exact on quadratics but for rounding: about eps^(1/3) = 6e-6 of the product.
    tolerance = 1e-12 if method == "exact" else 6e-6 * ALPHA * float((hessian @ outer).norm())
    torch.testing.assert_close(flat(got), expected, rtol=1e-12, atol=tolerance)
    assert [value.shape for value in got.values()] == [value.shape for value in weights.values()]


def test_first_order_drops_the_hessian_term(weights: Params, generator: torch.Generator) -> None:
    support, query = random_quadratic(generator), random_quadratic(generator)
    got = meta_gradient(quadratic, weights, support, query, inner_lr=ALPHA, method="first-order")
    w = flat(weights)
    adapted = w - ALPHA * (support[0] @ w - support[1])
    torch.testing.assert_close(flat(got), query[0] @ adapted - query[1])


@pytest.mark.parametrize("kind", ["cnn", "mlp", "softmax"])
def test_exact_equals_central_differences_of_the_adapted_loss_in_float64(
    kind: str, generator: torch.Generator
) -> None:
    import numpy as np

    model = build_model(kind, (2, 6, 5), 3, **SMALL[kind])
    start = model.initial_parameters(np.random.default_rng(0))
    params = {name: value.double() for name, value in start.items()}

    def batch(samples: int) -> Batch:
        return Batch(
            torch.randn(1, samples, 2, 6, 5, generator=generator, dtype=torch.float64),
            torch.randint(0, 3, (1, samples), generator=generator),
            torch.full((1, samples), 1.0 / samples, dtype=torch.float64),
        )

    def loss(own: Params, data: Batch) -> Tensor:
        return cross_entropy(model.outputs({k: v[None] for k, v in own.items()}, data.inputs), data).sum()

    support, query = batch(2), batch(4)
    got = meta_gradient(loss, params, support, query, inner_lr=ALPHA)

    def adapted_loss(own: Params) -> float:
        leaves = {k: v.clone().requires_grad_() for k, v in own.items()}
        inner = torch.autograd.grad(loss(leaves, support), list(leaves.values()))
        moved = {k: v - ALPHA * g for (k, v), g in zip(leaves.items(), inner, strict=True)}
        return float(loss(moved, query).detach())

    step = 1e-5
    picks = np.random.default_rng(1)
    for name, value in params.items():
        for index in picks.choice(value.numel(), size=min(6, value.numel()), replace=False):
            shift = torch.zeros_like(value)
            shift.view(-1)[index] = step
            ahead = adapted_loss({**params, name: value + shift})
            behind = adapted_loss({**params, name: value - shift})
            numeric = (ahead - behind) / (2 * step)
            assert float(got[name].view(-1)[index]) == pytest.approx(numeric, rel=1e-6, abs=1e-9)


def test_hessian_free_agrees_with_exact_on_a_smooth_model_in_float32_and_float64(
    generator: torch.Generator,
) -> None:
    import numpy as np

    model = build_model("softmax", (6,), 3)
    for dtype, tolerance in ((torch.float32, 5e-3), (torch.float64, 6e-6)):
        params = {k: v.to(dtype) for k, v in model.initial_parameters(np.random.default_rng(3)).items()}
        data = Batch(
            torch.randn(1, 4, 6, generator=generator).to(dtype),
            torch.tensor([[0, 1, 2, 0]]),
            torch.full((1, 4), 0.25, dtype=dtype),
        )

        def loss(own: Params, batch: Batch) -> Tensor:
            return cross_entropy(
                model.outputs({k: v[None] for k, v in own.items()}, batch.inputs), batch
            ).sum()

        exact = flat(meta_gradient(loss, params, data, data, inner_lr=0.5))
        approximate = flat(meta_gradient(loss, params, data, data, inner_lr=0.5, method="hessian-free"))
        first = flat(meta_gradient(loss, params, data, data, inner_lr=0.5, method="first-order"))
        assert float((approximate - exact).norm() / exact.norm()) < tolerance
        assert float((first - exact).norm() / exact.norm()) > 10 * tolerance  # the Hessian term matters here


@pytest.mark.parametrize("method", GRADIENT_KINDS)
def test_a_stack_of_devices_gives_each_device_its_own_meta_gradient(
    method: str, generator: torch.Generator
) -> None:
    batches = [(random_quadratic(generator), random_quadratic(generator)) for _ in range(3)]
    each = [
        {
            # Very different sizes: one common step of the finite difference would not fit them all.
            "first": 10.0**scale * torch.randn(1, generator=generator, dtype=torch.float64),
            "second": 10.0**scale * torch.randn(2, 2, generator=generator, dtype=torch.float64),
        }
        for scale in (0, 3, -2)
    ]
    alone = [
        meta_gradient(quadratic, params, support, query, inner_lr=ALPHA, method=method)
        for params, (support, query) in zip(each, batches, strict=True)
    ]

    def stacked_loss(params: Params, data: list[tuple[Tensor, Tensor]]) -> Tensor:
        return torch.stack([quadratic({k: v[i] for k, v in params.items()}, d) for i, d in enumerate(data)])

    stacked = {name: torch.stack([params[name] for params in each]) for name in each[0]}
    together = meta_gradient(
        stacked_loss, stacked, [b[0] for b in batches], [b[1] for b in batches], inner_lr=ALPHA, method=method
    )
    for index, expected in enumerate(alone):
        for name, value in expected.items():
            torch.testing.assert_close(together[name][index], value, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("kind", "options"), [("cnn", {"channels": (8, 16)}), ("mlp", {"hidden": (32,)})])
def test_hessian_free_is_close_to_exact_on_networks_with_kinks_for_nearly_every_device(
    kind: str, options: dict[str, tuple[int, ...]]
) -> None:
    import numpy as np

    model = build_model(kind, (1, 8, 8), 10, **options)
    params = model.initial_parameters(np.random.default_rng(0))
    generator = torch.Generator().manual_seed(1)

    def loss(own: Params, batch: Batch) -> Tensor:
        return cross_entropy(model.outputs(own, batch.inputs), batch)

    def batch(samples: int) -> Batch:
        return Batch(
            torch.randn(20, samples, 1, 8, 8, generator=generator),
            torch.randint(0, 10, (20, samples), generator=generator),
            torch.full((20, samples), 1.0 / samples),
        )

    stacked = {name: value.expand(20, *value.shape) for name, value in params.items()}
    support, query = batch(2), batch(8)
    results = {
        method: meta_gradient(loss, stacked, support, query, inner_lr=0.05, method=method)
        for method in GRADIENT_KINDS
    }

    def distance(one: str, other: str) -> Tensor:
        return norm({k: v - results[other][k] for k, v in results[one].items()}, is_stacked=True)

    relative = distance("hessian-free", "exact") / distance("first-order", "exact")
    assert float(relative.median()) < 0.02
    assert float((relative < 0.1).float().mean()) >= 0.9


def test_a_parameter_the_loss_ignores_has_gradient_zero(generator: torch.Generator) -> None:
    params = {"used": torch.ones(2, dtype=torch.float64), "unused": torch.ones(3, dtype=torch.float64)}
    for method in GRADIENT_KINDS:
        got = meta_gradient(
            lambda own, scale: scale * own["used"].square().sum(),
            params,
            1.0,
            2.0,
            inner_lr=0.1,
            method=method,
        )
        assert torch.equal(got["unused"], torch.zeros(3, dtype=torch.float64))


def test_a_linear_loss_has_no_hessian_term() -> None:
    params = {"w": torch.tensor([1.0, 2.0], dtype=torch.float64)}
    slope = torch.tensor([3.0, -1.0], dtype=torch.float64)
    got = meta_gradient(lambda own, batch: (own["w"] * batch).sum(), params, slope, 2 * slope, inner_lr=0.1)
    assert torch.equal(got["w"], 2 * slope)


def test_inputs_are_not_modified(weights: Params, generator: torch.Generator) -> None:
    before = {name: value.clone() for name, value in weights.items()}
    batch = random_quadratic(generator)
    for method in GRADIENT_KINDS:
        meta_gradient(quadratic, weights, batch, batch, inner_lr=ALPHA, method=method)
    assert all(torch.equal(weights[name], before[name]) for name in before)
    assert not any(value.requires_grad for value in weights.values())


def test_an_unknown_method_is_refused_with_the_nearest_name(
    weights: Params, generator: torch.Generator
) -> None:
    batch = random_quadratic(generator)
    with pytest.raises(ConfigError, match='got "exakt". Did you mean "exact"'):
        meta_gradient(quadratic, weights, batch, batch, inner_lr=ALPHA, method="exakt")
