"""The constants of the paper's assumptions, estimated on some devices at one model.

They are local: measured at one model (and beside it) on a few devices, so that each is a lower bound of the
supremum that the assumption means, up to the sampling error of the two noises. docs/theory.md says what
devices would have to send for each.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedwave.devices.pool import DevicePool
from fedwave.devices.work import as_float64
from fedwave.errors import ProblemError, require_count
from fedwave.learning import Batch, Model, Parameters, Task
from fedwave.learning.objective import Loss, objective
from fedwave.learning.one_core import one_core
from fedwave.learning.parameters import stack_copies
from fedwave.theory.constants import Constants
from fedwave.theory.curvature import StackedHessian, from_rows, spectral_norms
from fedwave.units import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much an estimate takes."""

    num_devices: int = 10  # on which it is made, drawn at random
    num_iterations: int = 10  # of Lanczos for L; differences of Hessians start where it ended, and take half
    num_probes: int = 4  # random vectors of Hutchinson's estimator, for sigma_H

    def __post_init__(self) -> None:
        require_count("num_devices", self.num_devices, at_least=2)
        require_count("num_iterations", self.num_iterations, at_least=1)
        require_count("num_probes", self.num_probes, at_least=1)


@dataclass(frozen=True, kw_only=True, eq=False)
class LocalEstimates:
    """What was measured on each device, or pair of devices, and what it took."""

    device_index: IntArray
    local_smoothness: FloatArray  # (m,), spectral norm of each device's Hessian, from below
    local_gradient_norm: FloatArray  # (m,)
    local_hessian_lipschitz: FloatArray  # (m,), of the Hessian along the step, from below
    local_gradient_noise: FloatArray  # (m,), root of the variance of a sample's gradient
    local_hessian_noise: FloatArray  # (m,), the same of a sample's Hessian, Frobenius norm
    local_gradient_dissimilarity: FloatArray  # of all pairs
    local_hessian_dissimilarity: FloatArray  # (m,), of each device and the next, from below
    num_gradients: int  # gradients of one sample
    num_products: int  # products of one sample's Hessian with a vector
    seconds: float

    def constants(self) -> Constants:
        """Return the largest of each."""
        return self._summed_up(np.max)

    def medians(self) -> Constants:
        """Return the median of each: how far the largest stands out."""
        return self._summed_up(np.median)

    def _summed_up(self, by: Callable[[FloatArray], Any]) -> Constants:
        return Constants(
            smoothness=float(by(self.local_smoothness)),
            gradient_bound=float(by(self.local_gradient_norm)),
            hessian_lipschitz=float(by(self.local_hessian_lipschitz)),
            gradient_noise=float(by(self.local_gradient_noise)),
            hessian_noise=float(by(self.local_hessian_noise)),
            gradient_dissimilarity=float(by(self.local_gradient_dissimilarity)),
            hessian_dissimilarity=float(by(self.local_hessian_dissimilarity)),
        )


