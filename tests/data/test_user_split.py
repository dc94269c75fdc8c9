from __future__ import annotations

import re
from collections import Counter
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedwave.data import (
    UserSplit,
    dataset_from_arrays,
    devices_of_split,
    heldout_of_split,
    load_dataset,
    split_heldout,
    split_of_dataset,
    user_split,
)
from fedwave.errors import ConfigError, DataError
from fedwave.rng import Stream, generator

WRITERS = ["zoe", "ann", "zoe", "", "bob", "ann"]


def test_devices_are_numbered_in_the_order_of_their_ids():
    split = user_split(WRITERS)
    assert split.device_names == ("ann", "bob", "zoe")
    assert split.device_of_sample.tolist() == [2, 0, 2, -1, 1, 0]
    assert split.num_devices == 3
    assert split.num_samples == 6
    assert split.is_heldout is None
    assert split.is_support is None


@pytest.mark.parametrize(
    "is_heldout",
    [
        ["bob", "zoe"],
        ("zoe", "bob"),
        {"bob", "zoe"},
        np.array(["zoe", "bob"]),
        [True, False, True, False, True, False],
        [True, False, True, True, True, False],  # the sample of nobody has no say
        np.array([True, False, True, False, True, False]),
        (bool(flag) for flag in [1, 0, 1, 0, 1, 0]),
    ],
    ids=["list", "tuple", "set", "array", "flags", "flags of nobody", "array of flags", "generator"],
)
def test_held_out_devices_are_named_or_marked_sample_by_sample(is_heldout):
    assert user_split(WRITERS, is_heldout=is_heldout).is_heldout.tolist() == [False, True, True]


@pytest.mark.parametrize("is_heldout", [[2, 30], ["30", "2"], np.array([30, 2]), [30.0, 2]])
def test_ids_that_are_numbers_may_be_held_out_by_number(is_heldout):
    split = user_split([30, 4, 2, 4], is_heldout=is_heldout)
    assert split.device_names == ("2", "4", "30")
    assert split.is_heldout.tolist() == [True, False, True]


@pytest.mark.parametrize("is_heldout", [[], np.zeros(0, dtype=bool), [False] * 6])
def test_it_may_be_given_that_nobody_is_held_out(is_heldout):
    assert user_split(WRITERS, is_heldout=is_heldout).is_heldout.tolist() == [False] * 3


@pytest.mark.parametrize("is_support", [[1, 0, 0, 1, 1, 1], np.array([1, 0, 0, 1, 1, 1], dtype=bool)])
def test_support_is_a_flag_per_sample(is_support):
    split = user_split(WRITERS, is_support=is_support)
    assert split.is_support.dtype == np.bool_
    assert split.is_support.tolist() == [True, False, False, True, True, True]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"is_heldout": [True, False, False, False, False, False]},
            "own split: device zoe is held out in 1 of its 2 samples. "
            "A device trains or is held out as a whole: make its samples agree.",
        ),
        (
            {"is_heldout": [True, False]},
            "is_heldout must be one bool for each of the 6 samples, got shape (2,)",
        ),
        (
            {"is_heldout": ["zeo"]},
            'held-out device "zeo" owns no sample, those that do are "ann" to "zoe". Correct the id.',
        ),
        ({"is_heldout": [""]}, 'the held-out device "" owns no sample'),
        (
            {"is_heldout": ["ann", "ann"]},
            'the held-out device "ann" is named twice. Name it once, or give a bool',
        ),
        ({"is_heldout": "ann"}, "a list of ids, got 'ann'. Write ['ann']."),
        ({"is_heldout": 7}, "a list of ids, got 7. Write [7]."),
        ({"is_heldout": ["ann", "bob", "zoe"]}, "all 3 devices are held out, none is left to train"),
        ({"is_support": [True]}, "is_support must be one bool for each of the 6 samples, got shape (1,)"),
        (
            {"is_support": np.ones((6, 1))},
            "is_support must be one bool for each of the 6 samples, got shape (6, 1)",
        ),
        ({"is_support": [0, 1, 2, 0, 1, 0]}, "is_support must be True or False for each sample, got int64"),
        ({"is_support": [0.0, 1.0, 1.0, 0.0, 1.0, 0.0]}, "got float64. Use bools, or 0 and 1."),
        ({"device_of_sample": ["", "", None]}, "own split: no sample belongs to a device"),
        ({"device_of_sample": []}, "own split: no sample belongs to a device"),
        (
            {"device_of_sample": [(1, 2)], "name": "mine"},
            "mine: device ids must be whole numbers or a line of text",
        ),
    ],
)
def test_a_split_that_does_not_fit_is_refused(arguments, message):
    with pytest.raises(DataError, match=re.escape(message)) as caught:
        user_split(**{"device_of_sample": WRITERS, **arguments})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"is_heldout": np.zeros(3, bool)}, "is_heldout must be bool of shape (2,), got bool of shape (3,)"),
        ({"is_heldout": np.zeros(2, int)}, "is_heldout must be bool of shape (2,), got int64 of shape (2,)"),
        ({"is_support": np.zeros(2, bool)}, "is_support must be bool of shape (3,), got bool of shape (2,)"),
        ({"device_names": ("a",)}, "devices must lie in 0..0, or be -1 for samples of nobody, got -1..1"),
        ({"device_names": ("a", "a")}, "two devices have one name, got 2 names"),
    ],
)
def test_a_split_made_by_hand_is_checked_too(fields, message):
    with pytest.raises(DataError, match=re.escape(message)):
        UserSplit(np.array([0, 1, 0]), **fields)


