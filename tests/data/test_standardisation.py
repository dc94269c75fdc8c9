from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose

import fedwave.data.dataset as dataset_module
from fedwave.data import (
    Dataset,
    dataset_from_arrays,
    load_dataset,
    pixel_statistics,
    standardise,
    standardise_warnings,
)


def bytes_dataset(inputs: np.ndarray) -> Dataset:
    return dataset_from_arrays(inputs, np.zeros(len(inputs), dtype=int))


@given(hnp.arrays(np.uint8, st.tuples(st.integers(1, 40), st.just(1), st.just(3), st.just(2))))
def test_pixel_statistics_agree_with_numpy(inputs):
    mean, std = pixel_statistics(bytes_dataset(inputs))
    assert mean.dtype == std.dtype == np.float32
    assert mean.shape == std.shape == (1, 3, 2)
    assert_allclose(mean, inputs.astype(np.float64).mean(axis=0), rtol=1e-6)
    assert_allclose(std, inputs.astype(np.float64).std(axis=0), rtol=1e-6, atol=1e-6)


def test_pixel_statistics_do_not_depend_on_the_chunk_size(monkeypatch):
    inputs = np.random.default_rng(0).integers(0, 256, size=(101, 1, 4, 4), dtype=np.uint8)
    whole = pixel_statistics(bytes_dataset(inputs))
    monkeypatch.setattr(dataset_module, "VALUES_PER_CHUNK", 48)
    for one, other in zip(whole, pixel_statistics(bytes_dataset(inputs)), strict=True):
        assert_allclose(one, other, rtol=1e-7)


def test_standardised_pixels_have_mean_zero_and_nearly_unit_spread():
    inputs = np.random.default_rng(0).integers(0, 256, size=(500, 1, 4, 4), dtype=np.uint8)
    scaled = standardise(inputs, *pixel_statistics(bytes_dataset(inputs)))
    assert scaled.dtype == np.float32
    assert_allclose(scaled.mean(axis=0), 0, atol=1e-5)
    std = inputs.std(axis=0)
    assert_allclose(scaled.std(axis=0), std / (std + 0.001), rtol=1e-5)


def test_a_pixel_that_never_changes_becomes_zero():
    inputs = np.full((7, 1, 2, 2), 255, dtype=np.uint8)
    assert not standardise(inputs, *pixel_statistics(bytes_dataset(inputs))).any()


def columns(*stds: float, num_samples: int = 4000) -> np.ndarray:
    """Gaussian columns with exactly these standard deviations."""
    values = np.random.default_rng(0).standard_normal((num_samples, len(stds)))
    return (values - values.mean(axis=0)) / values.std(axis=0) * np.array(stds)


def small(inputs: np.ndarray) -> list[tuple[int, int]]:
    """Return (small inputs, varying inputs) of each warning."""
    warnings = standardise_warnings(dataset_from_arrays(inputs, np.zeros(len(inputs), dtype=int)))
    found = [
        re.match(r"arrays: (\d+) of (\d+) inputs have a standard deviation below 0\.01, ", w)
        for w in warnings
    ]
    return [(int(match[1]), int(match[2])) for match in found if match]


def test_inputs_on_a_small_scale_lose_their_signal_and_a_warning_says_so():
    inputs = columns(1e-4, 2e-4)
    dataset = dataset_from_arrays(inputs, np.zeros(len(inputs), dtype=int), name="volts")
    (warning,) = standardise_warnings(dataset)
    assert warning == (
        "volts: 2 of 2 inputs have a standard deviation below 0.01, the smallest 0.0001: "
        "(x - mean) / (std + 0.001) spreads it by 0.091, not 1. "
        'Rescale the inputs, or set data.standardise = "none".'
    )
    mean, std = pixel_statistics(dataset)
    assert_allclose(standardise(dataset.inputs, mean, std)[:, 0].std(), 0.091, atol=5e-4)
    assert standardise_warnings(dataset, std) == (warning,)
    assert standardise_warnings(dataset, std * 1000) == ()


def test_one_small_input_among_others_is_told_and_the_border_is_0_01():
    assert small(columns(1.0, 0.0099, 100.0)) == [(1, 3)]
    assert small(columns(1.0, 0.0101, 100.0)) == []
    assert small(columns(0.0101)) == []


def test_inputs_that_never_change_are_not_counted():
    assert small(np.ones((50, 3))) == []
    assert small(columns(0.0, 1.0)) == []
    assert small(columns(0.0, 0.001)) == [(1, 1)]


@pytest.mark.parametrize("num_samples", [600, 1001, 50_000])
def test_a_pixel_that_hardly_ever_changes_is_no_news_beside_others_that_do(num_samples):
    inputs = columns(1.0, 1.0, num_samples=num_samples)
    inputs[:, 1] = 0.0
    inputs[7, 1] = 0.1
    assert small(inputs) == []
    assert small(inputs[:, 1:]) == [(1, 1)]


def test_pictures_need_no_warning():
    digits = load_dataset("digits")
    assert standardise_warnings(digits) == ()
    assert small(digits.inputs / 240.0) == []
    assert small(digits.inputs / 240e4) == [(61, 61)]
