"""Our kinds of interference and placement keep their contracts, and what broken parts of a cell are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedwave.errors import ConfigError
from fedwave.testing import check_channel, check_interference, check_placement
from fedwave.wireless.channels.placement import PLACEMENTS
from fedwave.wireless.interference import INTERFERENCES
from tests.testing.broken import complaint

# A new kind needs an entry here.
INTERFERENCE_OPTIONS: dict[str, dict[str, Any]] = {
    "none": {},
    "drawn": {"power_w": {"low": 0.0, "high": 0.8}},
    "evenly-spaced": {"low_w": 0.0, "high_w": 0.5},
    "noise-rise": {"rise_db": 3.0},
    "hexagonal": {
        "site_distance_m": 500.0,
        "p0_dbm": -80.0,
        "reference_loss_db": 40.0,
        "exponent": 3.5,
    },
    "listed": {"power_w": [0.1, 0.2, 0.3, 0.4]},
}
PLACEMENT_OPTIONS: dict[str, dict[str, Any]] = {
    "disc": {"radius_m": 100.0, "min_distance_m": 10.0},
    "uniform-distance": {"min_distance_m": 2.0, "max_distance_m": 50.0},
    "file": {},
}


@pytest.mark.parametrize("kind", INTERFERENCES)
def test_every_kind_of_interference_keeps_the_contract(kind: str) -> None:
    check_interference(kind, **INTERFERENCE_OPTIONS[kind])


@pytest.mark.parametrize("kind", PLACEMENTS)
def test_every_placement_keeps_the_contract(kind: str, tmp_path: Path) -> None:
    options = dict(PLACEMENT_OPTIONS[kind])
    if kind == "file":
        options["path"] = tmp_path / "places.csv"
        options["path"].write_text("x_m,y_m\n" + "".join(f"{i},{2 * i}\n" for i in range(1, 7)))
    check_placement(kind, **options)


def test_options_that_do_not_fit_are_told_in_one_line() -> None:
    with pytest.raises(ConfigError, match="radius_m") as caught:
        check_placement("disc", radius_m=-1.0)
    assert "\n" not in str(caught.value)


class Good:
    """A channel without faults."""

    large_scale: Any = None
    ergodic_k_factor: Any = None
    has_own_rounds: Any = False
    warnings: Any = ()

    def __init__(self, num_devices: int) -> None:
        self.num_devices = num_devices

    def gain(self, round_index: int, *, rng: Any) -> Any:
        return rng.uniform(0.1, 1.0, self.num_devices)


class Drifts(Good):
    """Its gains depend on how often it was asked."""

    drift = 0.0

    def gain(self, round_index: int, *, rng: Any) -> Any:
        self.drift += 0.1
        return super().gain(round_index, rng=rng) + self.drift


class LooksBack(Good):
    """Round k goes on from round k - 1, if that was the last one asked for."""

    last = -1

    def gain(self, round_index: int, *, rng: Any) -> Any:
        went_back = round_index < self.last
        self.last = round_index
        return super().gain(round_index, rng=rng) / (2.0 if went_back else 1.0)


class LendsItsArray(Good):
    def __init__(self, num_devices: int) -> None:
        self.gains = np.full(num_devices, 0.5)

    def gain(self, round_index: int, *, rng: Any) -> Any:
        return self.gains


class InDecibels(Good):
    def gain(self, round_index: int, *, rng: Any) -> Any:
        return rng.uniform(-100.0, -80.0, self.num_devices)


class WrongShape(Good):
    def gain(self, round_index: int, *, rng: Any) -> Any:
        return np.ones((self.num_devices, 3))


class SinglePrecision(Good):
    def gain(self, round_index: int, *, rng: Any) -> Any:
        return np.ones(self.num_devices, dtype=np.float32)


class NotFinite(Good):
    def gain(self, round_index: int, *, rng: Any) -> Any:
        return np.full(self.num_devices, np.inf)


class NotAlone(Good):
    def gain(self, round_index: int, *, rng: Any) -> Any:
        return np.ones(self.num_devices) / (self.num_devices - 1)


class SaysTooLittle(Good):
    has_own_rounds = None


class WarnsInText(Good):
    warnings = "take care"


class ShortFactors(Good):
    ergodic_k_factor = np.zeros(1)


class MovesItsPlaces(Good):
    def __init__(self, num_devices: int) -> None:
        super().__init__(num_devices)
        gain, position = np.random.default_rng().random(num_devices), np.zeros((num_devices, 2))
        self.large_scale = type("LargeScale", (), {"position_m": position, "gain": gain})


@pytest.mark.parametrize(
    ("channel", "message"),
    [
        (Drifts, r"Drifts\.gain must answer alike"),
        (LooksBack, r"gain of round 0 must not depend on the rounds asked for before"),
        (LendsItsArray, r"gain of round 2 must not depend|gain must be >= 0"),
        (InDecibels, r"gain must be >= 0, got .*linear, not in dB"),
        (WrongShape, r"gain must have shape \(6, 4\), got \(6, 3\)"),
        (SinglePrecision, r"gain must be float64, got float32"),
        (NotFinite, r"gain must be finite"),
        (NotAlone, r"gain must (be finite|answer whatever)"),
        (SaysTooLittle, r"has_own_rounds must be True or False, got None"),
        (WarnsInText, r"warnings must be a tuple of texts"),
        (ShortFactors, r"ergodic_k_factor must have shape \(6,\), got \(1,\)"),
        (MovesItsPlaces, r"must place devices by its seed alone"),
        (lambda num_devices: object(), r"must have large_scale, .* got none of"),
    ],
)
def test_a_broken_channel_is_named_with_what_it_must_do(channel: Any, message: str) -> None:
    with np.errstate(divide="ignore"):
        assert complaint(message, check_channel, channel)


def test_a_channel_without_faults_passes() -> None:
    check_channel(Good)
    check_channel("tests.testing.test_radio:Good", num_devices=3, num_blocks=1)


class Quiet:
    def draw_w(self, *, num_blocks: int, noise_w: float, rng: Any) -> Any:
        return np.full(num_blocks, noise_w)


class Negative(Quiet):
    def draw_w(self, *, num_blocks: int, noise_w: float, rng: Any) -> Any:
        return -np.ones(num_blocks)


class FourAlways(Quiet):
    def draw_w(self, *, num_blocks: int, noise_w: float, rng: Any) -> Any:
        return np.ones(4)


class Rising(Quiet):
    level = 0.0

    def draw_w(self, *, num_blocks: int, noise_w: float, rng: Any) -> Any:
        self.level += 1.0
        return np.full(num_blocks, self.level)


class Lent(Quiet):
    def __init__(self, num_blocks: int) -> None:
        self.kept = np.ones(num_blocks)

    def draw_w(self, *, num_blocks: int, noise_w: float, rng: Any) -> Any:
        return self.kept


@pytest.mark.parametrize(
    ("interference", "message"),
    [
        (Negative, r"Negative\.draw_w must be >= 0"),
        (FourAlways, r"draw_w must have shape \(1,\), got \(4,\)"),
        (Rising, r"draw_w must answer alike"),
        (Lent, r"draw_w must be new"),
    ],
)
def test_broken_interference_is_named_with_what_it_must_do(interference: Any, message: str) -> None:
    check_interference(Quiet)
    assert complaint(message, check_interference, interference)


class AtHome:
    def positions_m(self, num_devices: int, *, rng: Any) -> Any:
        return np.zeros((num_devices, 2))


class OnALine(AtHome):
    def positions_m(self, num_devices: int, *, rng: Any) -> Any:
        return np.zeros(num_devices)


class Restless(AtHome):
    def positions_m(self, num_devices: int, *, rng: Any) -> Any:
        return np.random.default_rng().random((num_devices, 2))


class Nowhere(AtHome):
    def positions_m(self, num_devices: int, *, rng: Any) -> Any:
        return np.full((num_devices, 2), np.nan)


@pytest.mark.parametrize(
    ("placement", "message"),
    [
        (OnALine, r"OnALine\.positions_m must have shape \(6, 2\), got \(6,\)"),
        (Restless, r"positions_m must answer alike"),
        (Nowhere, r"positions_m must be finite"),
    ],
)
def test_a_broken_placement_is_named_with_what_it_must_do(placement: Any, message: str) -> None:
    check_placement(AtHome)
    assert complaint(message, check_placement, placement)
