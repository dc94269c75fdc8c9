"""A checkpoint comes back to the bit, or not at all."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load, save

from fedwave.runs.checkpoint import Checkpoint

TENSORS = {
    "parameters.weight": torch.tensor([[1.5, -2.0]]),
    "parameters.half": torch.tensor([1.0, 2.0], dtype=torch.bfloat16),
    "planner.is_known": torch.tensor([True, False]),
    "ledger.elapsed_s": torch.tensor(3.25, dtype=torch.float64),
    "ledger.nobody": torch.zeros(0, dtype=torch.int64),
}
SAVED = Checkpoint("0123456789abcdef", 2, {"rounds.csv": (24, "aa")}, TENSORS)


def same(one: Checkpoint, other: Checkpoint) -> bool:
    tensors, others = one.tensors, other.tensors
    return (one.identity, one.next_round, dict(one.tables), set(tensors)) == (
        other.identity,
        other.next_round,
        dict(other.tables),
        set(others),
    ) and all(
        tensors[name].dtype == others[name].dtype and torch.equal(tensors[name], others[name])
        for name in tensors
    )


def test_a_checkpoint_comes_back_to_the_bit_and_equal_ones_have_equal_bytes() -> None:
    assert same(Checkpoint.from_bytes(SAVED.to_bytes()), SAVED)
    assert SAVED.to_bytes() == replace(SAVED, tensors=dict(reversed(TENSORS.items()))).to_bytes()


def test_whatever_bit_is_flipped_the_checkpoint_is_refused_or_the_same() -> None:
    content = SAVED.to_bytes()
    for at in range(len(content)):
        for bit in range(8):
            damaged = bytearray(content)
            damaged[at] ^= 1 << bit
            try:
                found = Checkpoint.from_bytes(bytes(damaged))
            except ValueError:
                continue
            assert same(found, SAVED), (at, bit)  # such as another blank in the header


def about_of(content: bytes) -> dict[str, object]:
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    found: dict[str, object] = json.loads(header["__metadata__"]["run"])
    return found


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"next_round": 1}, "does not have the checksum that it was written with"),
        ({"identity": "f" * 16}, "does not have the checksum that it was written with"),
        ({"tables": {}}, "does not have the checksum that it was written with"),
        ({"tables": {"rounds.csv": [24, "ab"]}}, "does not have the checksum that it was written with"),
        ({"tables": {"rounds.csv": 24}}, "does not say which run and round it is of"),
        ({"tables": 3}, "does not say which run and round it is of"),
        ({"sha256": None}, "does not have the checksum that it was written with"),
        ({"next_round": "2"}, "does not say which run and round it is of"),
        ({"next_round": True}, "does not say which run and round it is of"),
        ({"identity": 7}, "does not say which run and round it is of"),
    ],
)
def test_what_it_says_of_itself_cannot_be_edited(change: dict[str, object], said: str) -> None:
    content = SAVED.to_bytes()
    edited = save(load(content), {"run": json.dumps(about_of(content) | change)})
    with pytest.raises(ValueError, match=said):
        Checkpoint.from_bytes(edited)


@pytest.mark.parametrize(
    "tensors",
    [
        {name: value for name, value in TENSORS.items() if name != "ledger.nobody"},
        TENSORS | {"parameters.more": torch.zeros(0)},
        TENSORS | {"parameters.weight": torch.tensor([1.5, -2.0])},
        TENSORS | {"ledger.nobody": torch.zeros(0, dtype=torch.int32)},
        TENSORS | {"parameters.weight": torch.tensor([[-2.0, 1.5]])},
    ],
)
def test_tensors_cannot_be_exchanged(tensors: dict[str, torch.Tensor]) -> None:
    exchanged = save(tensors, {"run": json.dumps(about_of(SAVED.to_bytes()))})
    with pytest.raises(ValueError, match="does not have the checksum that it was written with"):
        Checkpoint.from_bytes(exchanged)


def test_a_checkpoint_of_an_older_version_is_refused() -> None:
    old = save(TENSORS, {"run": json.dumps({"identity": "0123456789abcdef", "next_round": 2})})
    with pytest.raises(ValueError, match="it has no checksum, so an older version of fedwave wrote it"):
        Checkpoint.from_bytes(old)
