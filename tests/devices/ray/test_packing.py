"""Models travel to the bit, and the user's own code is found: nothing of installed packages."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from fedwave.devices.ray.packing import own_modules, pack, unpack
from fedwave.learning.tasks.classification import Classification
from tests.learning.models import user_modules


def test_a_model_comes_back_to_the_bit_in_its_order() -> None:
    wide = torch.arange(12.0).reshape(3, 4)
    model = {
        "z": torch.tensor([1.5, -0.0, float("nan")]),
        "a": torch.tensor(3.0, dtype=torch.float64),
        "transposed": wide.T,
        "half": torch.tensor([[1.0, 2.0]], dtype=torch.bfloat16),
        "count": torch.tensor([7], dtype=torch.int64),
        "nothing": torch.zeros(0, 3),
        "leaf": torch.ones(2, requires_grad=True),
    }
    packed = pack(model)
    for _, _, _, content in packed:
        content.flags.writeable = False  # as an object store lends it
    back = unpack(packed)
    assert list(back) == list(model)
    for name, value in model.items():
        assert back[name].dtype == value.dtype
        assert back[name].shape == value.shape
        ours = back[name].flatten().view(torch.uint8)
        assert ours.tolist() == value.detach().contiguous().flatten().view(torch.uint8).tolist()
    assert back["transposed"][1].tolist() == [1.0, 5.0, 9.0]
    back["z"][0] = 9.0
    assert packed[0][3].view(np.float32)[0] == 1.5  # the memory is its own


def test_own_code_is_what_lies_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_pkg").mkdir()
    (tmp_path / "own_pkg" / "__init__.py").write_text("")
    (tmp_path / "own_pkg" / "net.py").write_text("import torch, json, own_layers\ndef build(): ...\n")
    (tmp_path / "own_layers.py").write_text("")
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "installed.py").write_text("def build(): ...\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site-packages"))
    monkeypatch.syspath_prepend(str(tmp_path))
    import installed
    import own_pkg.net

    try:
        found = {module.__name__ for module in own_modules([own_pkg.net.build])}
        assert found == {"own_pkg", "own_pkg.net", "own_layers"}
        assert own_modules([installed.build]) == []
    finally:
        for name in ("installed", "own_pkg", "own_pkg.net", "own_layers"):
            sys.modules.pop(name, None)


def test_code_of_others_does_not_travel() -> None:
    assert own_modules([Classification, torch.nn.Linear, json.dumps, int, None]) == []
    names = {module.__name__ for module in own_modules([user_modules.small_user_net])}
    assert "tests.learning.models.user_modules" in names
    assert not {name.split(".")[0] for name in names} & {"fedwave", "torch", "numpy", "pytest", "json"}
