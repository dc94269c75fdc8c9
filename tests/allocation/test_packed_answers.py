from __future__ import annotations

import pickle
from dataclasses import fields, replace

import numpy as np
import pytest

from fedwave.allocation import Allocation, allocate
from fedwave.allocation.packed_answers import packed, unpacked
from tests.allocation.allocation_problems import paper_problem


def same(one, other):
    """Return whether two answers agree to the last bit, and in what their arrays are."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        is_alike = (one.dtype, one.shape, one.flags.writeable) == (
            other.dtype,
            other.shape,
            other.flags.writeable,
        )
        return is_alike and one.tobytes() == other.tobytes()
    if hasattr(one, "__dataclass_fields__"):
        return all(same(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    return one == other


def sent(answers):
    return unpacked(pickle.loads(pickle.dumps(packed(answers))))  # noqa: S301 - our own


def answers_of(count, method="optimal", **changes):
    return [
        allocate(
            replace(paper_problem(k, num_devices=8 + k % 3, num_blocks=4), **changes),
            method,
            rng=np.random.default_rng(k),
        )
        for k in range(count)
    ]


@pytest.mark.parametrize(
    "answers",
    [
        answers_of(7),
        answers_of(1),
        answers_of(5, "random"),
        answers_of(5, access="tdma", interference_w=np.full(4, 0.3)),
        [*answers_of(3), *answers_of(2, access="tdma", interference_w=np.full(4, 0.3))],  # None and arrays
        [replace(one, account=None) for one in answers_of(3)],
        [],
    ],
)
def test_answers_arrive_as_they_were(answers):
    found = sent(answers)
    assert len(found) == len(answers)
    assert all(same(one, other) for one, other in zip(found, answers, strict=True))


def test_each_answer_has_memory_of_its_own():
    for one in sent(answers_of(3)):
        assert one.transmit_power_w.base is None
        assert one.account.sinr.base is None


def test_few_long_arrays_are_sent():
    answers = answers_of(60)
    assert len(pickle.dumps(packed(answers))) < 0.8 * len(pickle.dumps(answers))
    assert isinstance(packed(answers).columns["transmit_power_w"].values, np.ndarray)


class Mine(Allocation):
    """An answer of a user's own method."""


def test_other_classes_and_other_arrays_are_sent_as_they_are():
    one = answers_of(1)[0]
    mine = Mine(**{field.name: getattr(one, field.name) for field in fields(Allocation)})
    object.__setattr__(mine, "note", "by hand")
    (found,) = sent([mine])
    assert type(found) is Mine
    assert found.note == "by hand"
    table = replace(one, trace=np.zeros((2, 3)))
    words = replace(one, trace=np.array(["a", None], dtype=object))
    narrow = replace(one, trace=np.ones(2, dtype=np.float32))
    for answers in ([table, table], [words, words], [one, narrow]):
        found = sent(answers)
        assert [other.trace.tolist() for other in found] == [other.trace.tolist() for other in answers]
        assert [other.trace.dtype for other in found] == [other.trace.dtype for other in answers]
