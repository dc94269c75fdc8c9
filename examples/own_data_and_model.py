"""Your own arrays and your own torch module, trained with NUFM and adapted to a new device."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn

from fedwave import dataset_from_arrays, experiment_from, run_experiment


def make_net(input_shape: tuple[int, ...], num_outputs: int) -> nn.Module:
    """Any module will do that treats its samples one by one (GroupNorm, not BatchNorm)."""
    return nn.Sequential(nn.Linear(input_shape[0], 32), nn.Tanh(), nn.Linear(32, num_outputs))


def main() -> None:
    # Six classes of noisy points around six centres; every device will see two of the classes.
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(6, 10))
    labels = rng.integers(0, 6, 3000)
    inputs = centres[labels] + 0.5 * rng.normal(size=(3000, 10))

    experiment = experiment_from(
        {
            "name": "own data",
            "scheme": "nufm",
            "num_rounds": 30,
            "partition": {"num_devices": 60},
            "model": {"kind": f"{make_net.__module__}:make_net"},
            "algorithm": {"inner_lr": 0.2, "meta_lr": 0.2},
            "selection": {"num_selected": 10},
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        result = run_experiment(
            experiment, Path(folder) / "run", dataset=dataset_from_arrays(inputs, labels, name="points")
        )
        module = make_net((10,), 6)
        module.load_state_dict(load_file(result.path / "model.safetensors"))

    print(f"held-out accuracy after one adaptation step: {result.summary['final']['heldout_accuracy']:.1%}")
    with torch.no_grad():
        scores = module(torch.from_numpy(inputs[:3]).float())
    print(f"class scores of three points: {tuple(scores.shape)}")
    assert result.summary["final"]["heldout_accuracy"] > 0.9


if __name__ == "__main__":
    main()
