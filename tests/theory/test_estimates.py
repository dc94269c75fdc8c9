"""Estimates against problems with known constants: quadratics, and softmax regression on a bounded domain."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
import torch

from fedwave.devices import DevicePool
from fedwave.errors import ConfigError, ProblemError
from fedwave.learning import Model, Parameters, build_model
from fedwave.learning.objective import objective
from fedwave.learning.tasks import Classification, Regression
from fedwave.theory.constants import Constants
from fedwave.theory.estimates import (
    Effort,
    LocalEstimates,
    estimate_constants,
    noise_from_two_batches,
)
from fedwave.units import FloatArray
from tests.devices.pools import EVERYONE, NUM_DEVICES, small_pool
from tests.theory.test_curvature import dense_hessians

# Everybody, and as many products as the models have parameters: nothing is left out but random probes.
WHOLE = Effort(num_devices=NUM_DEVICES, num_iterations=120, num_probes=400)
STEP = 0.05


def model_of(pool: DevicePool, kind: str = "softmax") -> tuple[Model, Parameters]:
    model = build_model(kind, pool.dataset.input_shape, pool.dataset.num_outputs)
    return model, model.initial_parameters(np.random.default_rng(3))


def estimated(pool: DevicePool, *, task: object, effort: Effort = WHOLE, seed: int = 0) -> LocalEstimates:
    model, parameters = model_of(pool)
    return estimate_constants(
        model,
        task,
        pool,
        parameters,
        step_length=STEP,
        effort=effort,
        rng=np.random.default_rng(seed),
        chunk_samples=24,
    )


class LinearRegression:
    """Two outputs linear in 17 inputs (the last is 1), squared error: every constant by numpy, in float64."""

    def __init__(self, pool: DevicePool) -> None:
        _, parameters = model_of(pool)
        weight = np.vstack([parameters["linear1.weight"].numpy(), parameters["linear1.bias"].numpy()])
        self.curvatures: list[FloatArray] = []
        self.gradients: list[FloatArray] = []
        self.gradient_noise: list[float] = []
        self.hessian_noise: list[float] = []
        for at in EVERYONE:
            batch = pool.everything(np.array([at]))
            inputs = batch.inputs[0].flatten(1).double().numpy()
            inputs = np.hstack([inputs, np.ones((len(inputs), 1))])
            errors = inputs @ weight.astype(np.float64) - batch.targets[0].double().numpy()
            # The loss of a sample is the mean of two squared errors: gradient x e', Hessian x x' for each.
            samples = inputs[:, :, None] * errors[:, None, :]
            squares = inputs[:, :, None] * inputs[:, None, :]
            self.gradients.append(samples.mean(0).ravel())
            self.curvatures.append(squares.mean(0))
            spread = samples - samples.mean(0)
            self.gradient_noise.append(float(np.sqrt((spread**2).sum() / (len(inputs) - 1))))
            # The Hessian has this block once for each of the two outputs.
            spread = squares - squares.mean(0)
            self.hessian_noise.append(float(np.sqrt(2 * (spread**2).sum() / (len(inputs) - 1))))


def test_quadratics_give_their_constants() -> None:
    pool = small_pool(task="regression")
    known, found = LinearRegression(pool), estimated(pool, task=Regression())
    assert found.device_index.tolist() == EVERYONE.tolist()
    np.testing.assert_allclose(
        found.local_smoothness, [np.linalg.norm(one, 2) for one in known.curvatures], rtol=1e-5
    )
    np.testing.assert_allclose(found.local_gradient_norm, np.linalg.norm(known.gradients, axis=1), rtol=1e-5)
    pairs = itertools.combinations(known.gradients, 2)
    np.testing.assert_allclose(
        np.sort(found.local_gradient_dissimilarity),
        np.sort([np.linalg.norm(one - other) for one, other in pairs]),
        rtol=1e-5,
    )
    np.testing.assert_allclose(found.local_gradient_noise, known.gradient_noise, rtol=1e-5)
    # A probe's squared length has a relative error of at most sqrt(2); 400 of them, and a root: 3.5 %.
    np.testing.assert_allclose(found.local_hessian_noise, known.hessian_noise, rtol=0.1)
    np.testing.assert_allclose(found.local_hessian_lipschitz, 0.0, atol=2e-3)  # of rounding alone
    constants = found.constants()
    assert constants.smoothness == found.local_smoothness.max()
    assert constants.gradient_bound == found.local_gradient_norm.max()
    assert constants.hessian_lipschitz == found.local_hessian_lipschitz.max()
    assert constants.gradient_noise == found.local_gradient_noise.max()
    assert constants.hessian_noise == found.local_hessian_noise.max()
    assert constants.gradient_dissimilarity == found.local_gradient_dissimilarity.max()
    assert constants.hessian_dissimilarity == found.local_hessian_dissimilarity.max()
    assert found.medians() == Constants(
        smoothness=np.median(found.local_smoothness),
        gradient_bound=np.median(found.local_gradient_norm),
        hessian_lipschitz=np.median(found.local_hessian_lipschitz),
        gradient_noise=np.median(found.local_gradient_noise),
        hessian_noise=np.median(found.local_hessian_noise),
        gradient_dissimilarity=np.median(found.local_gradient_dissimilarity),
        hessian_dissimilarity=np.median(found.local_hessian_dissimilarity),
    )


def test_differences_of_hessians_are_those_of_each_device_and_the_next_in_the_stack() -> None:
    pool = small_pool(task="regression")
    known, found = LinearRegression(pool), estimated(pool, task=Regression())
    order = np.concatenate(pool.chunks(EVERYONE, max_samples=24)).tolist()
    assert order != sorted(order)
    following = dict(zip(order, [*order[1:], order[0]], strict=True))
    expected = [np.linalg.norm(known.curvatures[i] - known.curvatures[following[i]], 2) for i in EVERYONE]
    np.testing.assert_allclose(found.local_hessian_dissimilarity, expected, rtol=1e-4)


def test_softmax_regression_stays_within_its_known_constants() -> None:
    # With ||(x, 1)|| <= R: ||grad|| <= sqrt(2) R, Hessian <= R^2 / 2, and its change <= R^3 times the change
    # of a softmax's Hessian diag(p) - p p', whose Lipschitz constant is below 1.
    pool = small_pool()
    found = estimated(pool, task=Classification())
    largest = 0.0
    for at in EVERYONE:
        inputs = pool.everything(np.array([at])).inputs[0].flatten(1)
        largest = max(largest, float((inputs.square().sum(1) + 1).sqrt().max()))
    assert 0 < found.local_smoothness.max() <= largest**2 / 2
    assert 0 < found.local_gradient_norm.max() <= np.sqrt(2) * largest
    assert 0 < found.local_hessian_lipschitz.max() <= largest**3
    assert 0 < found.local_gradient_dissimilarity.max() <= 2 * np.sqrt(2) * largest
    assert 0 < found.local_hessian_dissimilarity.max() <= largest**2


def test_softmax_regression_gives_what_dense_hessians_give() -> None:
    pool = small_pool()
    model, parameters = model_of(pool)
    found = estimated(pool, task=Classification())
    loss = objective(model, Classification())
    theta = {name: value.double() for name, value in parameters.items()}

    def dense(at: int, where: Parameters) -> FloatArray:
        return dense_hessians(loss, where, pool.everything(np.array([at])).double())[0].numpy()

    here = [dense(at, theta) for at in EVERYONE]
    np.testing.assert_allclose(found.local_smoothness, [np.linalg.norm(one, 2) for one in here], rtol=1e-4)
    gradients = []
    for at in EVERYONE:
        leaves = {name: value.clone().requires_grad_() for name, value in theta.items()}
        stacked = {name: value[None] for name, value in leaves.items()}
        value = loss(stacked, pool.everything(np.array([at])).double())[0]
        gradients.append(torch.autograd.grad(value, list(leaves.values())))
    mean = [torch.stack(parts).mean(0) for parts in zip(*gradients, strict=True)]
    there = {name: theta[name] - STEP * part for name, part in zip(theta, mean, strict=True)}
    length = STEP * np.sqrt(sum(float(part.square().sum()) for part in mean))
    changes = [np.linalg.norm(dense(at, there) - here[at], 2) / length for at in EVERYONE]
    np.testing.assert_allclose(found.local_hessian_lipschitz, changes, rtol=1e-2)


def test_less_effort_is_a_lower_bound_and_counted() -> None:
    pool = small_pool()
    whole = estimated(pool, task=Classification()).constants()
    for seed in range(5):
        start_s = time.perf_counter()
        few = estimated(
            pool, task=Classification(), effort=Effort(num_devices=3, num_iterations=2), seed=seed
        )
        assert len(few.device_index) == len(set(few.device_index.tolist())) == 3
        own = few.constants()
        # sigma_H is a random estimate, not a bound; differences of Hessians are of few pairs.
        for name in ("smoothness", "gradient_bound", "gradient_noise", "gradient_dissimilarity"):
            assert getattr(own, name) <= getattr(whole, name) * (1 + 1e-5)
        samples = int(pool.num_samples[few.device_index].sum())
        assert few.num_gradients == 3 * samples
        assert few.num_products == samples * (2 + 2 + 4)
        assert 0 < few.seconds <= time.perf_counter() - start_s


def test_one_draw_gives_the_same_bits_on_any_number_of_cores() -> None:
    pool = small_pool()
    effort = Effort(num_devices=4, num_iterations=3, num_probes=1)
    threads = torch.get_num_threads()
    found = []
    for count in (1, 2):
        torch.set_num_threads(count)
        found.append(estimated(pool, task=Classification(), effort=effort).constants())
        assert torch.get_num_threads() == count
    torch.set_num_threads(threads)
    assert found[0] == found[1]
    assert isinstance(found[0], Constants)
    assert found[0] != estimated(pool, task=Classification(), effort=effort, seed=1).constants()


def test_only_those_among_whom_it_is_asked_are_measured() -> None:
    pool = small_pool()
    model, parameters = model_of(pool)
    options = {"step_length": STEP, "effort": Effort(num_iterations=1), "rng": np.random.default_rng(0)}
    found = estimate_constants(
        model, Classification(), pool, parameters, among=np.array([1, 4, 5]), **options
    )
    assert found.device_index.tolist() == [1, 4, 5]
    with pytest.raises(ProblemError, match="two devices are needed to see how far devices differ, got 1"):
        estimate_constants(model, Classification(), pool, parameters, among=np.array([1]), **options)


def test_a_gradient_of_zero_leaves_no_way_to_go() -> None:
    pool = small_pool()
    model, parameters = model_of(pool)
    found = estimate_constants(
        model,
        Classification(),
        pool,
        parameters,
        step_length=0.0,
        effort=Effort(num_devices=2, num_iterations=1, num_probes=1),
        rng=np.random.default_rng(0),
    )
    assert found.local_hessian_lipschitz.tolist() == [0.0, 0.0]


def test_two_batch_sizes_give_the_noise_of_all_batches_there_are() -> None:
    # Four samples' gradients in the plane; all ordered pairs, and all single ones, drawn with replacement.
    samples = np.array([[1.0, 2.0], [3.0, -1.0], [0.0, 0.0], [4.0, 1.0]])
    norms = {
        size: np.sqrt(
            np.mean([np.sum(np.mean(own, axis=0) ** 2) for own in itertools.product(samples, repeat=size)])
        )
        for size in (1, 2)
    }
    noise = noise_from_two_batches(norms[1], norms[2], small_size=1, large_size=2)
    assert noise**2 == pytest.approx(samples.var(0).sum())
    assert noise_from_two_batches(1.0, 2.0, small_size=1, large_size=2) == 0.0
    with pytest.raises(ProblemError, match="the smaller first, got 2 and 2"):
        noise_from_two_batches(1.0, 1.0, small_size=2, large_size=2)


def test_an_effort_of_nothing_is_refused() -> None:
    for name, least in (("num_devices", 2), ("num_iterations", 1), ("num_probes", 1)):
        with pytest.raises(ConfigError, match=f"{name} must be a whole number >= {least}, got {least - 1}"):
            Effort(**{name: least - 1})
