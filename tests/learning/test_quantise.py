"""Uploads with fewer bits: the values against numpy's own rounding, and their size."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedwave.learning.quantise import message_bits, received_model


def parameters(seed: int, scale: float = 1.0) -> dict[str, torch.Tensor]:
    rng = np.random.default_rng(seed)
    return {
        "bias": torch.tensor(scale * rng.standard_normal(7), dtype=torch.float32),
        "weight": torch.tensor(scale * rng.standard_normal((5, 3)), dtype=torch.float32),
    }


def changed(change_scale: float = 1e-2) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    sent_from = parameters(0)
    change = parameters(1, change_scale)
    return sent_from, {name: value + change[name] for name, value in sent_from.items()}


def test_with_32_bits_the_server_has_the_local_model_itself() -> None:
    sent_from, local = changed()
    received = received_model(sent_from, local, 32)
    assert all(received[name] is local[name] for name in local)


def test_with_16_bits_the_change_is_rounded_to_half_precision() -> None:
    sent_from, local = changed()
    received = received_model(sent_from, local, 16)
    for name, value in local.items():
        start = sent_from[name].numpy()
        change = value.numpy() - start
        scale = np.abs(change).max()
        halves = (change / scale).astype(np.float16).astype(np.float32) * scale
        assert np.array_equal(received[name].numpy(), start + halves)
        # Half precision keeps 11 bits, and steps of 2^-24 of the largest near zero; the sum rounds once more.
        bound = np.maximum(np.abs(change) * 2**-11, scale * 2**-25) + np.abs(value.numpy()) * 2**-22
        assert (np.abs(received[name].numpy() - value.numpy()) <= bound).all()
        assert received[name].dtype == torch.float32


@pytest.mark.parametrize("change_scale", [1e-6, 1e-2, 1e3])
def test_with_8_bits_the_change_lies_on_255_levels_and_is_off_by_half_a_level_at_most(
    change_scale: float,
) -> None:
    sent_from, local = changed(change_scale)
    received = received_model(sent_from, local, 8)
    for name, value in local.items():
        start = sent_from[name].numpy().astype(np.float64)
        change = (value - sent_from[name]).numpy().astype(np.float64)
        level = np.abs(change).max() / 127  # a scale for each tensor
        steps = np.rint(change / level)
        assert np.abs(steps).max() == 127
        rounding = 1e-6 * (np.abs(start).max() + np.abs(change).max())  # float32 arithmetic
        np.testing.assert_allclose(received[name].numpy(), start + steps * level, rtol=0, atol=rounding)
        assert np.abs(received[name].numpy() - value.numpy()).max() <= level / 2 + rounding


def test_the_largest_change_arrives_whole_and_no_change_stays_none() -> None:
    sent_from = {"weight": torch.tensor([0.0, 0.0, 0.0, 0.0])}
    local = {"weight": torch.tensor([-2.54, 1.0, 0.004, 0.0])}
    received = received_model(sent_from, local, 8)["weight"]  # levels of 0.02
    torch.testing.assert_close(received, torch.tensor([-2.54, 1.0, 0.0, 0.0]))
    for bits in (8, 16):
        assert torch.equal(received_model(local, local, bits)["weight"], local["weight"])


def test_a_change_too_small_for_a_scale_is_lost_and_not_turned_into_nan() -> None:
    sent_from = {"weight": torch.zeros(2)}
    local = {"weight": torch.tensor([1e-44, -1e-45])}  # a 127th of it is no float32
    assert torch.equal(received_model(sent_from, local, 8)["weight"], torch.zeros(2))
    assert torch.isfinite(received_model(sent_from, local, 16)["weight"]).all()


@pytest.mark.parametrize("size", [1e-30, 1e-8, 1.0, 1e6, 1e30])
def test_16_bits_carry_changes_of_any_size(size: float) -> None:
    sent_from = {"weight": torch.zeros(3)}
    local = {"weight": torch.tensor([1.0, -0.25, 0.001]) * size}
    received = received_model(sent_from, local, 16)["weight"]
    torch.testing.assert_close(received, local["weight"], rtol=2**-10, atol=0.0)


def test_neither_model_is_changed() -> None:
    sent_from, local = changed()
    before = [value.clone() for value in (*sent_from.values(), *local.values())]
    for bits in (8, 16, 32):
        received_model(sent_from, local, bits)
    after = [*sent_from.values(), *local.values()]
    assert all(torch.equal(old, new) for old, new in zip(before, after, strict=True))


@pytest.mark.parametrize(("bits", "expected"), [(32, 22 * 32), (16, 22 * 16 + 2 * 32), (8, 22 * 8 + 2 * 32)])
def test_a_message_counts_its_parameters_and_the_scales_of_rounded_tensors(bits: int, expected: int) -> None:
    assert message_bits(parameters(0), bits) == expected
