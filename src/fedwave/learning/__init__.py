"""Learning: tasks, models, meta-gradients, local rules, server steps, evaluation. No radio and no files."""

from fedwave.learning.batch import Batch
from fedwave.learning.evaluate import Evaluation, adapt, evaluate
from fedwave.learning.local_update import LocalUpdate, local_update
from fedwave.learning.meta_gradient import MetaStep, meta_gradient, meta_step
from fedwave.learning.models import MODELS, Model, build_model, model_options
from fedwave.learning.parameters import Parameters
from fedwave.learning.quantise import message_bits, received_model
from fedwave.learning.rules import LOCAL_RULES, LocalRule, LocalStep
from fedwave.learning.server_steps import SERVER_STEPS, ServerStep, average
from fedwave.learning.tasks import TASKS, Task
from fedwave.metric import Metric

__all__ = [
    "LOCAL_RULES",
    "MODELS",
    "SERVER_STEPS",
    "TASKS",
    "Batch",
    "Evaluation",
    "LocalRule",
    "LocalStep",
    "LocalUpdate",
    "MetaStep",
    "Metric",
    "Model",
    "Parameters",
    "ServerStep",
    "Task",
    "adapt",
    "average",
    "build_model",
    "evaluate",
    "local_update",
    "message_bits",
    "meta_gradient",
    "meta_step",
    "model_options",
    "received_model",
]
