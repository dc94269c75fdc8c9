"""One core for a while, given back whatever happens."""

from __future__ import annotations

import pytest
import torch

from fedwave.learning.one_core import one_core


def test_one_core_is_given_back_after_an_error() -> None:
    before = torch.get_num_threads()
    with pytest.raises(ZeroDivisionError), one_core():
        _ = 1 / (torch.get_num_threads() - 1)
    assert torch.get_num_threads() == before
