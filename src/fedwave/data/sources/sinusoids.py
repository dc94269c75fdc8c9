"""A federation of sine waves: the regression benchmark of meta-learning, one wave a device.

C. Finn, P. Abbeel and S. Levine, "Model-Agnostic Meta-Learning for Fast Adaptation of Deep Networks", ICML
2017 (arXiv:1703.03400), Section 5.1. One function for all devices can do no better than their mean,
1.6 cos x, which is right for hardly anyone; a model made to adapt learns a device's wave from a few points.
"""

from __future__ import annotations

import numpy as np

from fedwave.data.dataset import ONE_CLASS, Dataset
from fedwave.data.sources.load_request import LoadRequest
from fedwave.errors import require_count
from fedwave.ram import require_memory
from fedwave.rng import Stream, generator

# The ranges of Section 5.1 of the paper.
AMPLITUDES = (0.1, 5.0)
PHASES = (0.0, np.pi)
INPUTS = (-5.0, 5.0)
# Stream.SYNTHETIC_DATA without an index draws the patterns of synthetic.py.
STREAM_INDEX = 1


def load_sinusoids(request: LoadRequest, *, num_devices: int = 100, samples_per_device: int = 20) -> Dataset:
    """Return points of ``num_devices`` waves y = A sin(x + phi), each with an amplitude and phase of its own.

    A ~ U(0.1, 5), phi ~ U(0, pi) and x ~ U(-5, 5). The samples of one device follow one another. The paper
    gives no formula and its code subtracts phi, which turns every wave about the origin: the same benchmark.
    """
    require_count("num_devices", num_devices, at_least=1)
    require_count("samples_per_device", samples_per_device, at_least=2)  # one support and one query sample
    require_memory(
        40 * num_devices * samples_per_device,  # inputs, targets, labels and owners, while they are drawn
        what=f"{num_devices:,} waves of {samples_per_device:,} points",
        fix="Use fewer num_devices or samples_per_device.",
    )
    rng = generator(request.seed, Stream.SYNTHETIC_DATA, STREAM_INDEX)
    amplitude = rng.uniform(*AMPLITUDES, size=(num_devices, 1))
    phase = rng.uniform(*PHASES, size=(num_devices, 1))
    inputs = rng.uniform(*INPUTS, size=(num_devices, samples_per_device)).astype(np.float32)
    targets = amplitude * np.sin(inputs + phase)  # in float64, of the inputs as they are stored
    num_samples = num_devices * samples_per_device
    return Dataset(
        name="sinusoids",
        inputs=inputs.reshape(num_samples, 1),
        labels=np.zeros(num_samples, dtype=np.int64),
        num_classes=1,
        class_names=(ONE_CLASS,),
        source=f"drawn from seed {request.seed} ({num_devices:,} waves of {samples_per_device:,} points)",
        targets=targets.astype(np.float32).reshape(num_samples, 1),
        device_of_sample=np.repeat(np.arange(num_devices, dtype=np.int64), samples_per_device),
    )
