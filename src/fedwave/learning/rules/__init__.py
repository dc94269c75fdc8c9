"""Local rules: how a device moves its model in one local step."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fedwave.learning.rules.base import LocalRule, LocalStep
from fedwave.learning.rules.fedprox import FedProx
from fedwave.learning.rules.meta_descent import MetaDescent
from fedwave.learning.rules.plain_descent import PlainDescent
from fedwave.parts import PartKind

__all__ = ["LOCAL_RULES", "RULE", "FedProx", "LocalRule", "LocalStep", "MetaDescent", "PlainDescent"]

# Each is called with those of the keywords ``inner_lr`` and ``meta_lr`` that it names, and with its options.
LOCAL_RULES: dict[str, Callable[..., LocalRule]] = {
    "exact": partial(MetaDescent, method="exact", has_query_hessian=False),
    "exact-query": partial(MetaDescent, method="exact", has_query_hessian=True),
    "first-order": partial(MetaDescent, method="first-order", has_query_hessian=False),
    "hessian-free": partial(MetaDescent, method="hessian-free", has_query_hessian=False),
    "plain": PlainDescent,
    "fedprox": FedProx,
}
RULE = PartKind("local rule", LOCAL_RULES, fills_in=("inner_lr", "meta_lr"), protocol=LocalRule)
