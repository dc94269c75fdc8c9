"""Options of a named part are those of its own signature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from fedwave.errors import ConfigError
from fedwave.settings.options import options_of, require_known, require_options


def part(first: int, /, second: int, third: int = 3, *rest: int, fourth: int, **others: Any) -> None:
    raise NotImplementedError


@dataclass(frozen=True)
class Part:
    size: int
    colour: str = "red"


def test_options_are_what_a_part_takes_by_keyword() -> None:
    assert options_of(part) == ("second", "third", "fourth")
    assert options_of(part, reserved=("third", "absent")) == ("second", "fourth")
    assert options_of(Part) == ("size", "colour")
    assert options_of(Part, reserved=["size"]) == ("colour",)


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    require_known("mean", {"mean": 1, "momentum": 2}, key="server_step")
    with pytest.raises(ConfigError) as caught:
        require_known("momentun", {"mean": 1, "momentum": 2}, key="algorithm.server_step")
    expected = 'algorithm.server_step must be known, got "momentun". Did you mean "momentum"?'
    assert str(caught.value) == expected
    with pytest.raises(ConfigError, match="Choose one of: mean, momentum."):
        require_known("xyz", {"mean": 1, "momentum": 2}, key="k")


def test_an_option_of_another_part_is_refused() -> None:
    require_options({}, (), table="t", owner="o")
    require_options({"size": 1}, ("size", "colour"), table="t", owner="o")
    with pytest.raises(ConfigError) as caught:
        require_options({"size": 1, "color": 1}, ("size", "colour"), table="selection.options", owner="part")
    assert str(caught.value) == 'selection.options.color is not an option of "part". Did you mean "colour"?'
    with pytest.raises(ConfigError) as caught:
        require_options({"size": 1}, (), table="t", owner="mean")
    assert str(caught.value) == 't.size is not an option of "mean". It has no options; leave the table out.'
