from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
import tomli_w

from fedwave.allocation import allocate, violations
from fedwave.allocation.problem_file import example_problem, load_problem, parse_problem, problem_tables
from fedwave.errors import ProblemError
from fedwave.wireless.rate import RadioPower, RateModel
from tests.allocation.allocation_problems import FEATURES, link_problem


def test_the_example_is_a_valid_problem():
    problem = parse_problem(example_problem())
    assert (problem.num_devices, problem.num_blocks) == (12, 4)
    assert problem.max_power_w[0] == pytest.approx(0.19953, rel=1e-4)  # 23 dBm
    assert problem.noise_psd_w_per_hz == pytest.approx(10**-19.9, rel=1e-12)  # -169 dBm/Hz
    assert problem.max_delay_s == 20.0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[radio]", "[radios]", r'unknown table "radios". Did you mean "radio"\?'),
        (
            "bandwidth_hz",
            "bandwith_hz",
            r'unknown key "bandwith_hz" in \[radio\]. Did you mean "bandwidth_hz"\?',
        ),
        ("max_power_dbm", "max_power_dmb", r'in \[devices\]. Did you mean "max_power_dbm"\?'),
        ("energy_weight = 2.0", "", r"The problem file has no energy_weight. Add it to \[weights\]"),
        ("max_power_dbm = 23", 'max_power_dbm = "high"', r"must hold numbers in max_power_dbm, got 'high'"),
        ("max_power_dbm = 23", "max_power_dbm = 23\nmax_power_w = 1", r"gives max_power_w twice"),
        ("[blocks]", "[blocks]\nnum_blocks = 7", r"has num_blocks = 7 but 4 interferences"),
        (
            "interference_dbm = [-118, -112, -121, -109]",
            "interference_dbm = -110",
            r"one interference for all blocks but no num_blocks",
        ),
        ("interference_dbm = [-118, -112, -121, -109]", "", r"The problem file has no interference_w"),
        ("[weights]", "[weights", r"The problem file is not valid TOML: .*line"),
        ("energy_weight = 2.0", "energy_weight = true", r"must hold numbers in energy_weight, got True"),
        ("energy_weight = 2.0", 'energy_weight = "2"', r"must hold numbers in energy_weight, got '2'"),
        (
            "contribution = [9.1",
            "contribution = [true",
            r"must hold numbers in contribution, got \[True, 7.4",
        ),
        ("max_power_dbm = 23", "max_power_dbm = false", r"must hold numbers in max_power_dbm, got False"),
        (
            "max_power_dbm = 23",
            "max_power_dbm = [[1, 2], [3]]",
            r"must hold numbers in max_power_dbm, got \[\[",
        ),
        ("max_power_dbm = 23", "max_power_dbm = 99_999", r"max_power_w must be finite, got inf at index 0"),
        (
            "max_energy_j = 1.5",
            "max_energy_j = 2030-01-01",
            r"must hold numbers in max_energy_j, got datetime",
        ),
        ("[blocks]", "[blocks]\nnum_blocks = true", r"whole number >= 0 in num_blocks, got True"),
        ("[blocks]", "[blocks]\nnum_blocks = 4.0", r"whole number >= 0 in num_blocks, got 4.0"),
        ("[blocks]", "[blocks]\nnum_blocks = -1", r"whole number >= 0 in num_blocks, got -1"),
        ("[devices]", "[devices]\ncsv = 3", r"must name a file in csv, got 3"),
        ("[blocks]", "[[blocks]]", r"must have blocks as a table, got \[.*\]. Write \[blocks\]"),
        (
            "contribution = [9.1",
            "contribution = [1, 2",
            r"channel_gain must have shape \(13,\) or \(13, 4\), got \(12,\)",
        ),
    ],
)
def test_mistakes_in_the_file_are_named(old, new, message):
    assert old in example_problem()
    text = example_problem().replace(old, new, 1)
    with pytest.raises(ProblemError, match=message):
        parse_problem(text)


def test_one_interference_for_many_blocks():
    text = example_problem().replace(
        "interference_dbm = [-118, -112, -121, -109]", "interference_dbm = -110\nnum_blocks = 6"
    )
    np.testing.assert_allclose(parse_problem(text).interference_w, np.full(6, 1e-14))
    assert parse_problem(text.replace("num_blocks = 6", "num_blocks = 0")).num_blocks == 0


def problem_with_csv(tmp_path, header, rows):
    head = example_problem().split("[devices]")[0]
    (tmp_path / "devices.csv").write_text("\n".join([header, *rows]) + "\n")
    path = tmp_path / "problem.toml"
    path.write_text(head + '[devices]\ncsv = "devices.csv"\nmax_frequency_hz = 1e9\ncapacitance = 2e-28\n')
    return path


