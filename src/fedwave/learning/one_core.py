"""Torch on one core: on several, sums are split, and their last bits depend on how many there are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_core() -> Iterator[None]:
    """Let what this thread asks of torch run on one core, so that the order of sums never changes."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
