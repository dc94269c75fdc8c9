"""Processors by name: what measured or published ones take in cycles and joules, for ``fleet.cpu``.

A cycle takes iota/2 nu^2 + P_0 / nu + e_0 joules. Sources, what is measured and what derived: docs/cell.md.
"""

from __future__ import annotations

from fedwave.wireless.settings.distribution import Distribution, Uniform

CPU_SETS: dict[str, dict[str, Distribution]] = {
    # Dinh et al., FEDL, as published: no leakage, so that ever slower is ever cheaper.
    "fedl": {
        "max_frequency_hz": Uniform(low=1e9, high=2e9),
        "min_frequency_hz": 0.3e9,
        "capacitance": 2e-28,
        "cycles_per_operation": Uniform(low=0.25, high=0.5),  # assumed: 2 to 4 multiply-adds a cycle
    },
    # 200 pJ a multiply-add at 2.4 GHz (DeepEn2023: 160 to 240), the least energy at 0.81 GHz (De Vogeleer et
    # al. 2014: a minimum between 0.2 and 1.6 GHz): two equations for capacitance and static power.
    "phone": {
        "max_frequency_hz": Uniform(low=1.8e9, high=2.8e9),
        "min_frequency_hz": 0.3e9,
        "capacitance": 1.7e-28,
        "static_power_w": 0.09,
        "cycles_per_operation": Uniform(low=0.25, high=0.5),
    },
    # Raspberry Pi 4: Linpack takes 5.2 W at 1.5 GHz (CM4) and 7.2 W at 1.8 GHz, 0.26 and 0.30 cycles for each
    # multiply-add in double precision: again two equations. Their 2.45 W is what the board draws idle.
    "single-board": {
        "max_frequency_hz": Uniform(low=1.5e9, high=1.8e9),
        "min_frequency_hz": 0.6e9,
        "capacitance": 1.63e-27,
        "static_power_w": 2.45,
        "cycles_per_operation": Uniform(low=0.26, high=0.30),
    },
    # STM32L4R5, Cortex-M4 at 120 MHz, MLPerf Tiny v1.1: the four benchmarks take 1.4 to 2.2 nJ and 2.1 to 3.5
    # cycles a multiply-add (8-bit inference). Its core voltage stays, so a cycle costs the same at any speed.
    "microcontroller": {
        "max_frequency_hz": 120e6,
        "capacitance": 0.0,
        "joules_per_operation": Uniform(low=1.4e-9, high=2.2e-9),
        "cycles_per_operation": Uniform(low=2.1, high=3.5),
    },
}
