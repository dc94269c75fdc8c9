"""Options of parts, a user's own among them: checked by the part's signature, as far as it says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from fedwave.allocation import METHODS, Method, allocate
from fedwave.errors import ConfigError
from fedwave.experiments.part_options import require_part_options
from tests.experiments.cell_tables import PAPER_CELL, experiment

if TYPE_CHECKING:
    from decimal import Decimal


def typed(problem: Any, *, selected: Any, share: float = 0.5, steps: int | None = None) -> Any:
    """A method of the user's own."""
    del share, steps
    return allocate(problem, "fedl", selected=selected)


def without_types(problem, *, selected, share=0.5):
    del share
    return allocate(problem, "fedl", selected=selected)


def typed_elsewhere(share: Decimal) -> Decimal:
    return share


@pytest.mark.parametrize(("name", "value"), [("share", 1), ("share", 0.25), ("steps", 3), ("steps", None)])
def test_a_value_of_the_declared_type_is_taken(name: str, value: Any) -> None:
    require_part_options({name: value}, typed, ("share", "steps"), table="t", owner="typed")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"share": "0.5"}, "t.share of \"typed\" must be a valid number, got '0.5'. Give it that type."),
        ({"steps": 2.0}, 't.steps of "typed" must be a valid integer, got 2.0. Give it that type.'),
        ({"shear": 0.5}, 't.shear is not an option of "typed". Did you mean "share"?'),
    ],
)
def test_another_name_or_type_is_one_line(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        require_part_options(given, typed, ("share", "steps"), table="t", owner="typed")


def test_a_part_that_declares_no_types_here_takes_what_it_is_given() -> None:
    for part in (without_types, typed_elsewhere):
        require_part_options({"share": "a half"}, part, ("share",), table="t", owner="own")


def test_a_method_of_the_users_own_takes_options_and_serves_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.experiments.cell_tables import one_round

    monkeypatch.setitem(METHODS, "own", Method(typed, serves_given_devices=True))
    cell = {**PAPER_CELL, "method": "own", "method_options": {"share": 0.25}}
    assert one_round(experiment(cell))[3].columns["num_selected"] == 3
    with pytest.raises(ConfigError, match=r'^cell\.method_options\.share of "own" must be a valid number'):
        experiment({**cell, "method_options": {"share": True}})
