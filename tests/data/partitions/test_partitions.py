from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedwave.data import PARTITIONS, partition, partition_options, split_heldout
from fedwave.errors import ConfigError, DataError
from fedwave.rng import Stream, generator
from fedwave.testing import check_partition

KINDS = sorted(set(PARTITIONS) - {"given"})  # which deals nothing out
TWENTY_SAMPLES = {"paper": {}, "dirichlet": {"samples_per_device": 20}, "iid": {"samples_per_device": 20}}


def stream(seed: int = 0) -> np.random.Generator:
    return generator(seed, Stream.PARTITION)


def balanced_labels(num_samples: int = 4000, num_classes: int = 10) -> np.ndarray:
    return np.random.default_rng(1).permutation(np.arange(num_samples) % num_classes)


def deal(
    kind: str, labels: np.ndarray, *, num_devices: int = 30, num_classes: int = 10, seed: int = 0, **options
):
    return partition(
        labels, kind=kind, num_devices=num_devices, num_classes=num_classes, rng=stream(seed), **options
    )


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    num_devices=st.integers(1, 25),
    num_classes=st.integers(1, 8),
    shots=st.integers(1, 3),
    min_query=st.integers(1, 3),
    concentration=st.floats(0.01, 100),
    seed=st.integers(0, 1000),
)
def test_every_sample_has_one_owner_and_every_device_its_support_and_query(
    kind, num_devices, num_classes, shots, min_query, concentration, seed
):
    labels = balanced_labels(3000, num_classes)
    before = labels.copy()
    options = {
        "paper": {"classes_per_device": min(2, num_classes)},
        "dirichlet": {"concentration": concentration, "samples_per_device": 60},
        "iid": {"samples_per_device": 60},
    }
    devices = partition(
        labels,
        kind=kind,
        num_devices=num_devices,
        num_classes=num_classes,
        rng=stream(seed),
        shots=shots,
        min_query=min_query,
        **options[kind],
    )
    assert np.array_equal(labels, before)
    assert len(devices) == num_devices
    owned = np.concatenate([np.concatenate([device.support, device.query]) for device in devices])
    assert len(np.unique(owned)) == len(owned) == sum(device.num_samples for device in devices)
    assert owned.min() >= 0
    assert owned.max() < len(labels)
    for device in devices:
        assert device.support.dtype == device.query.dtype == np.int64
        assert len(device.query) >= min_query
        everything = np.concatenate([device.support, device.query])
        assert tuple(np.unique(labels[everything])) == device.classes
        for label in device.classes:
            num_support = np.count_nonzero(labels[device.support] == label)
            assert num_support == min(shots, np.count_nonzero(labels[everything] == label))


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_stream_deals_the_same_samples_and_another_does_not(kind):
    labels = balanced_labels()
    first, again, other = (deal(kind, labels, seed=seed, **TWENTY_SAMPLES[kind]) for seed in (0, 0, 1))
    assert all(
        np.array_equal(a.support, b.support) and np.array_equal(a.query, b.query)
        for a, b in zip(first, again, strict=True)
    )
    assert any(not np.array_equal(a.support, b.support) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("kind", PARTITIONS)
def test_every_partition_keeps_the_contract(kind):
    check_partition(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_class_without_samples_goes_to_nobody(kind):
    labels = balanced_labels(num_classes=9)
    devices = deal(kind, labels, num_classes=10, **TWENTY_SAMPLES[kind])
    assert all(9 not in device.classes for device in devices)


@pytest.mark.parametrize("kind", KINDS)
def test_one_device_is_enough(kind):
    (device,) = deal(kind, balanced_labels(), num_devices=1)
    assert len(device.query) >= 1


def test_samples_within_a_class_are_dealt_uniformly():
    labels = np.zeros(20, dtype=int)
    owned = np.zeros(20)
    for seed in range(1000):
        (device,) = deal("iid", labels, num_devices=1, num_classes=1, seed=seed, samples_per_device=5)
        owned[device.support] += 1
    # Each sample is the support with probability 1/20: 50 +- 7 of 1000; five sigma is 35.
    assert np.all(np.abs(owned - 50) < 35)


def test_a_class_that_runs_short_is_reported_with_the_numbers():
    labels = np.repeat([0, 1, 2], [400, 400, 20])
    with pytest.raises(DataError) as caught:
        deal(
            "paper", labels, num_devices=20, num_classes=3, mean_samples_per_class=6, std_samples_per_class=0
        )
    found = re.fullmatch(
        r"Class 2 has 20 samples but (\d+) of the 20 devices ask for (\d+) \(1 of 3 classes are short\)\. "
        r"Use fewer devices, fewer samples per class, or a larger dataset\.",
        str(caught.value),
    )
    assert found is not None
    assert int(found[2]) == 6 * int(found[1]) > 20


def test_a_device_without_a_query_sample_is_named_with_the_fix():
    with pytest.raises(DataError) as caught:
        deal("iid", balanced_labels(), num_devices=40, samples_per_device=10, shots=5)
    assert re.match(
        r"Device \d+ has 10 samples of \d+ classes: after 5 support per class 0 are left for its query set, "
        r"needs 1 \(\d+ of 40 devices lack query samples\)\. Give each device more samples, or use fewer",
        str(caught.value),
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "papre"}, 'There is no partition "papre". Did you mean "paper"?'),
        ({"num_devices": 0}, "num_devices must be a whole number >= 1, got 0"),
        ({"shots": 0}, "shots must be a whole number >= 1, got 0"),
        ({"min_query": 0}, "min_query must be a whole number >= 1, got 0"),
        ({"classes_per_device": 0}, "classes_per_device must be a whole number >= 1, got 0"),
        ({"mean_samples_per_class": 0.0}, "mean_samples_per_class must be > 0"),
        ({"std_samples_per_class": -1.0}, "std_samples_per_class >= 0, got 5.0 and -1.0"),
        ({"max_samples_per_class": 1}, "max_samples_per_class must be a whole number >= 2, got 1"),
        ({"kind": "dirichlet", "concentration": 0.0}, "concentration must be > 0, got 0.0"),
        ({"kind": "iid", "samples_per_device": 0}, "samples_per_device must be a whole number >= 1, got 0"),
    ],
)
def test_values_out_of_range_are_refused(options, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        deal(**{"kind": "paper", "labels": balanced_labels(), **options})


def test_the_options_of_a_kind_are_those_that_its_function_names():
    assert set(partition_options("paper")) == {
        "num_devices",
        "classes_per_device",
        "mean_samples_per_class",
        "std_samples_per_class",
        "max_samples_per_class",
    }
    assert set(partition_options("dirichlet")) == {"num_devices", "concentration", "samples_per_device"}
    assert partition_options("iid") == ("num_devices", "samples_per_device")
    with pytest.raises(ConfigError, match='There is no partition "idd". Did you mean "iid"?'):
        partition_options("idd")


@pytest.mark.parametrize(
    ("kind", "option", "message"),
    [
        (
            "paper",
            "samples_per_device",
            'It is an option of dirichlet and iid, not of "paper". Leave it out.',
        ),
        ("iid", "concentration", 'It is an option of dirichlet, not of "iid".'),
        (
            "dirichlet",
            "concentratoin",
            "partition \"dirichlet\" has no option 'concentratoin'. Did you mean ",
        ),
        ("iid", "supply", "It is filled in for every such part."),
    ],
)
def test_options_of_another_kind_are_refused(kind, option, message):
    with pytest.raises(ConfigError, match=re.escape(message)) as caught:
        deal(kind, balanced_labels(), **{option: 5})
    assert "\n" not in str(caught.value)


def first_class_only(supply, num_devices, *, rng, shots, num_each=3, **ignored):
    assert not ignored
    assert shots == 2
    counts = np.zeros((num_devices, len(supply)), dtype=np.int64)
    counts[:, 0] = num_each
    return counts


def all_alike(supply, num_devices, size=4, *, rng):
    return np.full((num_devices, len(supply)), size)


def no_options(supply, num_devices, rng):
    return first_class_only(supply, num_devices, rng=rng, shots=2)


@pytest.mark.parametrize(
    "counts", [np.full((2, 10), 3.0), np.full((2, 9), 3), np.full(10, 3), np.full((2, 10), -1), None]
)
def test_what_is_no_whole_number_of_samples_of_each_class_is_refused(monkeypatch, counts):
    monkeypatch.setitem(PARTITIONS, "wrong", lambda: counts)
    with pytest.raises(DataError, match=r"^partition wrong must return counts of shape \(devices, 10\)"):
        partition(balanced_labels(), kind="wrong", num_classes=10, rng=stream())


def test_a_function_of_the_user_is_a_partition_with_its_own_options(monkeypatch):
    monkeypatch.setitem(PARTITIONS, "first", first_class_only)
    monkeypatch.setitem(PARTITIONS, "plain", no_options)
    monkeypatch.setitem(PARTITIONS, "alike", all_alike)
    assert partition_options("first") == ("num_devices", "num_each")
    assert [d.num_samples for d in deal("first", balanced_labels(), num_devices=2, shots=2)] == [3, 3]
    (device,) = deal("first", balanced_labels(), num_devices=1, shots=2, num_each=5)
    assert device.num_samples == 5
    assert device.classes == (0,)
    assert partition_options("plain") == ("num_devices",)
    assert partition_options("alike") == ("num_devices", "size")
    with pytest.raises(
        ConfigError, match='partition "plain" has no option .weight.. Choose one of: num_devices.'
    ):
        deal("plain", balanced_labels(), weight=4)


@pytest.mark.parametrize("kind", ["dirichlet", "iid"])
def test_more_samples_than_there_are_is_refused_with_the_numbers(kind):
    message = (
        "30 devices with 200 samples each need 6000 samples but the dataset has 4000. Use at most 20 devices"
    )
    with pytest.raises(DataError, match=message):
        deal(kind, balanced_labels(), samples_per_device=200)


@given(num_devices=st.integers(1, 200), fraction=st.floats(0, 0.999), seed=st.integers(0, 100))
def test_training_and_heldout_devices_make_up_all_devices(num_devices, fraction, seed):
    train, heldout = split_heldout(num_devices, heldout_fraction=fraction, rng=stream(seed))
    assert np.array_equal(np.sort(np.concatenate([train, heldout])), np.arange(num_devices))
    assert np.all(np.diff(train) > 0)
    assert np.all(np.diff(heldout) > 0)
    assert len(train) >= 1


def test_all_but_one_device_can_be_held_out():
    train, heldout = split_heldout(3, heldout_fraction=0.99, rng=stream())
    assert (len(train), len(heldout)) == (1, 2)


def test_a_class_that_is_just_used_up_is_not_short(monkeypatch):
    monkeypatch.setitem(PARTITIONS, "alike", all_alike)
    labels = np.repeat([0, 1, 2], [12, 13, 11])
    with pytest.raises(DataError, match=r"Class 2 has 11 samples .* ask for 12 \(1 of 3 classes are short\)"):
        deal("alike", labels, num_devices=3, num_classes=3)


def test_half_of_the_devices_are_held_out_by_default():
    train, heldout = split_heldout(100, rng=stream())
    assert len(train) == len(heldout) == 50


def test_a_heldout_fraction_of_one_is_refused():
    with pytest.raises(ConfigError, match=r"heldout_fraction must be in \[0, 1\), got 1\.0"):
        split_heldout(10, heldout_fraction=1.0, rng=stream())
