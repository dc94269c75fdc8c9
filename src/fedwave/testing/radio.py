"""The contracts of channels, interference and placements: what a cell is drawn from."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedwave.errors import shown
from fedwave.testing.contract import Contract, create, refuses
from fedwave.units import FloatArray
from fedwave.wireless.channels import CHANNEL, Channel
from fedwave.wireless.channels.placement import PLACEMENT
from fedwave.wireless.interference import INTERFERENCE

BANDWIDTH_HZ, NOISE_W = 360e3, 1.4e-15  # two resource blocks at 15 kHz, at room temperature
CHANNEL_MEMBERS = ("large_scale", "has_own_rounds", "warnings", "ergodic_k_factor", "gain")
FRESH = "Compute it from the round and rng alone, and return a new array."


def check_channel(part: Any, /, *, num_devices: int = 6, num_blocks: int = 4, **options: Any) -> None:
    """Raise unless a channel keeps its contract: gains of a round depend on the round and rng alone, …

    It is called with its options and with those of ``num_devices``, ``num_blocks``, ``bandwidth_hz`` and
    ``seed`` that it names. It may refuse a single device; a recording of six devices does.
    """
    contract = Contract.of(part)

    def make(count: int = num_devices) -> Channel:
        made: Channel = create(
            CHANNEL,
            part,
            options,
            num_devices=count,
            num_blocks=num_blocks,
            bandwidth_hz=BANDWIDTH_HZ,
            seed=3,
        )
        return made

    _check_channel(contract, make(), make(), num_devices, num_blocks)
    if not refuses(lambda: make(1)):
        _check_channel(contract, make(1), make(1), 1, num_blocks)


def _check_channel(
    contract: Contract, in_order: Channel, alone: Channel, num_devices: int, num_blocks: int
) -> None:
    missing = [name for name in CHANNEL_MEMBERS if not hasattr(in_order, name)]
    every = ", ".join(CHANNEL_MEMBERS)
    contract.require(
        not missing, f" must have {every}", f"none of {missing}", "Add them; None and () will do."
    )
    rounds = []
    for k in range(3):
        gain = contract.answer("gain", in_order.gain, k, seed=k)
        per_block = np.ndim(gain) == 2
        contract.array(
            ".gain", gain, (num_devices, num_blocks) if per_block else (num_devices,), at_least=0.0
        )
        rounds.append(gain.copy())
        gain[:] = -1.0  # whoever holds the array may change it
    for k in (2, 0, 1):
        _require_same_gain(contract, alone.gain(k, rng=np.random.default_rng(k)), rounds[k], k)
        _require_same_gain(contract, in_order.gain(k, rng=np.random.default_rng(k)), rounds[k], k)
    own: object = in_order.has_own_rounds
    contract.require(isinstance(own, bool), ".has_own_rounds must be True or False", own, "Say which.")
    texts: object = in_order.warnings
    are_texts = isinstance(texts, tuple) and all(isinstance(text, str) for text in texts)
    contract.require(are_texts, ".warnings must be a tuple of texts", texts, "Use () for none.")
    if in_order.ergodic_k_factor is not None:
        contract.array(".ergodic_k_factor", in_order.ergodic_k_factor, (num_devices,), at_least=0.0)
    places = in_order.large_scale
    if places is not None:
        contract.array(".large_scale.position_m", places.position_m, (num_devices, 2), at_least=None)
        contract.array(".large_scale.gain", places.gain, (num_devices,), at_least=0.0)
        assert alone.large_scale is not None
        contract.same(places.gain, alone.large_scale.gain, " must place devices by its seed alone")


def _require_same_gain(contract: Contract, got: FloatArray, before: FloatArray, round_index: int) -> None:
    what = f".gain of round {round_index} must not depend on the rounds asked for before"
    contract.require(np.array_equal(got, before), what, f"{shown(got)} and {shown(before)}", FRESH)


def check_interference(part: Any, /, *, num_blocks: int = 4, **options: Any) -> None:
    """Raise unless interference keeps its contract: a power in watts for each block, by rng alone."""
    contract = Contract.of(part)
    for count in (num_blocks, 1):
        if count == 1 and refuses(lambda: create(INTERFERENCE, part, options, num_blocks=1)):
            continue
        first, again = (create(INTERFERENCE, part, options, num_blocks=count) for _ in range(2))
        for seed in range(3):
            given = {"num_blocks": count, "noise_w": NOISE_W}
            power_w = contract.answer("draw_w", first.draw_w, seed=seed, **given)
            contract.array(".draw_w", power_w, (count,), at_least=0.0)
            kept = power_w.copy()
            power_w[:] = -1.0
            fresh = again.draw_w(**given, rng=np.random.default_rng(seed))
            contract.same(kept, fresh, ".draw_w must not depend on the draws before")
            contract.same(kept, first.draw_w(**given, rng=np.random.default_rng(seed)), ".draw_w must be new")


def check_placement(part: Any, /, *, num_devices: int = 6, **options: Any) -> None:
    """Raise unless a placement keeps its contract: a position in metres for each device, by rng alone."""
    contract = Contract.of(part)
    placement, again = (create(PLACEMENT, part, options) for _ in range(2))
    for count in (num_devices, 1):
        if count == 1 and refuses(lambda: placement.positions_m(1, rng=np.random.default_rng(0))):
            continue
        for seed in range(3):
            position_m = contract.answer("positions_m", placement.positions_m, count, seed=seed)
            contract.array(".positions_m", position_m, (count, 2), at_least=None)
            fresh = again.positions_m(count, rng=np.random.default_rng(seed))
            contract.same(position_m, fresh, ".positions_m must not depend on the draws before")
