"""Losses and metrics against numpy in float64, sample by sample."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from torch import Tensor

from fedwave.errors import DataError
from fedwave.learning import TASKS, Batch
from fedwave.learning.tasks import Classification, Metric, Regression
from fedwave.testing import check_task
from tests.learning.stacks import class_samples, padded, real_samples

SIZES = (4, 1, 6)


def batch_of(task: str, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Batch]:
    """Return outputs and a batch of three devices with 4, 1 and 6 samples and 3 outputs."""
    samples = (class_samples if task == "classification" else real_samples)(SIZES, (2,), 3, seed=0)
    outputs = 3 * torch.randn(3, 6, 3, generator=torch.Generator().manual_seed(1))
    return outputs.to(dtype), padded(samples, dtype)


def test_cross_entropy_is_the_mean_of_minus_log_of_the_right_class_share() -> None:
    outputs, batch = batch_of("classification")
    expected = []
    for device, size in enumerate(SIZES):
        own = outputs[device, :size].double().numpy()
        right = own[np.arange(size), batch.targets[device, :size].numpy()]
        expected.append(np.mean(np.log(np.exp(own).sum(1)) - right))
    np.testing.assert_allclose(Classification().loss(outputs, batch).numpy(), expected, rtol=1e-6)


def test_a_sample_scores_one_if_its_largest_output_is_the_right_class() -> None:
    outputs = torch.tensor([[[0.1, 0.9, 0.0], [5.0, 4.0, 3.0], [0.0, 0.0, 1.0]]])
    batch = Batch(torch.zeros(1, 3, 1), torch.tensor([[1, 2, 2]]), torch.full((1, 3), 1 / 3))
    assert Classification().scores(outputs, batch).tolist() == [[1.0, 0.0, 1.0]]


def test_squared_error_is_averaged_over_the_outputs_and_then_over_the_samples() -> None:
    outputs, batch = batch_of("regression")
    expected = [
        np.mean(((outputs - batch.targets)[device, :size].double().numpy()) ** 2)
        for device, size in enumerate(SIZES)
    ]
    np.testing.assert_allclose(Regression().loss(outputs, batch).numpy(), expected, rtol=1e-6)


def test_a_sample_of_a_regression_scores_its_mean_absolute_error() -> None:
    outputs = torch.tensor([[[1.0, -2.0], [0.0, 4.0]]])
    batch = Batch(torch.zeros(1, 2, 1), torch.tensor([[[2.0, 2.0], [0.0, 1.0]]]), torch.full((1, 2), 0.5))
    assert Regression().scores(outputs, batch).tolist() == [[2.5, 1.5]]
    assert Regression().loss(outputs, batch).tolist() == [(17 / 2 + 9 / 2) / 2]


def test_targets_without_an_axis_for_the_outputs_are_refused_and_not_broadcast() -> None:
    batch = Batch(torch.zeros(3, 3, 1), torch.zeros(3, 3), torch.full((3, 3), 1 / 3))
    for measure in (Regression().loss, Regression().scores):
        with pytest.raises(DataError, match=r"shape \(3, 3, 1\), got \(3, 3\). Give each sample") as caught:
            measure(torch.zeros(3, 3, 1), batch)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", TASKS)
def test_every_task_keeps_the_contract_and_travels(name: str) -> None:
    check_task(name, learns="classes" if name == "classification" else "values")
    task = TASKS[name]()
    travelled = pickle.loads(pickle.dumps(task))  # noqa: S301 - our own bytes
    assert travelled == task
    assert travelled.metric == task.metric


@pytest.mark.parametrize("name", TASKS)
def test_a_better_model_has_the_better_metric_and_the_smaller_loss(name: str) -> None:
    task = TASKS[name]()
    _, batch = batch_of(name)
    perfect = (
        torch.nn.functional.one_hot(batch.targets, 3).float() * 9
        if name == "classification"
        else batch.targets
    )
    poor = -perfect
    assert bool((task.loss(perfect, batch) < task.loss(poor, batch)).all())
    gain = task.scores(perfect, batch) - task.scores(poor, batch)
    assert bool((gain > 0).all() if task.metric.higher_is_better else (gain < 0).all())
    if task.metric.is_share:
        assert task.scores(perfect, batch).unique().tolist() == [1.0]
        assert task.scores(poor, batch).unique().tolist() == [0.0]


def test_the_metrics_are_named_as_the_columns_are() -> None:
    assert Classification().metric == Metric("accuracy", higher_is_better=True, is_share=True)
    assert Regression().metric == Metric("mean_absolute_error", higher_is_better=False, is_share=False)
