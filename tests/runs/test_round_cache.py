"""A run that finds its rounds in a cache has the bits of one that computes them in a folder."""

from __future__ import annotations

import numpy as np
import pytest

from fedwave.experiments import load_experiment
from fedwave.reproduce.single_run import COLUMNS, CURVES, figures_of, single_run
from fedwave.runs.folder import RunFolder
from fedwave.runs.kept_runs import curve_of
from fedwave.runs.round_cache import RoundCache, content_of, learning_key
from fedwave.runs.run import run_experiment

SMALL = ["num_rounds=4", "partition.num_devices=16", "model.channels=[4]", "execution.workers=1"]
SCHEMES = ["ural-ives", "ural", "nufm-greedy", "nufm-random", "ru-greedy", "ru-random"]


def small(scheme: str, *settings: str):
    return load_experiment(f"digits/{scheme}", [*SMALL, "cell.num_blocks=3", *settings])


def test_shared_rounds_have_the_bits_of_runs_in_folders(tmp_path) -> None:
    cache = RoundCache()
    remembered = {scheme: single_run(small(scheme), cache=cache) for scheme in SCHEMES}
    # Two schemes that train the same models, and one that has begun alike.
    assert remembered["nufm-random"].num_remembered == 4
    assert remembered["ru-random"].num_remembered == 4
    assert remembered["ural-ives"].num_remembered == 0
    for scheme, result in remembered.items():
        table = RunFolder(run_experiment(small(scheme), tmp_path / scheme).path).table()
        assert set(result.curves) == {name for name in CURVES if not name.startswith("training")}
        for name in result.curves:
            kept = curve_of(np.asarray(table[name], dtype=np.float64))
            np.testing.assert_array_equal(result.curve(name), kept, err_msg=f"{scheme} {name}")
        columns = {name: table[name] for name in COLUMNS if name in table}
        assert len(columns) >= 12
        for name, value in figures_of(columns, is_timed=False).items():
            if name not in ("iterations", "falls"):  # the planner's own
                np.testing.assert_array_equal(result.figures[name] if name != "cpu_time_s" else np.nan, value)


def test_a_round_takes_the_processor_some_time() -> None:
    assert single_run(small("nufm-greedy")).figures["cpu_time_s"] > 0.0


def test_a_run_that_leaves_the_known_path_computes_from_there_on() -> None:
    cache = RoundCache()
    single_run(small("nufm-greedy"), cache=cache)
    other = small("nufm-greedy", "selection.num_selected=2")
    alone, after_another = single_run(other), single_run(other, cache=cache)
    assert after_another.num_remembered == 0
    assert alone.curves == after_another.curves


@pytest.mark.parametrize(
    "setting",
    ["seed=1", "algorithm.inner_lr=0.03", "model.channels=[5]", "selection.similarity_penalty=2",
     "evaluation.num_steps=2", "cell.bits_per_parameter=8", "partition.shots=2", "faults.num_devices=1",
     "execution.precision=bfloat16", "execution.chunk_samples=7"],
)  # fmt: skip
def test_what_changes_learning_shares_nothing(setting: str) -> None:
    assert learning_key(small("nufm-greedy", setting)) != learning_key(small("nufm-greedy"))


@pytest.mark.parametrize(
    "setting",
    ["cell.energy_weight=3", "selection.everyone_computes=true", "num_rounds=9", "evaluation.every=2",
     "evaluation.training_devices=true"],
)  # fmt: skip
def test_who_pays_and_who_is_chosen_may_share(setting: str) -> None:
    assert learning_key(small("nufm-greedy", setting)) == learning_key(small("nufm-greedy"))


def test_the_oldest_models_are_forgotten_when_there_are_too_many() -> None:
    cache = RoundCache(max_bytes=1)
    first = single_run(small("nufm-greedy"), cache=cache)
    assert len(cache.models) == 1
    again = single_run(small("nufm-random"), cache=cache)
    assert again.num_remembered == 0
    assert again.curves["heldout_loss"] == first.curves["heldout_loss"]


def test_steps_with_a_state_are_not_shared() -> None:
    cache = RoundCache()
    for scheme in ("nufm-greedy", "nufm-random"):
        single_run(small(scheme, "algorithm.server_step=momentum"), cache=cache)
    assert cache.hits == 0


@pytest.mark.parametrize("step", ["clip-norm", "trimmed-mean", "median"])
def test_steps_without_a_state_are_shared_to_the_bit(step: str) -> None:
    cache, setting = RoundCache(), f"algorithm.server_step={step}"
    single_run(small("nufm-greedy", setting), cache=cache)
    shared = single_run(small("nufm-random", setting), cache=cache)
    assert shared.num_remembered == 4
    assert shared.curves == single_run(small("nufm-random", setting)).curves
    assert single_run(small("nufm-random"), cache=cache).num_remembered == 0


def test_batches_drawn_afresh_belong_to_their_round() -> None:
    cache = RoundCache()
    settings = ("algorithm.query_batch_size=1", "cell.delay_weight=1e9")  # nobody uploads: the model stays
    shared = single_run(small("ural", *settings), cache=cache)
    assert len(cache.reports) == 4
    norms = {float(reports.contribution.sum()) for reports in cache.reports.values()}
    assert len(norms) == 4
    assert shared.figures["gradient_norm"] == single_run(small("ural", *settings)).figures["gradient_norm"]


def test_models_that_differ_in_a_bit_have_other_contents() -> None:
    import torch

    one = {"a": torch.zeros(2), "b": torch.ones(1)}
    assert content_of(one) == content_of({"b": torch.ones(1), "a": torch.zeros(2)})
    assert content_of(one) != content_of({"a": torch.tensor([0.0, 1e-45]), "b": torch.ones(1)})


def test_training_devices_are_not_taken_for_held_out_ones() -> None:
    cache = RoundCache()
    also = small("nufm-greedy", "evaluation.training_devices=true")
    first, again = single_run(also, cache=cache), single_run(also, cache=cache)
    assert again.num_remembered == 4
    alone = single_run(small("nufm-greedy"))
    assert first.curves["heldout_loss"] == again.curves["heldout_loss"] == alone.curves["heldout_loss"]
    assert first.curves["training_loss"] == again.curves["training_loss"] != alone.curves["heldout_loss"]
    assert "training_loss" not in alone.curves
