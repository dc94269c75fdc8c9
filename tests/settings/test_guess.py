"""Which setting was meant: by symbol, by a part of its name, by a slip of the finger."""

from __future__ import annotations

import pytest

from fedwave.errors import ConfigError
from fedwave.experiments.load import load_experiment
from fedwave.experiments.schema import Experiment
from fedwave.settings.guess import guess_key, keys_of
from fedwave.wireless.settings.config import CellConfig


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("lambda", "selection.similarity_penalty or selection.variance_penalty"),
        ("lambda_2", "selection.variance_penalty"),
        ("beta", "algorithm.meta_lr"),
        ("alpha", "algorithm.inner_lr"),
        ("tau", "algorithm.num_local_steps"),
        ("--rounds", "num_rounds"),
        ("--num-rounds", "num_rounds"),
        ("learning.num_selcted", "selection.num_selected"),
    ],
)
def test_a_word_stands_for_a_setting(word: str, meant: str) -> None:
    assert guess_key(Experiment, word) == f"Did you mean {meant}?"


def test_what_is_near_nothing_has_no_guess() -> None:
    assert guess_key(Experiment, "zebra") == guess_key(Experiment, "--") == ""
    assert guess_key(CellConfig, "beta") == ""


def test_keys_are_those_that_settings_take() -> None:
    known = keys_of(Experiment)
    assert {"seed", "data.dataset.kind", "algorithm.meta_lr", "cell.fleet.max_power_dbm"} <= set(known)
    assert known["num_rounds"] == "K, rounds of training."


def test_a_wrong_key_is_looked_for_in_all_sections() -> None:
    with pytest.raises(
        ConfigError, match='unknown key "lambda". Did you mean selection.similarity_penalty or'
    ):
        load_experiment("digits/nufm", ["lambda=2"])
    with pytest.raises(ConfigError, match='unknown key "rounds". Did you mean "num_rounds"'):
        load_experiment("digits/nufm", ["rounds=2"])