def estimate_constants(
    model: Model,
    task: Task,
    pool: DevicePool,
    parameters: Parameters,
    *,
    step_length: float,
    effort: Effort,
    rng: np.random.Generator,
    among: IntArray | None = None,
    chunk_samples: int = 128,
) -> LocalEstimates:
    """Return the constants of Assumptions 1 to 4 at a model, of devices drawn from ``among`` (all).

    f_i is the loss on all samples of a device. ``step_length`` times the mean gradient is the way along which
    the Hessian's change is measured: beta, for the way of a round. One core computes, so that bits repeat.
    """
    start_s = time.perf_counter()
    everybody = np.arange(len(pool), dtype=np.int64) if among is None else among
    if len(everybody) < 2:
        raise ProblemError(
            f"two devices are needed to see how far devices differ, got {len(everybody)}. Use more devices."
        )
    count = min(effort.num_devices, len(everybody))
    chosen = np.sort(rng.choice(everybody, count, replace=False)).astype(np.int64)
    chunks = pool.chunks(chosen, max_samples=chunk_samples)
    order = np.concatenate(chunks)  # of the stack; every result below has it
    loss = objective(model, task)
    with one_core():
        whole = [pool.everything(chunk) for chunk in chunks]
        here = StackedHessian(loss, parameters, whole)
        size = here.gradient.shape[1]
        start = torch.from_numpy(rng.standard_normal((count, size), dtype=np.float32)).to(here.gradient)
        smoothness, shown, image = spectral_norms(here.product, start, num_iterations=effort.num_iterations)

        before, after = (torch.arange(count) + turn for turn in (-1, 1))

        def of_next(vectors: Tensor) -> Tensor:
            """Return H_{i+1} v_i: every Hessian meets the vector before its own."""
            return here.product(vectors[before])[after % count]

        half = max(effort.num_iterations // 2, 1)
        hessians, *_ = spectral_norms(
            lambda vectors: here.product(vectors) - of_next(vectors),
            shown,
            num_iterations=half,
            first_image=image - of_next(shown),
        )
        way = step_length * here.gradient.mean(0, keepdim=True)
        there = {
            name: value - part[0]
            for (name, value), part in zip(
                parameters.items(), from_rows(way, stack_copies(parameters, 1)).values(), strict=True
            )
        }
        beyond = StackedHessian(loss, there, whole)
        changes, *_ = spectral_norms(
            lambda vectors: beyond.product(vectors) - here.product(vectors),
            shown,
            num_iterations=half,
            first_image=beyond.product(shown) - image,
        )
        length = float(torch.linalg.vector_norm(way.double()))
        gradient_noise, hessian_noise = _noises(loss, parameters, pool, chunks, effort.num_probes, rng)
    gradients = as_float64(here.gradient)
    first, second = np.triu_indices(count, 1)
    at = np.argsort(order, kind="stable")
    samples = int(pool.num_samples[chosen].sum())
    return LocalEstimates(
        device_index=order[at],
        local_smoothness=as_float64(smoothness)[at],
        local_gradient_norm=np.linalg.norm(gradients, axis=1)[at],
        local_hessian_lipschitz=as_float64(changes)[at] / (length if length > 0 else 1.0),
        local_gradient_noise=gradient_noise[at],
        local_hessian_noise=hessian_noise[at],
        local_gradient_dissimilarity=np.linalg.norm(gradients[first] - gradients[second], axis=1),
        local_hessian_dissimilarity=as_float64(hessians)[at],
        num_gradients=3 * samples,  # of all samples together here and there, and of each alone
        num_products=samples * (effort.num_iterations + 4 * half - 2 + effort.num_probes),
        seconds=time.perf_counter() - start_s,
    )


def _noises(
    loss: Loss,
    parameters: Parameters,
    pool: DevicePool,
    chunks: Sequence[IntArray],
    num_probes: int,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Return the standard deviations of a sample's gradient and Hessian (Frobenius norm) on each device.

    Every sample is a device of its own in the stack. E ||A v||^2 = ||A||_F^2 for a vector v of random signs:
    Hutchinson's estimator, of the mean over devices' samples.
    """
    of_gradient, of_hessian = [], []
    for chunk in chunks:
        counts = pool.num_samples[chunk]
        alone = StackedHessian(loss, parameters, [_sample_by_sample(pool.everything(chunk), counts)])
        total, size = alone.gradient.shape
        of_gradient.append(_variance(alone.gradient, counts))
        squares = np.zeros(len(chunk))
        for _ in range(num_probes):
            signs = rng.integers(0, 2, size, dtype=np.int8) * np.int8(2) - np.int8(1)
            vectors = torch.from_numpy(signs).to(alone.gradient).expand(total, size)
            squares += _variance(alone.product(vectors), counts)
        of_hessian.append(squares / num_probes)
    return np.sqrt(np.concatenate(of_gradient)), np.sqrt(np.concatenate(of_hessian))


def _sample_by_sample(batch: Batch, counts: IntArray) -> Batch:
    """Return the samples of a stack of devices as devices with one sample each, padding left out."""
    rows = [(device, sample) for device, count in enumerate(counts) for sample in range(int(count))]
    devices, samples = (torch.tensor(column) for column in zip(*rows, strict=True))
    inputs, targets = batch.inputs[devices, samples, None], batch.targets[devices, samples, None]
    return Batch(inputs, targets, torch.ones_like(batch.weights[devices, samples, None]))


def _variance(vectors: Tensor, counts: IntArray) -> FloatArray:
    """Return the unbiased variance of each device's vectors, summed over their numbers; 0 of a single one."""
    found = []
    for own in torch.split(vectors.double(), counts.tolist()):
        spread = ((own - own.mean(0)) ** 2).sum()
        found.append(float(spread) / max(len(own) - 1, 1))
    return np.array(found)


def noise_from_two_batches(
    small_norm: float, large_norm: float, *, small_size: int, large_size: int
) -> float:
    """Return sigma_G from mean squared gradient norms on two batch sizes: what two numbers a device tell.

    E ||g_b||^2 = ||grad f||^2 + sigma_G^2 / b, at two sizes: the noise scale of McCandlish et al., arXiv
    1812.06162, App. A. The arguments are roots of mean squares; by chance the difference may be negative: 0.
    """
    if not 0 < small_size < large_size:
        raise ProblemError(
            f"two batch sizes are needed, the smaller first, got {small_size} and {large_size}. Swap them."
        )
    excess = (small_norm**2 - large_norm**2) / (1.0 / small_size - 1.0 / large_size)
    return float(np.sqrt(max(excess, 0.0)))