def test_devices_from_a_csv_beside_the_file(tmp_path):
    rows = ["0,5.0,-100,20,1e8", "1,4.0,-110,23,2e8"]
    path = problem_with_csv(
        tmp_path, "device,contribution,channel_gain_db,max_power_dbm,workload_cycles", rows
    )
    problem = load_problem(path)
    assert problem.contribution.tolist() == [5.0, 4.0]
    np.testing.assert_allclose(problem.channel_gain, [1e-10, 1e-11])
    np.testing.assert_allclose(problem.max_power_w, [0.1, 10**-0.7])
    other = tmp_path / "other.csv"
    other.write_text("contribution,channel_gain,max_power_w,workload_cycles\n7,1e-10,0.1,1e8\n")
    assert load_problem(path, devices_csv=other).contribution.tolist() == [7.0]


def test_comments_and_blank_lines_in_a_csv_are_no_devices(tmp_path):
    header = "contribution,channel_gain,max_power_w,workload_cycles"
    rows = ["# measured on the roof", "5,1e-10,0.1,1e8", "", "  # and in the street", "4,1e-11,0.1,1e8"]
    assert load_problem(problem_with_csv(tmp_path, header, rows)).contribution.tolist() == [5.0, 4.0]
    with pytest.raises(ProblemError, match="has a header and no devices. Give one row per device"):
        load_problem(problem_with_csv(tmp_path, header, rows[::2][:1]))


def test_gains_per_block_from_a_csv(tmp_path):
    header = "contribution,max_power_w,workload_cycles," + ",".join(f"channel_gain_{m}" for m in range(4))
    problem = load_problem(problem_with_csv(tmp_path, header, ["5,0.1,1e8,1e-10,2e-10,3e-10,4e-10"]))
    np.testing.assert_array_equal(problem.channel_gain, [[1e-10, 2e-10, 3e-10, 4e-10]])
    short = "contribution,max_power_w,workload_cycles,channel_gain_0"
    with pytest.raises(ProblemError, match=r"has 1 of 4 columns channel_gain_0"):
        load_problem(problem_with_csv(tmp_path, short, ["5,0.1,1e8,1e-10"]))


def test_missing_files_are_named(tmp_path):
    with pytest.raises(ProblemError, match=r"Cannot read the problem file .*nothing.toml: No such file"):
        load_problem(tmp_path / "nothing.toml")
    path = tmp_path / "problem.toml"
    path.write_text(example_problem())
    with pytest.raises(ProblemError, match=r"Cannot read the device file .*nothing.csv: No such file"):
        load_problem(path, devices_csv=tmp_path / "nothing.csv")


@pytest.mark.parametrize(
    "text", ["[channel]\nkind = 'fixed'", "preset = 'umi-3.5ghz'", "[fleet]\npath = 'a.csv'"]
)
def test_a_radio_cell_is_sent_to_its_own_command(tmp_path, text):
    path = tmp_path / "my_cell.toml"
    path.write_text(text)
    message = rf"{path} is a radio cell, not a problem file. Show it with: fedwave cell {path}; solve a round"
    with pytest.raises(ProblemError, match=message) as caught:
        load_problem(path)
    assert "\n" not in str(caught.value)


def test_paths_may_be_plain_strings(tmp_path):
    path = tmp_path / "problem.toml"
    path.write_text(example_problem())
    assert load_problem(str(path)).num_devices == 12


def test_a_quantity_twice_in_a_csv_is_refused(tmp_path):
    header = "contribution,channel_gain,max_power_w,max_power_dbm,workload_cycles"
    with pytest.raises(ProblemError, match=r"devices.csv gives max_power_w twice \(as max_power_dbm, too\)"):
        load_problem(problem_with_csv(tmp_path, header, ["5,1e-10,0.1,20,1e8"]))


def test_the_link_is_read_from_the_file():
    text = example_problem()
    for name in (
        "rate_efficiency",
        "max_spectral_efficiency",
        "rate_min_snr_db",
        "amplifier_efficiency",
        "circuit_power_w",
        "packet_error_waterfall",
        "max_round_delay_s",
        "fixed_delay_s",
        "min_snr_db",
        "min_frequency_hz",
    ):
        assert f"# {name} = " in text
        text = text.replace(f"# {name} = ", f"{name} = ")
    problem = parse_problem(text)
    assert problem.rate == RateModel(efficiency=0.65, max_spectral_efficiency=6.3, min_snr=10**-0.6)
    assert problem.radio == RadioPower(amplifier_efficiency=0.3, circuit_power_w=0.1)
    assert problem.packet_error_waterfall == 0.023
    assert (problem.max_round_delay_s, problem.fixed_delay_s) == (22.0, 0.1)
    assert problem.min_snr == pytest.approx(10**-0.3)
    assert problem.min_frequency_hz.tolist() == [0.3e9] * 12
    plain = parse_problem(example_problem())
    assert (plain.rate, plain.radio, plain.has_risks) == (RateModel(), RadioPower(), False)
    found = allocate(problem)
    assert found.num_selected > 0
    assert violations(problem, found) == ()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("rate_efficiency = 1.5", r"efficiency must lie in 0 to 1, got 1.5"),
        ("rate_efficiency = [0.5, 0.6]", r"must have one number in rate_efficiency, got \[0.5, 0.6\]"),
        (
            "circuit_power_w = 0.1\ncircuit_power_dbm = 20",
            r"gives circuit_power_w twice \(as circuit_power_dbm",
        ),
        (
            "circuit_powr_w = 0.1",
            r'unknown key "circuit_powr_w" in \[radio\]. Did you mean "circuit_power_w"',
        ),
    ],
)
def test_mistakes_in_the_link_are_named(line, message):
    text = example_problem().replace("[blocks]", f"{line}\n\n[blocks]", 1)
    with pytest.raises(ProblemError, match=message):
        parse_problem(text)