def test_a_split_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        user_split([0, 1]).is_heldout = np.array([True, False])


def test_a_split_made_by_hand_names_its_devices():
    assert UserSplit(np.array([1, 0, -1])).device_names == ("0", "1")


@given(st.lists(st.sampled_from(["a", "b", "c", ""]), min_size=1).filter(any))
def test_the_fingerprint_is_that_of_the_owners(ids):
    split = user_split(ids)
    assert split.fingerprint() == user_split(np.array(ids)).fingerprint()
    changed = list(ids)
    changed[0] = "d" if ids[0] != "d" else "a"
    assert user_split(changed).fingerprint() != split.fingerprint()


def test_the_fingerprint_changes_with_names_held_out_devices_and_support():
    flags = [True, True, False]
    splits = [
        user_split([0, 1, 2]),
        user_split([1, 2, 3]),
        user_split([0, 1, -1]),
        user_split([0, 1, 2], is_heldout=flags),
        user_split([0, 1, 2], is_heldout=[2]),
        user_split([0, 1, 2], is_support=flags),
        user_split([0, 1, 2], is_support=flags, is_heldout=flags),
        UserSplit(np.array([0, 1, 2]), ("a", "bc", "d")),
        UserSplit(np.array([0, 1, 2]), ("ab", "c", "d")),
    ]
    prints = [split.fingerprint() for split in splits]
    assert len(set(prints)) == len(prints)
    assert all(re.fullmatch("[0-9a-f]{16}", one) for one in prints)


def test_a_dataset_with_owners_brings_its_split():
    dataset = dataset_from_arrays(np.zeros((6, 2)), [0] * 6, device_of_sample=WRITERS)
    assert split_of_dataset(dataset).fingerprint() == user_split(WRITERS).fingerprint()
    with pytest.raises(DataError, match="arrays does not say which device owns which sample. Give the split"):
        split_of_dataset(dataset_from_arrays(np.zeros((6, 2)), [0] * 6))


# The devices of a split


def stream(seed: int = 0) -> np.random.Generator:
    return generator(seed, Stream.PARTITION)


