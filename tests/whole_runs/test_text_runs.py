"""Text end to end: token ids from a file, a classifier with ``nn.Embedding``, trained by a federation."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.testing import assert_allclose

from fedwave.data import Dataset, dataset_from_arrays
from fedwave.errors import ModelError
from fedwave.experiments import Experiment, experiment_from
from fedwave.experiments.build import build_simulation
from fedwave.learning import LOCAL_RULES
from fedwave.runs.run import resume_run, run_experiment
from fedwave.simulation.simulation import Simulation
from tests.learning.models.user_modules import TextNet

MODULES = "tests.learning.models.user_modules"
NUM_CLASSES = 3


def texts(num_texts: int = 240) -> tuple[np.ndarray, np.ndarray]:
    """Texts of six words; two of them are words that only their class uses."""
    rng = np.random.default_rng(4)
    labels = rng.integers(NUM_CLASSES, size=num_texts)
    tokens = rng.integers(3 * NUM_CLASSES, TextNet.NUM_WORDS, size=(num_texts, 6))
    tokens[:, :2] = 3 * labels[:, None] + rng.integers(3, size=(num_texts, 2))
    return rng.permuted(tokens, axis=1), labels


def experiment(**changes: Any) -> Experiment:
    settings: dict[str, Any] = {
        "num_rounds": 30,
        "data": {"dataset": "passed-from-python"},
        "partition": {"num_devices": 12},
        "model": {"kind": f"{MODULES}:TextNet"},
        "algorithm": {"inner_lr": 0.5, "meta_lr": 2.0},
        "selection": {"policy": "uniform", "num_selected": 4},
        "evaluation": {"every": 30},
    }
    return experiment_from({**settings, **changes})


def simulation(dataset: Dataset | None = None, **changes: Any) -> Simulation:
    return build_simulation(experiment(**changes), dataset=dataset or dataset_from_arrays(*texts()))


def test_a_text_classifier_learns_from_a_file_of_token_ids(tmp_path: Path) -> None:
    tokens, labels = texts()
    np.savez(tmp_path / "texts.npz", inputs=tokens, labels=labels)
    settings = experiment(data={"dataset": {"kind": "arrays", "path": str(tmp_path / "texts.npz")}})
    result = run_experiment(settings, tmp_path / "run")
    assert result.summary["final"]["heldout_accuracy"] > 0.9
    run_experiment(settings.model_copy(update={"num_rounds": 10}), tmp_path / "again")
    config = tmp_path / "again" / "config.toml"
    config.write_text(config.read_text().replace("num_rounds = 10", "num_rounds = 30"))
    resume_run(tmp_path / "again")
    models = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("run", "again")]
    assert models[0] == models[1]


@pytest.mark.parametrize("rule", LOCAL_RULES)
@pytest.mark.parametrize("batching", ["vmap", "loop"])
def test_every_rule_trains_on_tokens_in_either_way_of_batching(rule: str, batching: str) -> None:
    built = simulation(algorithm={"rule": rule}, execution={"batching": batching})
    parameters = built.model.initial_parameters(np.random.default_rng(0))
    chunk = built.local.compute(0, parameters, np.arange(3))
    assert np.isfinite(chunk.gradient_norms).all()
    assert chunk.gradient_norms.min() > 0


def test_a_plain_step_on_tokens_is_that_of_torch() -> None:
    built = simulation(algorithm={"rule": "plain", "meta_lr": 0.3, "num_local_steps": 1})
    parameters = built.model.initial_parameters(np.random.default_rng(1))
    chunk = built.local.compute(0, parameters, np.array([2]))
    module = built.model.to_module(parameters)
    device = built.local.pool.devices[2]
    own = np.concatenate([device.support, device.query])
    tokens, labels = (torch.from_numpy(values[own]) for values in texts())
    F.cross_entropy(module(tokens), labels).backward()
    torch.optim.SGD(module.parameters(), lr=0.3).step()
    for name, value in module.state_dict().items():
        assert_allclose(chunk.parameters[name][0].numpy(), value.numpy(), atol=1e-6)


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64, np.uint16, np.uint32, np.uint64])
def test_whole_numbers_of_any_type_are_the_same_token_ids(dtype: type) -> None:
    tokens, labels = texts()
    expected, found = (
        simulation(dataset_from_arrays(tokens.astype(one), labels)).local.pool.support(np.arange(4)).inputs
        for one in (np.int64, dtype)
    )
    assert found.dtype == torch.int64
    assert torch.equal(found, expected)


def test_tokens_are_never_standardised_and_a_run_says_so_unless_told() -> None:
    told, untold = simulation(data={"dataset": "passed-from-python", "standardise": "none"}), simulation()
    for built in (told, untold):
        inputs = built.local.pool.query(np.arange(4)).inputs
        assert set(inputs.unique().tolist()) <= set(range(TextNet.NUM_WORDS))
    assert not told.warnings
    assert any("token ids (int64) and are not standardised" in one for one in untold.warnings)


def test_text_over_a_cell_counts_the_operations_of_its_model() -> None:
    cell = {"preset": "umi-3.5ghz", "num_blocks": 3, "fleet": {"cycles_per_operation": 1.0}}
    built = simulation(cell=cell, selection={})
    state = built.initial_state()
    with closing(built.open_devices()) as devices:
        _, record = built.run_round(state, devices)
    assert np.isfinite(record.columns["train_loss"])


@pytest.mark.parametrize("kind", ["cnn", "mlp", "softmax"])
def test_models_of_real_numbers_refuse_token_ids_in_one_line(kind: str) -> None:
    tokens, labels = texts()
    images = dataset_from_arrays(tokens.reshape(-1, 1, 2, 3), labels)
    with pytest.raises(ModelError, match=rf"model.kind {kind} takes real numbers.*token ids.*float32"):
        simulation(images, model={"kind": kind})


def test_a_module_of_real_numbers_says_what_its_inputs_are() -> None:
    with pytest.raises(ModelError, match=r"small_user_net failed in its forward.*token ids.*float32"):
        simulation(model={"kind": f"{MODULES}:small_user_net"})


@pytest.mark.parametrize(
    ("module", "message"),
    [("MixingTextNet", "mixes samples"), ("NoisyTextNet", "draws random numbers")],
)
def test_a_text_model_is_checked_as_others_are(module: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        simulation(model={"kind": f"{MODULES}:{module}"})
