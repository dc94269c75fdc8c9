from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedwave.data import (
    OwnSplit,
    devices_of_split,
    heldout_of_split,
    load_dataset,
    own_split,
    split_heldout,
    split_of_dataset,
)
from fedwave.errors import ConfigError, DataError
from fedwave.rng import Stream, generator


def stream(seed: int = 0) -> np.random.Generator:
    return generator(seed, Stream.PARTITION)


def test_support_as_given_is_taken_as_it_is_and_draws_nothing():
    split = own_split([7, 3, 7, -1, 3, 7, 3], is_support=[1, 0, 0, 1, 1, 1, 0])
    labels = np.array([5, 1, 4, 9, 1, 5, 0])
    rng = stream()
    three, seven = devices_of_split(split, labels, rng=rng)
    assert (three.support.tolist(), three.query.tolist(), three.classes) == ([4], [1, 6], (0, 1))
    assert (seven.support.tolist(), seven.query.tolist(), seven.classes) == ([0, 5], [2], (4, 5))
    assert rng.random() == stream().random()


def test_the_rule_takes_shots_of_each_class_and_leaves_the_rest():
    split = own_split(["a", "b", "a", "b", "a", "a", "b", ""])
    labels = np.array([0, 1, 0, 1, 2, 0, 1, 0])
    a, b = devices_of_split(split, labels, shots=2, rng=stream())
    assert a.classes == (0, 2)
    assert 4 in a.support  # the only sample of class 2
    assert len(a.support) == 3
    assert sorted([*a.support, *a.query]) == [0, 2, 4, 5]
    assert b.classes == (1,)
    assert len(b.support) == 2
    assert sorted([*b.support, *b.query]) == [1, 3, 6]


@st.composite
def owned_labels(draw):
    """Owners, labels and shots for which every device has a query sample left."""
    num_devices, num_classes = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    shots = draw(st.integers(1, 3))
    samples = draw(
        st.lists(st.tuples(st.integers(-1, num_devices - 1), st.integers(0, num_classes - 1)), max_size=30)
    )
    samples += [(device, 0) for device in range(num_devices)] * (shots + 1)
    owners, labels = zip(*draw(st.permutations(samples)), strict=True)
    return np.array(owners), np.array(labels), shots


@given(owned_labels(), st.integers(0, 5))
def test_each_sample_stays_with_its_owner_and_is_used_once(example, seed):
    owners, labels, shots = example
    before = labels.copy()
    split = own_split(owners)
    devices = devices_of_split(split, labels, shots=shots, rng=stream(seed))
    assert np.array_equal(labels, before)
    assert len(devices) == split.num_devices
    for index, device in enumerate(devices):
        assert device.support.dtype == device.query.dtype == np.int64
        own = [sample for sample, owner in enumerate(owners) if owner == int(split.device_names[index])]
        assert sorted([*device.support, *device.query]) == own
        assert len(device.query) >= 1
        available = Counter(labels[own].tolist())
        assert Counter(labels[device.support].tolist()) == {c: min(shots, n) for c, n in available.items()}
        assert device.classes == tuple(sorted(available))
    again = devices_of_split(split, labels, shots=shots, rng=stream(seed))
    assert all(np.array_equal(a.support, b.support) for a, b in zip(devices, again, strict=True))


def test_support_is_drawn_uniformly_and_independently_on_each_device():
    split = own_split([0, 1] * 4)
    labels = np.zeros(8, dtype=int)
    drawn = Counter(
        tuple(int(device.support[0]) for device in devices_of_split(split, labels, rng=stream(seed)))
        for seed in range(1600)
    )
    # 16 pairs with probability 1/16 each: 100 +- 9.7; five sigma is 49.
    assert set(drawn) == {(even, odd) for even in (0, 2, 4, 6) for odd in (1, 3, 5, 7)}
    assert all(abs(count - 100) < 49 for count in drawn.values())


@pytest.mark.parametrize(
    ("split", "message"),
    [
        (
            own_split(["ann", "bob", "bob", "ann"], is_support=[1, 0, 0, 0]),
            "Device bob has 2 samples, none of them support (1 of 2 devices lack support samples). Give it "
            "both",
        ),
        (
            own_split(["ann", "bob", "bob", "ann"], is_support=[1, 1, 0, 1]),
            "Device ann has 2 samples, none of them query (1 of 2 devices lack query samples). Give it both",
        ),
        (
            own_split(["ann", "", "bob", "bob"], is_support=[0, 1, 1, 0]),
            "Device ann has 1 samples, none of them support",  # the sample of nobody helps nobody
        ),
        (
            own_split(["ann", "bob", "bob", "ann"]),
            "Device ann has 2 samples of 2 classes: after 1 support per class 0 are left for its query set, "
            "needs 1 (1 of 2 devices lack query samples)",
        ),
        (
            OwnSplit(np.array([0, 0, 0, 0]), ("ann", "bob")),
            "Device bob has 0 samples of 0 classes: after 1 support per class 0 are left for its query set",
        ),
        (
            OwnSplit(np.array([0, 0, 0, 0]), ("ann", "bob"), is_support=np.array([True, True, False, False])),
            "Device bob has 0 samples, none of them support",
        ),
        (own_split([1, 2, 3]), "gives owners to 3 samples, but the dataset has 4. Give one owner per sample"),
    ],
)
def test_a_device_without_support_or_query_is_named(split, message):
    with pytest.raises(DataError, match=re.escape(message)) as caught:
        devices_of_split(split, np.array([0, 1, 1, 2]), rng=stream())
    assert "\n" not in str(caught.value)


def test_no_shots_are_refused():
    with pytest.raises(ConfigError, match="shots must be a whole number >= 1, got 0"):
        devices_of_split(own_split([0, 0]), np.zeros(2, int), shots=0, rng=stream())


def test_held_out_devices_as_given_draw_nothing():
    rng = stream()
    split = own_split(["c", "b", "a", "d"], is_heldout=["d", "b"])
    train, heldout = heldout_of_split(split, rng=rng)
    assert (train.tolist(), heldout.tolist()) == ([0, 2], [1, 3])
    assert train.dtype == heldout.dtype == np.int64
    assert rng.random() == stream().random()


@pytest.mark.parametrize("fraction", [0.0, 0.25, 0.7])
def test_without_them_the_usual_rule_holds_out(fraction):
    found = heldout_of_split(own_split(range(20)), heldout_fraction=fraction, rng=stream(3))
    expected = split_heldout(20, heldout_fraction=fraction, rng=stream(3))
    assert [ids.tolist() for ids in found] == [ids.tolist() for ids in expected]


def test_half_of_the_devices_are_held_out_by_default():
    train, heldout = heldout_of_split(own_split(range(20)), rng=stream())
    assert len(train) == len(heldout) == 10


def test_the_sine_waves_are_a_split_of_their_own():
    dataset = load_dataset("sinusoids", num_devices=7, samples_per_device=15)
    devices = devices_of_split(split_of_dataset(dataset), dataset.labels, shots=10, rng=stream())
    assert len(devices) == 7
    for index, device in enumerate(devices):
        assert (len(device.support), len(device.query), device.classes) == (10, 5, (0,))
        assert {*device.support, *device.query} == set(range(15 * index, 15 * index + 15))
