from __future__ import annotations

import pickle

import numpy as np
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from fedwave.data import DeviceData, dataset_from_arrays
from fedwave.devices.pool import DevicePool, Standardiser, group_by_size
from fedwave.learning.tasks import Classification
from tests.devices.pools import QUERY_SIZES, SUPPORT_SIZES, small_pool


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
    loss = Classification().loss
    for batch_of, index_of in (
        (pool.support, lambda device: device.support),
        (pool.query, lambda device: device.query),
        (pool.everything, lambda device: np.concatenate([device.support, device.query])),
    ):
        batch = batch_of(np.array([0, 1]))
        together = loss(batch.inputs @ weight, batch)
        for row, device in enumerate(devices):
            samples, targets = data.inputs[index_of(device)], data.labels[index_of(device)]
            alone = F.cross_entropy(torch.from_numpy(samples) @ weight, torch.from_numpy(targets))
            torch.testing.assert_close(together[row], alone)
    padded = pool.query(np.array([0, 1]))
    # Padding repeats a sample of the device's own: nobody else's data is touched, and no input is made up.
    assert torch.equal(padded.inputs[1, 2:], padded.inputs[1, :1].expand(3, -1))
    assert padded.weights[1].tolist() == [0.5, 0.5, 0.0, 0.0, 0.0]


def test_a_pool_counts_its_samples_and_follows_the_positions_asked_for() -> None:
    pool = small_pool()
    assert len(pool) == 7
    assert pool.num_samples.tolist() == np.add(SUPPORT_SIZES, QUERY_SIZES).tolist()
    assert pool.num_query.tolist() == list(QUERY_SIZES)
    batch = pool.query(np.array([4, 0]))
    for row, position in enumerate((4, 0)):
        assert batch.targets[row].tolist() == pool.dataset.labels[pool.devices[position].query].tolist()


def test_real_targets_take_the_place_of_labels() -> None:
    pool = small_pool(task="regression")
    assert pool.dataset.targets is not None
    batch = pool.support(np.array([2]))
    assert batch.targets[0].tolist() == pool.dataset.targets[pool.devices[2].support].tolist()
    assert batch.targets.shape == (1, 3, 2)


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
    assert whole.targets.shape == (1, 18)


def test_groups_are_filled_from_the_largest_device_down_to_either_limit() -> None:
    positions, sizes = np.array([10, 11, 12, 13, 14, 15]), np.array([4, 10, 9, 5, 10, 1])
    # 10 10 | 9 would pad 1 of 30: within 8 %, but past 25 samples; 5 4 pads 1 of 10, past 8 %.
    groups = group_by_size(positions, sizes, max_samples=25)
    assert [group.tolist() for group in groups] == [[11, 14], [12], [13], [10], [15]]
    groups = group_by_size(positions, sizes, max_samples=30)
    assert [group.tolist() for group in groups] == [[11, 14, 12], [13], [10], [15]]
    groups = group_by_size(positions, sizes, max_samples=30, max_padding=0.1)  # just 1 of 10
    assert [group.tolist() for group in groups] == [[11, 14, 12], [13, 10], [15]]
    assert group_by_size(positions[:0], sizes[:0], max_samples=30) == []


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


def test_a_pool_travels_with_its_samples_in_one_array() -> None:
    pool = small_pool()
    nobody = DevicePool(pool.dataset, pool.standardiser, (), np.zeros(0, dtype=np.int64), pool.torch_device)
    buffers: list[pickle.PickleBuffer] = []
    sent = pickle.dumps((pool, nobody), protocol=5, buffer_callback=buffers.append)
    # inputs, labels, mean and deviation, device ids and samples of both pools, and where they end
    assert len(buffers) <= 10
    arrived, still_nobody = pickle.loads(sent, buffers=buffers)  # noqa: S301 - our own bytes
    assert len(still_nobody) == 0
    assert arrived.dataset is still_nobody.dataset  # it travels once
    assert len(arrived) == len(pool)
    for ours, theirs in zip(arrived.devices, pool.devices, strict=True):
        assert ours.support.tolist() == theirs.support.tolist()
        assert ours.query.tolist() == theirs.query.tolist()
        assert ours.classes == theirs.classes
    who = np.array([4, 0, 5])
    assert torch.equal(arrived.query(who).inputs, pool.query(who).inputs)
    assert torch.equal(arrived.support(who).targets, pool.support(who).targets)
    assert arrived.num_samples.tolist() == pool.num_samples.tolist()
    assert arrived.device_ids.tolist() == pool.device_ids.tolist()


def pool_of(inputs: np.ndarray, kind: str = "none") -> DevicePool:
    data = dataset_from_arrays(inputs, np.arange(len(inputs)) % 2)
    devices = (DeviceData(np.array([0]), np.array([1]), (0, 1)),)
    return DevicePool(data, Standardiser.fit(data, kind), devices, np.array([0]), torch.device("cpu"))


def test_examples_are_different_samples_from_all_over_the_dataset_as_models_see_them() -> None:
    values = np.repeat(np.arange(50.0), 20)[:, None]  # sorted, as many datasets are
    pool = pool_of(values, "pixel")
    found = pool.examples(6)
    assert found.shape == (6, 1)
    assert len(torch.unique(found)) == 6
    back = found.numpy() * (values.std() + 0.001) + values.mean()
    np.testing.assert_allclose(back, back.round(), atol=1e-4)
    assert back.min() < 10 < 40 < back.max()
    assert torch.equal(found, pool.examples(6))


def test_examples_are_looked_for_among_more_places_than_are_needed() -> None:
    values = np.arange(101.0)
    values[::20] = 0.0  # every place of six that are evenly spaced
    assert len(torch.unique(pool_of(values[:, None]).examples(6))) == 6


def test_examples_repeat_where_there_are_too_few_samples() -> None:
    assert pool_of(np.array([[3.0], [4.0]])).examples(4).flatten().tolist() == [3.0, 3.0, 3.0, 4.0]
    assert pool_of(np.ones((9, 2))).examples(3).tolist() == [[1.0, 1.0]] * 3


def test_token_ids_stay_whole_numbers_whatever_the_standardisation() -> None:
    tokens = np.array([[5, 0, 7], [1, 1, 2]], dtype=np.uint16)
    for kind in ("pixel", "none"):
        pool = pool_of(tokens, kind)
        batch = pool.everything(np.array([0]))
        assert batch.inputs.dtype == torch.int64
        assert pool.standardiser.std is None  # no statistics are made of ids
        assert batch.inputs.tolist() == [tokens.tolist()]
        assert batch.double().inputs.dtype == torch.int64
        assert batch.double().weights.dtype == torch.float64
        assert pickle.loads(pickle.dumps(pool)).query(np.array([0])).inputs.tolist() == [[[1, 1, 2]]]  # noqa: S301