def test_support_as_given_is_taken_as_it_is_and_draws_nothing():
    split = user_split([7, 3, 7, -1, 3, 7, 3], is_support=[1, 0, 0, 1, 1, 1, 0])
    labels = np.array([5, 1, 4, 9, 1, 5, 0])
    rng = stream()
    three, seven = devices_of_split(split, labels, rng=rng)
    assert (three.support.tolist(), three.query.tolist(), three.classes) == ([4], [1, 6], (0, 1))
    assert (seven.support.tolist(), seven.query.tolist(), seven.classes) == ([0, 5], [2], (4, 5))
    assert rng.random() == stream().random()


def test_the_rule_takes_shots_of_each_class_and_leaves_the_rest():
    split = user_split(["a", "b", "a", "b", "a", "a", "b", ""])
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
    split = user_split(owners)
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
    split = user_split([0, 1] * 4)
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
            user_split(["ann", "bob", "bob", "ann"], is_support=[1, 0, 0, 0]),
            "Device bob has 2 samples, none of them support (1 of 2 devices lack support samples). Give it "
            "both",
        ),
        (
            user_split(["ann", "bob", "bob", "ann"], is_support=[1, 1, 0, 1]),
            "Device ann has 2 samples, none of them query (1 of 2 devices lack query samples). Give it both",
        ),
        (
            user_split(["ann", "", "bob", "bob"], is_support=[0, 1, 1, 0]),
            "Device ann has 1 samples, none of them support",  # the sample of nobody helps nobody
        ),
        (
            user_split(["ann", "bob", "bob", "ann"]),
            "Device ann has 2 samples of 2 classes: after 1 support per class 0 are left for its query set, "
            "needs 1 (1 of 2 devices lack query samples)",
        ),
        (
            UserSplit(np.array([0, 0, 0, 0]), ("ann", "bob")),
            "Device bob has 0 samples of 0 classes: after 1 support per class 0 are left for its query set",
        ),
        (
            UserSplit(
                np.array([0, 0, 0, 0]), ("ann", "bob"), is_support=np.array([True, True, False, False])
            ),
            "Device bob has 0 samples, none of them support",
        ),
        (
            user_split([1, 2, 3]),
            "gives owners to 3 samples, but the dataset has 4. Give one owner per sample",
        ),
    ],
)
def test_a_device_without_support_or_query_is_named(split, message):
    with pytest.raises(DataError, match=re.escape(message)) as caught:
        devices_of_split(split, np.array([0, 1, 1, 2]), rng=stream())
    assert "\n" not in str(caught.value)


def test_no_shots_are_refused():
    with pytest.raises(ConfigError, match="shots must be a whole number >= 1, got 0"):
        devices_of_split(user_split([0, 0]), np.zeros(2, int), shots=0, rng=stream())


def test_held_out_devices_as_given_draw_nothing():
    rng = stream()
    split = user_split(["c", "b", "a", "d"], is_heldout=["d", "b"])
    train, heldout = heldout_of_split(split, rng=rng)
    assert (train.tolist(), heldout.tolist()) == ([0, 2], [1, 3])
    assert train.dtype == heldout.dtype == np.int64
    assert rng.random() == stream().random()


@pytest.mark.parametrize("fraction", [0.0, 0.25, 0.7])
def test_without_them_the_usual_rule_holds_out(fraction):
    found = heldout_of_split(user_split(range(20)), heldout_fraction=fraction, rng=stream(3))
    expected = split_heldout(20, heldout_fraction=fraction, rng=stream(3))
    assert [ids.tolist() for ids in found] == [ids.tolist() for ids in expected]


def test_half_of_the_devices_are_held_out_by_default():
    train, heldout = heldout_of_split(user_split(range(20)), rng=stream())
    assert len(train) == len(heldout) == 10


def test_the_sine_waves_are_a_split_of_their_own():
    dataset = load_dataset("sinusoids", num_devices=7, samples_per_device=15)
    devices = devices_of_split(split_of_dataset(dataset), dataset.labels, shots=10, rng=stream())
    assert len(devices) == 7
    for index, device in enumerate(devices):
        assert (len(device.support), len(device.query), device.classes) == (10, 5, (0,))
        assert {*device.support, *device.query} == set(range(15 * index, 15 * index + 15))
