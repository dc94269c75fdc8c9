"""What a device descends: the loss of its model on its task."""

from __future__ import annotations

from torch import Tensor

from fedwave.learning.batch import Batch
from fedwave.learning.meta_gradient import Loss
from fedwave.learning.models.base import Model
from fedwave.learning.parameters import Parameters
from fedwave.learning.tasks.base import Task


def objective(model: Model, task: Task) -> Loss:
    """Return f(theta; D) of Eq. (1): stacked parameters and a batch in, one loss for each device out."""

    def loss(parameters: Parameters, batch: Batch) -> Tensor:
        outputs = model.outputs(parameters, batch.inputs)
        return task.loss(outputs.to(batch.weights.dtype), batch)  # of products in bfloat16: back to float32

    return loss
