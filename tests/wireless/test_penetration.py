"""Losses into buildings and cars against TR 38.901, clause 7.4.3: by hand, by moments, by Sionna."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fedwave.wireless.multipath import draw_multipath, indoor_multipath_table
from fedwave.wireless.penetration import draw_whereabouts, material_loss_db, wall_loss_db

MANY = 200_000


def whereabouts(scenario="umi", num_devices=MANY, **changes):
    settings = {
        "carrier_frequency_hz": 3.5e9,
        "indoor_share": 0.8,
        "car_share": 0.0,
        "high_loss_share": 0.5,
        "on_floors": False,
        **changes,
    }
    return draw_whereabouts(scenario, num_devices, rng=np.random.default_rng(5), **settings)


def test_materials_cost_what_table_7_4_3_1_says():
    # At 3.5 GHz: 2 + 0.2 f, 23 + 0.3 f, 5 + 4 f, 4.85 + 0.12 f
    expected = {"glass": 2.7, "coated-glass": 24.05, "concrete": 19.0, "wood": 5.27}
    for material, loss_db in expected.items():
        assert material_loss_db(material, carrier_frequency_hz=3.5e9) == pytest.approx(loss_db)


@pytest.mark.parametrize(
    ("carrier_frequency_hz", "high_loss", "hand_db"),
    [
        # 5 - 10 lg(0.3 * 10^-0.27 + 0.7 * 10^-1.9) = 5 - 10 lg(0.161110 + 0.008812)
        (3.5e9, False, 12.698),
        # 5 - 10 lg(0.7 * 10^-2.405 + 0.3 * 10^-1.9) = 5 - 10 lg(0.002755 + 0.003777)
        (3.5e9, True, 26.850),
        # 0.7 GHz: glass 2.14, concrete 7.8: 5 - 10 lg(0.3 * 0.610942 + 0.7 * 0.165959)
        (0.7e9, False, 10.237),
    ],
)
def test_walls_cost_what_table_7_4_3_2_says(carrier_frequency_hz, high_loss, hand_db):
    ours = wall_loss_db(carrier_frequency_hz=carrier_frequency_hz, high_loss=high_loss)
    assert ours == pytest.approx(hand_db, abs=2e-3)


@pytest.mark.parametrize(("high_loss_share", "std_db"), [(0.0, 4.4), (1.0, 6.5)])
@pytest.mark.parametrize(("scenario", "depth_m"), [("umi", 25.0), ("uma", 25.0), ("rma", 10.0)])
def test_moments_of_the_loss_into_buildings(scenario, depth_m, high_loss_share, std_db):
    inside = whereabouts(scenario, indoor_share=1.0, high_loss_share=high_loss_share)
    # The smaller of two uniform draws has the mean 1/3 and the variance 1/18.
    wall_db = wall_loss_db(carrier_frequency_hz=3.5e9, high_loss=bool(high_loss_share))
    std = math.sqrt(std_db**2 + (0.5 * depth_m) ** 2 / 18)
    assert inside.penetration_db.mean() == pytest.approx(
        wall_db + 0.5 * depth_m / 3, abs=4 * std / math.sqrt(MANY)
    )
    assert inside.penetration_db.std() == pytest.approx(std, rel=0.01)
    assert inside.inside_m.mean() == pytest.approx(depth_m / 3, rel=0.01)
    assert inside.inside_m.max() <= depth_m


def test_moments_of_the_loss_into_cars():
    inside = whereabouts("rma", indoor_share=0.0, car_share=0.5)
    in_car = inside.penetration_db[inside.is_in_car]
    assert inside.is_in_car.mean() == pytest.approx(0.5, abs=0.005)
    assert in_car.mean() == pytest.approx(9.0, abs=4 * 5 / math.sqrt(len(in_car)))
    assert in_car.std() == pytest.approx(5.0, rel=0.01)
    assert not inside.penetration_db[~inside.is_in_car].any()
    assert not inside.inside_m.any()


def test_half_of_the_buildings_have_high_losses():
    low, high = (
        whereabouts(indoor_share=1.0, high_loss_share=share).penetration_db.mean() for share in (0.0, 1.0)
    )
    half = whereabouts(indoor_share=1.0).penetration_db.mean()
    assert half == pytest.approx((low + high) / 2, abs=0.1)


def test_floors_are_those_of_tr_36_873():
    """N ~ U{4, ..., 8} floors, a device on each with the same chance; nobody outdoors is above ground."""
    inside = whereabouts(on_floors=True)
    floors = inside.floor[inside.is_indoor]
    for floor in range(8):
        chance = sum(1 / 5 / n for n in range(4, 9) if floor < n)
        assert np.mean(floors == floor) == pytest.approx(chance, abs=4 * 0.5 / math.sqrt(len(floors)))
    assert_array_equal(inside.height_m, 3.0 * inside.floor)
    assert not inside.floor[~inside.is_indoor].any()
    assert not whereabouts().floor.any()


def test_a_device_that_is_indoors_stays_so_when_more_are():
    some, more = whereabouts(indoor_share=0.3), whereabouts(indoor_share=0.8)
    assert (more.is_indoor | ~some.is_indoor).all()
    assert_array_equal(some.penetration_db[some.is_indoor], more.penetration_db[some.is_indoor])
    assert [some.where(i) for i in (0, 1)] == [
        "in a building" if indoor else "outdoors" for indoor in some.is_indoor[:2]
    ]


def test_cars_are_filled_from_those_outdoors():
    inside = whereabouts("rma", indoor_share=0.5, car_share=0.5)
    assert not (inside.is_indoor & inside.is_in_car).any()
    assert (inside.is_indoor | inside.is_in_car).all()
    assert inside.where(int(np.argmax(inside.is_in_car))) == "in a car"


@pytest.mark.parametrize("scenario", ["umi", "uma", "rma"])
def test_echoes_indoors_are_those_of_table_7_5_6(scenario):
    """Column O2I: delay spreads, and no steady path though the house is in sight."""
    n = 4000
    echoes = draw_multipath(
        scenario,
        carrier_frequency_hz=3.5e9,
        is_line_of_sight=np.ones(n, dtype=bool),
        is_indoor=np.arange(n) % 2 == 0,
        gain_normal=np.random.default_rng(0).standard_normal(n),
        rng=np.random.default_rng(1),
    )
    indoor = slice(0, n, 2)
    assert not echoes.k_factor[indoor].any()
    assert (echoes.k_factor[1::2] > 0).all()
    power, delay_s = echoes.power[indoor], echoes.delay_s[indoor]
    mean_s = (power * delay_s).sum(axis=1)
    spread_s = np.sqrt((power * delay_s**2).sum(axis=1) - mean_s**2)
    expected = {"umi": -6.62, "uma": -6.62, "rma": -7.47}[scenario]
    # As outdoors, the clusters' own spread scatters around the one drawn.
    assert np.median(np.log10(spread_s)) == pytest.approx(expected, abs=0.15)


@pytest.mark.parametrize(("scenario", "name"), [("umi", "UMi"), ("uma", "UMa"), ("rma", "RMa")])
def test_the_tables_are_those_of_sionna(scenario, name):
    import json
    from importlib import resources

    pytest.importorskip("sionna")
    folder = resources.files("sionna") / "phy" / "channel" / "tr38901" / "models" / "v19_2"
    theirs = json.loads((folder / f"{name}_O2I.json").read_text(encoding="utf-8"))
    ours = indoor_multipath_table(scenario)
    assert ours.lg_delay_spread == theirs["muDSc"]
    assert ours.lg_delay_spread_std == theirs["sigmaDSc"]
    assert ours.num_clusters == theirs["numClusters"]
    assert ours.delay_scaling == theirs["rTau"]
    assert ours.cluster_shadowing_db == theirs["zeta"]
    assert ours.cluster_delay_spread_s == pytest.approx(theirs["cDSa"] * 1e-9)
    assert ours.delay_with_gain == theirs["corrDSvsSF"]
