"""Contract checks: anybody's part is put through what ours pass, as scikit-learn's ``check_estimator`` does.

Each check takes a part (its class or function, a name, or ``package.module:Name``) and the part's options. It
raises a ``ContractError`` of one line if the part breaks the contract of its kind. No test framework needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedwave.lazy import lazy_names

if TYPE_CHECKING:
    from fedwave.testing.contract import ContractError
    from fedwave.testing.data import check_dataset, check_partition
    from fedwave.testing.learning import check_model, check_rule, check_server_step, check_task
    from fedwave.testing.method import check_method
    from fedwave.testing.planner import check_planner
    from fedwave.testing.policy import check_policy
    from fedwave.testing.radio import check_channel, check_interference, check_placement

__all__ = [
    "ContractError",
    "check_channel",
    "check_dataset",
    "check_interference",
    "check_method",
    "check_model",
    "check_partition",
    "check_placement",
    "check_planner",
    "check_policy",
    "check_rule",
    "check_server_step",
    "check_task",
]

__getattr__, __dir__ = lazy_names(__name__)
