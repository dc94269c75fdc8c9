"""The digest of right results is that of torch's, and nothing else passes for it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from fedwave.learning.models.fast_cnn import kernel_check
from fedwave.learning.models.fast_cnn import patches as patches_module
from fedwave.learning.models.fast_cnn.kernel_check import EXTENT, SLOPE, values
from fedwave.learning.models.fast_cnn.patches import overlap_of, patches_of
from fedwave.learning.models.fast_cnn.pooling import TorchPooling


def tensor(seed: int, *shape: int) -> Tensor:
    return torch.tensor(values(torch.Size(shape).numel(), seed)).view(shape)


def test_the_right_digest_is_that_of_torchs_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patches_module, "kernels_for", lambda _: None)
    images, channels = EXTENT[0], EXTENT[3]
    pooled = (images, 3, 2, channels)
    way = TorchPooling()
    responses = tensor(1, *EXTENT)
    outputs, places = torch.empty(pooled), torch.empty(pooled, dtype=way.places)
    way.pool(responses, tensor(2, images, channels), SLOPE, outputs, places)
    through, spread = torch.empty(pooled), torch.empty(EXTENT)
    way.unpool(tensor(3, *pooled), outputs, places, through, slope=SLOPE, spread=spread)
    picked = tensor(4, *pooled)
    way.pick(responses, places, picked)
    patches = patches_of(responses[None])
    overlap = overlap_of(tensor(5, *patches.shape), torch.Size((1, *EXTENT[:3])))
    found = [one.flatten().tolist() for one in (outputs, through, spread, picked, patches, overlap)]
    assert all(len(set(one)) > 10 for one in found)
    assert kernel_check.digest_of(found) == kernel_check.RIGHT_DIGEST


def test_other_results_have_another_digest() -> None:
    assert kernel_check.digest_of([[0.0], [1.0]]) != kernel_check.digest_of([[-0.0], [1.0]])


def test_what_is_no_library_is_an_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("no library")
    with pytest.raises(OSError, match=r"text.so"):
        kernel_check.load(str(tmp_path / "text.so"))
