"""Learning: models, meta-gradients, local updates, aggregation, evaluation. Knows no radio and no files."""

from fedwave.learning.aggregate import average
from fedwave.learning.evaluate import Evaluation, adapt, evaluate
from fedwave.learning.local_update import LocalUpdate, local_update
from fedwave.learning.losses import Batch, accuracy, cross_entropy
from fedwave.learning.meta_gradient import MetaStep, meta_gradient, meta_step
from fedwave.learning.models import Model, build_model
from fedwave.learning.parameters import Parameters

__all__ = [
    "Batch",
    "Evaluation",
    "LocalUpdate",
    "MetaStep",
    "Model",
    "Parameters",
    "accuracy",
    "adapt",
    "average",
    "build_model",
    "cross_entropy",
    "evaluate",
    "local_update",
    "meta_gradient",
    "meta_step",
]
