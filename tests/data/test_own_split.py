from __future__ import annotations

import re
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedwave.data import OwnSplit, dataset_from_arrays, own_split, split_of_dataset
from fedwave.errors import DataError

WRITERS = ["zoe", "ann", "zoe", "", "bob", "ann"]


def test_devices_are_numbered_in_the_order_of_their_ids():
    split = own_split(WRITERS)
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
    assert own_split(WRITERS, is_heldout=is_heldout).is_heldout.tolist() == [False, True, True]


@pytest.mark.parametrize("is_heldout", [[2, 30], ["30", "2"], np.array([30, 2]), [30.0, 2]])
def test_ids_that_are_numbers_may_be_held_out_by_number(is_heldout):
    split = own_split([30, 4, 2, 4], is_heldout=is_heldout)
    assert split.device_names == ("2", "4", "30")
    assert split.is_heldout.tolist() == [True, False, True]


@pytest.mark.parametrize("is_heldout", [[], np.zeros(0, dtype=bool), [False] * 6])
def test_it_may_be_given_that_nobody_is_held_out(is_heldout):
    assert own_split(WRITERS, is_heldout=is_heldout).is_heldout.tolist() == [False] * 3


@pytest.mark.parametrize("is_support", [[1, 0, 0, 1, 1, 1], np.array([1, 0, 0, 1, 1, 1], dtype=bool)])
def test_support_is_a_flag_per_sample(is_support):
    split = own_split(WRITERS, is_support=is_support)
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
        own_split(**{"device_of_sample": WRITERS, **arguments})
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
        OwnSplit(np.array([0, 1, 0]), **fields)


def test_a_split_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        own_split([0, 1]).is_heldout = np.array([True, False])


def test_a_split_made_by_hand_names_its_devices():
    assert OwnSplit(np.array([1, 0, -1])).device_names == ("0", "1")


@given(st.lists(st.sampled_from(["a", "b", "c", ""]), min_size=1).filter(any))
def test_the_fingerprint_is_that_of_the_owners(ids):
    split = own_split(ids)
    assert split.fingerprint() == own_split(np.array(ids)).fingerprint()
    changed = list(ids)
    changed[0] = "d" if ids[0] != "d" else "a"
    assert own_split(changed).fingerprint() != split.fingerprint()


def test_the_fingerprint_changes_with_names_held_out_devices_and_support():
    flags = [True, True, False]
    splits = [
        own_split([0, 1, 2]),
        own_split([1, 2, 3]),
        own_split([0, 1, -1]),
        own_split([0, 1, 2], is_heldout=flags),
        own_split([0, 1, 2], is_heldout=[2]),
        own_split([0, 1, 2], is_support=flags),
        own_split([0, 1, 2], is_support=flags, is_heldout=flags),
        OwnSplit(np.array([0, 1, 2]), ("a", "bc", "d")),
        OwnSplit(np.array([0, 1, 2]), ("ab", "c", "d")),
    ]
    prints = [split.fingerprint() for split in splits]
    assert len(set(prints)) == len(prints)
    assert all(re.fullmatch("[0-9a-f]{16}", one) for one in prints)


def test_a_dataset_with_owners_brings_its_split():
    dataset = dataset_from_arrays(np.zeros((6, 2)), [0] * 6, device_of_sample=WRITERS)
    assert split_of_dataset(dataset).fingerprint() == own_split(WRITERS).fingerprint()
    with pytest.raises(DataError, match="arrays does not say which device owns which sample. Give the split"):
        split_of_dataset(dataset_from_arrays(np.zeros((6, 2)), [0] * 6))
