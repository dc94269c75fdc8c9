"""What a check says of a broken part."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from fedwave.testing import ContractError


def complaint(message: str, check: Callable[..., None], *parts: Any, **options: Any) -> str:
    """Return what the check says, which is one line that the pattern is found in."""
    with pytest.raises(ContractError) as caught:
        check(*parts, **options)
    said = str(caught.value)
    assert re.search(message, said), said
    assert "\n" not in said
    assert ", got " in said
    return said
