"""Counted multiply-adds against those of a hand."""

from __future__ import annotations

import pytest
import torch

from fedwave.errors import ConfigError
from fedwave.learning import LOCAL_RULES, TASKS, build_model
from fedwave.learning.operations import SampleOperations, sample_operations
from fedwave.learning.rules import RULE

# The paper's CNN on a 28 x 28 image, forward: 3 x 3 convolutions to 32, 64 and 128 channels on 28^2, 14^2 and
# 7^2 pixels, and a layer from 4^2 * 128 features to 10 classes.
LAYERS = (28**2 * 9 * 1 * 32, 14**2 * 9 * 32 * 64, 7**2 * 9 * 64 * 128, 4**2 * 128 * 10)
FORWARD = sum(LAYERS)
# Backward, each layer has a product for its weights and, but for the first, one for its input.
GRADIENT = 3 * FORWARD - LAYERS[0]


def count(kind, rule, shape, **options):
    model = build_model(kind, input_shape=shape, num_outputs=10, **options)
    return sample_operations(
        model,
        TASKS["classification"](),
        RULE.call(LOCAL_RULES[rule], {}, inner_lr=0.01, meta_lr=0.01),
        sample=torch.zeros(shape),
        target=torch.tensor(0),
    )


@pytest.mark.parametrize("rule", ["plain", "fedprox", "first-order"])
def test_a_gradient_of_the_papers_network_is_three_forward_passes_less_one_product(rule):
    assert FORWARD == 7_471_616
    assert count("cnn", rule, (1, 28, 28)) == SampleOperations(support=GRADIENT, query=GRADIENT)


def test_hessian_free_takes_two_more_gradients_on_the_support():
    assert count("cnn", "hessian-free", (1, 28, 28)) == SampleOperations(support=3 * GRADIENT, query=GRADIENT)


def test_exact_differentiates_the_supports_gradient_again():
    """A product A B in the first pass is two in the second: its factors' gradients. Softmax: x W, then x' g.

    Backward through x' g gives a product for g (x is data), through x W one for W: 2 + 2 in all.
    """
    features = 28 * 28
    assert count("softmax", "exact", (1, 28, 28)) == SampleOperations(
        support=4 * features * 10, query=2 * features * 10
    )
    paper = count("cnn", "exact", (1, 28, 28))
    assert paper.query == GRADIENT
    # Linear layers with an input gradient: 3 products, then 6; the first layer 2, then 2.
    assert paper.support == 9 * FORWARD - 5 * LAYERS[0]


def test_the_papers_devices_take_28_million_a_sample():
    # Two classes with one support sample each; Fashion-MNIST's devices have 14 samples on average.
    assert count("cnn", "exact", (1, 28, 28)).mean(2, 12) == pytest.approx(28.5e6, rel=0.01)


def test_a_mean_weighs_by_how_many_there_are():
    assert SampleOperations(support=10.0, query=4.0).mean(1, 2) == 6.0
    assert SampleOperations(support=10.0, query=4.0).mean(0, 2) == 4.0
    with pytest.raises(ConfigError, match="a device needs samples, got 0 support and 0 query"):
        SampleOperations(support=1.0, query=1.0).mean(0, 0)
