"""Local rules: how a device moves its model in one local step."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fedwave.learning.rules.base import LocalRule, LocalStep
from fedwave.learning.rules.fedprox import FedProx
from fedwave.learning.rules.meta_descent import MetaDescent
from fedwave.learning.rules.plain_descent import PlainDescent

__all__ = ["LOCAL_RULES", "FedProx", "LocalRule", "LocalStep", "MetaDescent", "PlainDescent"]


def _plain(*, inner_lr: float, meta_lr: float) -> PlainDescent:
    del inner_lr  # there is no inner step
    return PlainDescent(meta_lr)


def _fedprox(*, inner_lr: float, meta_lr: float, mu: float = FedProx.mu) -> FedProx:
    del inner_lr  # there is no inner step
    return FedProx(meta_lr, mu)


# Each is called with the keywords ``inner_lr`` and ``meta_lr``.
LOCAL_RULES: dict[str, Callable[..., LocalRule]] = {
    "exact": partial(MetaDescent, method="exact"),
    "exact-query": partial(MetaDescent, method="exact", has_query_hessian=True),
    "first-order": partial(MetaDescent, method="first-order"),
    "hessian-free": partial(MetaDescent, method="hessian-free"),
    "plain": _plain,
    "fedprox": _fedprox,
}