def test_decibels_of_the_link_are_converted():
    text = example_problem().replace("[blocks]", "circuit_power_dbm = 20\n\n[blocks]", 1)
    assert parse_problem(text).radio.circuit_power_w == pytest.approx(0.1)


@pytest.mark.parametrize("seed", range(20))
def test_every_number_of_a_problem_can_be_written_and_read_again(seed):
    rng = np.random.default_rng(seed)
    problem = link_problem(rng, [name for name in FEATURES if rng.random() < 0.6], max_devices=5)
    again = parse_problem(tomli_w.dumps(problem_tables(problem)))
    for field in fields(problem):
        assert np.array_equal(getattr(again, field.name), getattr(problem, field.name)), field.name
    assert "max_energy_j" not in problem_tables(problem)["limits"]  # one for each device
    assert set(problem_tables(problem)["blocks"]) == {"interference_w"}  # their number follows


def test_prices_stand_in_the_file_or_in_the_csv(tmp_path):
    text = example_problem().replace("energy_weight = 2.0", "energy_weight = [" + "2.0, " * 11 + "0.0]")
    problem = parse_problem(text)
    assert problem.energy_weight.tolist() == [2.0] * 11 + [0.0]
    assert problem_tables(problem)["weights"]["energy_weight"] == [2.0] * 11 + [0.0]
    csv = tmp_path / "devices.csv"
    csv.write_text("energy_weight\n" + "\n".join(str(k) for k in range(12)) + "\n")
    assert parse_problem(example_problem(), devices_csv=csv).energy_weight.tolist() == list(range(12))


def in_shares(text: str) -> str:
    """Return the example with blocks that are alike, shared."""
    start, end = text.index("interference_dbm"), text.index("[weights]")
    return f'{text[:start]}interference_dbm = -115\nnum_blocks = 4\naccess = "shared-band"\n\n{text[end:]}'


def test_sizes_and_offers_of_each_device_stand_in_the_file_or_in_the_csv(tmp_path):
    bits = [1e6 * (1 + k) for k in range(12)]
    offers = [[0.5 * k, 0.25 * k] for k in range(12)]
    sizes = [[5e5, 2e5 + k] for k in range(12)]
    added = f"device_bits = {bits}\noffer_contribution = {offers}\noffer_bits = {sizes}\n"
    problem = parse_problem(in_shares(example_problem()) + added)
    assert problem.device_bits.tolist() == bits
    assert problem.offer_contribution.tolist() == offers
    assert problem.offer_bits.tolist() == sizes
    tables = problem_tables(problem)["devices"]
    assert (tables["device_bits"], tables["offer_contribution"], tables["offer_bits"]) == (
        bits,
        offers,
        sizes,
    )
    header = "device_bits,offer_contribution_1,offer_bits_1,offer_bits_2,offer_contribution_2"
    rows = [f"{bits[k]},{offers[k][0]},{sizes[k][0]},{sizes[k][1]},{offers[k][1]}" for k in range(12)]
    csv = tmp_path / "devices.csv"
    csv.write_text("\n".join([header, *rows]) + "\n")
    same = parse_problem(in_shares(example_problem()), devices_csv=csv)
    for name in ("device_bits", "offer_contribution", "offer_bits"):
        assert getattr(same, name).tolist() == getattr(problem, name).tolist()
    csv.write_text("offer_contribution_1,offer_bits_2\n" + "1,2\n" * 12)
    with pytest.raises(ProblemError, match=r"got offer_contribution_1, offer_bits_2. Give both of each"):
        parse_problem(in_shares(example_problem()), devices_csv=csv)
    csv.write_text("offer_contribution_1\n" + "1\n" * 12)
    with pytest.raises(ProblemError, match=r"Give both of each"):
        parse_problem(in_shares(example_problem()), devices_csv=csv)


def test_without_sizes_of_their_own_nothing_of_them_is_written():
    assert not {"device_bits", "offer_contribution", "offer_bits"} & set(
        problem_tables(parse_problem(example_problem()))["devices"]
    )
