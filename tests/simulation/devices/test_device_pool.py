from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedwave.data import DeviceData, dataset_from_arrays
from fedwave.learning import cross_entropy
from fedwave.simulation.device_pool import DevicePool, Standardiser, group_by_size


@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=60),
    max_samples=st.integers(1, 200),
    max_padding=st.floats(0, 0.5),
)
def test_groups_hold_every_device_once_within_the_limits(
    sizes: list[int], max_samples: int, max_padding: float
) -> None:
    size_of = np.array(sizes)
    positions = np.arange(len(sizes)) * 3
    groups = group_by_size(positions, size_of, max_samples=max_samples, max_padding=max_padding)
    assert sorted(np.concatenate(groups).tolist()) == positions.tolist()
    for group in groups:
        own = size_of[group // 3]
        padded = int(own.max()) * len(own)
        assert len(own) == 1 or padded <= max_samples
        assert padded - own.sum() <= max_padding * padded


def test_padding_adds_nothing_to_the_loss_of_a_device() -> None:
    rng = np.random.default_rng(0)
    data = dataset_from_arrays(rng.normal(size=(9, 4)), rng.integers(0, 3, 9), num_classes=3)
    devices = (
        DeviceData(np.array([0]), np.array([1, 2, 3, 4, 5]), (0,)),
        DeviceData(np.array([6]), np.array([7, 8]), (0,)),
    )
    pool = DevicePool(data, Standardiser.fit(data, "none"), devices, np.array([10, 20]), torch.device("cpu"))
    weight = torch.from_numpy(rng.normal(size=(4, 3)).astype(np.float32))
    for both in (pool.query(np.array([0, 1])), pool.everything(np.array([0, 1]))):
        together = cross_entropy(both.inputs @ weight, both)
        for row, part in enumerate(("query", "everything")):
            del part
            alone = (
                pool.query(np.array([row])) if both.labels.shape[1] == 5 else pool.everything(np.array([row]))
            )
            torch.testing.assert_close(together[row], cross_entropy(alone.inputs @ weight, alone)[0])
    assert pool.num_samples.tolist() == [6, 3]
    padded = pool.query(np.array([0, 1]))
    # Padding repeats a sample of the device's own: nobody else's data is touched, and no input is made up.
    assert torch.equal(padded.inputs[1, 2:], padded.inputs[1, :1].expand(3, -1))
    assert padded.weights[1].tolist() == [0.5, 0.5, 0.0, 0.0, 0.0]


def test_a_drawn_batch_is_a_subset_of_the_right_samples() -> None:
    data = dataset_from_arrays(np.arange(20.0)[:, None], np.zeros(20, dtype=int), num_classes=1)
    device = DeviceData(np.array([0, 1]), np.arange(2, 20), (0,))
    pool = DevicePool(data, Standardiser.fit(data, "none"), (device,), np.array([0]), torch.device("cpu"))
    for with_support, allowed in ((False, set(range(2, 20))), (True, set(range(20)))):
        rng = np.random.default_rng(3)
        batch = pool.drawn(np.array([0]), 7, [rng], with_support=with_support)
        drawn = {int(value) for value in batch.inputs.flatten()}
        assert len(drawn) == 7
        assert drawn <= allowed
    whole = pool.drawn(np.array([0]), 50, [np.random.default_rng(0)], with_support=False)
    assert whole.labels.shape == (1, 18)


def test_standardised_pixels_have_mean_zero_and_deviation_one_but_for_the_offset() -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, size=(500, 1, 3, 3), dtype=np.uint8)
    images[:, 0, 0, 0] = 7  # a constant pixel must not divide by zero
    data = dataset_from_arrays(images, rng.integers(0, 2, 500))
    values = Standardiser.fit(data, "pixel")(images)
    assert np.allclose(values.mean(0), 0, atol=1e-4)
    deviation = values.std(0)
    assert deviation[0, 0, 0] == 0
    assert np.allclose(deviation.flatten()[1:], 1, atol=1e-3)
    assert np.array_equal(Standardiser.fit(data, "none")(images), images.astype(np.float32) / np.float32(255))
