from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import kstest

from fedwave.data import dataset_options, load_dataset
from fedwave.errors import ConfigError


def fitted_waves(dataset) -> tuple[np.ndarray, np.ndarray, float]:
    """Fit a sin x + b cos x to each device by least squares: amplitudes, phases, the largest residual."""
    amplitudes, phases, worst = [], [], 0.0
    for device in range(len(dataset.device_names)):
        own = dataset.device_of_sample == device
        x, y = dataset.inputs[own, 0].astype(float), dataset.targets[own, 0].astype(float)
        basis = np.stack([np.sin(x), np.cos(x)], axis=1)
        (a, b), *_ = np.linalg.lstsq(basis, y)
        worst = max(worst, float(np.abs(basis @ [a, b] - y).max()))
        amplitudes.append(np.hypot(a, b))  # A sin(x + phi) = A cos(phi) sin x + A sin(phi) cos x
        phases.append(np.arctan2(b, a))
    return np.array(amplitudes), np.array(phases), worst


def test_every_device_is_one_wave_with_amplitude_phase_and_inputs_as_in_the_paper():
    dataset = load_dataset("sinusoids", num_devices=500, samples_per_device=10)
    amplitude, phase, worst = fitted_waves(dataset)
    assert worst < 2e-6  # float32 of numbers up to 5
    for values, low, high in [(amplitude, 0.1, 5.0), (phase, 0.0, np.pi), (dataset.inputs[:, 0], -5.0, 5.0)]:
        assert low <= values.min() < values.max() <= high
        assert kstest(values.astype(float), "uniform", args=(low, high - low)).pvalue > 1e-3
    assert abs(np.corrcoef(amplitude, phase)[0, 1]) < 5 / np.sqrt(500)


def test_the_mean_of_all_waves_is_1_6_cos_x():
    dataset = load_dataset("sinusoids", num_devices=20_000, samples_per_device=2)
    x, y = dataset.inputs[:, 0].astype(float), dataset.targets[:, 0].astype(float)
    # E[A] = 2.55 and E[sin(x + phi)] = (2 / pi) cos x: regression on cos x has slope 1.623.
    slope = (y * np.cos(x)).mean() / (np.cos(x) ** 2).mean()
    assert_allclose(slope, 2.55 * 2 / np.pi, atol=0.06)


def test_it_is_a_regression_of_one_number_with_owners():
    dataset = load_dataset("sinusoids")
    assert dataset.is_regression
    assert dataset.num_outputs == dataset.num_classes == 1
    assert dataset.class_names == ("all",)
    assert not dataset.labels.any()
    assert dataset.inputs.shape == dataset.targets.shape == (2000, 1)
    assert dataset.inputs.dtype == dataset.targets.dtype == np.float32
    assert dataset.device_of_sample.tolist() == [device for device in range(100) for _ in range(20)]
    assert dataset.source == "drawn from seed 0 (100 waves of 20 points)"


def test_the_seed_decides_every_value_and_the_stream_is_its_own():
    prints = [load_dataset("sinusoids", seed=seed).fingerprint() for seed in (0, 0, 1)]
    assert prints[0] == prints[1] != prints[2]
    first = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(5, 1))).uniform(0.1, 5.0)
    assert_allclose(fitted_waves(load_dataset("sinusoids", num_devices=1))[0], first, rtol=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_devices": 0}, "num_devices must be a whole number >= 1, got 0"),
        ({"samples_per_device": 1}, "samples_per_device must be a whole number >= 2, got 1"),
        ({"num_samples": 9}, 'It is an option of synthetic, not of "sinusoids"'),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        load_dataset("sinusoids", **options)
    assert dataset_options("sinusoids") == ("num_devices", "samples_per_device")
