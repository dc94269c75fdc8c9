"""The meta-gradient of Per-FedAvg and NUFM: exact, first-order and Hessian-free (Eq. (3), (51), (52))."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fedwave.errors import ConfigError, did_you_mean
from fedwave.learning.objective import Loss, loss_and_gradient
from fedwave.learning.parameters import Parameters, norm, step, with_gradients

GRADIENT_KINDS = ("exact", "first-order", "hessian-free")


@dataclass(frozen=True)
class MetaStep:
    """A meta-gradient together with the loss it descends: f(theta - alpha grad f(theta; D); D')."""

    gradient: Parameters
    query_loss: Tensor  # scalar, or one entry per device of a stack


def meta_step(
    loss: Loss,
    params: Parameters,
    support: Any,
    query: Any,
    *,
    inner_lr: float,
    method: str = "exact",
    hessian_batch: Any = None,
    epsilon: float | None = None,
) -> MetaStep:
    """Return the meta-gradient (I - alpha H(theta; D'')) grad f(theta - alpha grad f(theta; D); D'), Eq. (3).

    The query loss after adaptation comes with it, at no further cost.

    ``loss(params, batch)`` is a scalar tensor; ``support``, ``query`` and ``hessian_batch`` are D, D' and D''
    in whatever form ``loss`` takes. D'' defaults to D. ``method``:

    - ``exact``: one Hessian-vector product by double backward; the Hessian itself is never formed.
    - ``first-order``: the Hessian term is dropped, Eq. (51).
    - ``hessian-free``: the product by a central difference of gradients, Eq. (52). ``epsilon`` is the paper's
      step along the vector; left out, it is scaled to the vector and the parameters, see ``_step_size``.

    ``loss`` may also return a vector, one entry per device, if every tensor in ``params`` has a leading
    device axis; then the result is the stack of the devices' meta-gradients.
    """
    require_method(method)
    theta = with_gradients(params)
    if inner_lr == 0.0:  # no inner step: the ordinary gradient on D', and alpha H vanishes
        query_loss, outer = loss_and_gradient(loss, theta, query)
        return MetaStep(outer, query_loss)

    product_in_same_graph = method == "exact" and hessian_batch is None
    _, inner = loss_and_gradient(loss, theta, support, create_graph=product_in_same_graph)
    with torch.no_grad():
        adapted = step(theta, inner, inner_lr)
    query_loss, outer = loss_and_gradient(loss, with_gradients(adapted), query)
    if method == "first-order":
        return MetaStep(outer, query_loss)

    if method == "hessian-free":
        product = _finite_difference_product(
            loss,
            params,
            support if hessian_batch is None else hessian_batch,
            outer,
            epsilon,
            query_loss.dim() == 1,
        )
    else:
        if not product_in_same_graph:
            _, inner = loss_and_gradient(loss, theta, hessian_batch, create_graph=True)
        product = hessian_product(inner, theta, outer)
    with torch.no_grad():
        return MetaStep(step(outer, product, inner_lr), query_loss)


def meta_gradient(
    loss: Loss, params: Parameters, support: Any, query: Any, *, inner_lr: float, **options: Any
) -> Parameters:
    """Return the gradient alone of ``meta_step``, Eq. (3), which has the same arguments."""
    return meta_step(loss, params, support, query, inner_lr=inner_lr, **options).gradient


def require_method(method: str) -> None:
    """Raise unless ``method`` is a known way to the meta-gradient."""
    if method not in GRADIENT_KINDS:
        raise ConfigError(
            f'method must be a known meta-gradient, got "{method}". {did_you_mean(method, GRADIENT_KINDS)}'
        )


def hessian_product(
    inner: Parameters, theta: Parameters, vector: Parameters, *, keeps_graph: bool = False
) -> Parameters:
    """Return the Hessian times ``vector`` by differentiating the graph of the gradient ``inner``.

    ``keeps_graph`` leaves the graph for further products.
    """
    names = list(theta)
    # A loss linear in a parameter leaves a gradient without a graph: its rows of the Hessian are zero.
    curved = [name for name in names if inner[name].requires_grad]
    if not curved:
        return {name: torch.zeros_like(theta[name]) for name in names}
    products = torch.autograd.grad(
        [inner[name] for name in curved],
        [theta[name] for name in names],
        [vector[name] for name in curved],
        retain_graph=keeps_graph,
        allow_unused=True,
        materialize_grads=True,
    )
    return dict(zip(names, products, strict=True))


def _finite_difference_product(
    loss: Loss,
    params: Parameters,
    batch: Any,
    vector: Parameters,
    epsilon: float | None,
    is_stacked: bool,
) -> Parameters:
    """Return the Hessian times ``vector`` by central differences of the gradient, Eq. (52).

    The two gradients are taken in double precision where the batch can be had in it: their difference is
    tiny, and what single precision leaves of it can outweigh it.
    """
    like = next(iter(params.values())).dtype
    if hasattr(batch, "double"):
        batch = batch.double()
        params = {name: value.double() for name, value in params.items()}
        vector = {name: value.double() for name, value in vector.items()}
    size = _step_size(params, vector, epsilon, is_stacked)

    def spread(value: Tensor) -> Tensor:
        return size.reshape(-1, *[1] * (value.dim() - 1)) if is_stacked else size

    with torch.no_grad():
        ahead = {k: v + spread(v) * vector[k] for k, v in params.items()}
        behind = {k: v - spread(v) * vector[k] for k, v in params.items()}
    _, gradient_ahead = loss_and_gradient(loss, with_gradients(ahead), batch)
    _, gradient_behind = loss_and_gradient(loss, with_gradients(behind), batch)
    return {
        name: ((gradient_ahead[name] - gradient_behind[name]) / (2.0 * spread(value))).to(like)
        for name, value in params.items()
    }


def _step_size(params: Parameters, vector: Parameters, epsilon: float | None, is_stacked: bool) -> Tensor:
    """Return the step along the vector: ``epsilon``, or one that fits float precision and kinked networks.

    The parameters then move by 10 eps^(2/3) times their root mean square. A smooth loss would bear eps^(1/3),
    but ReLUs and max-pools switch within such a step, and each switch adds its jump divided by the step. At
    eps^(2/3) switches are rare and rounding costs about eps^(1/3) of the product: 6e-6 in float64, half a
    percent in float32.
    """
    length = norm(vector, is_stacked=is_stacked)
    if epsilon is not None:
        return torch.full_like(length, epsilon)
    count = sum(value[0].numel() if is_stacked else value.numel() for value in params.values())
    detached = {name: value.detach() for name, value in params.items()}
    root_mean_square = norm(detached, is_stacked=is_stacked) / count**0.5
    move = 10.0 * torch.finfo(length.dtype).eps ** (2.0 / 3.0) * root_mean_square
    move = torch.where(move > 0, move, torch.full_like(move, torch.finfo(length.dtype).eps ** (2.0 / 3.0)))
    # A vector of zero has the product zero, whatever the step.
    return torch.where(
        length > 0, move / length.clamp_min(torch.finfo(length.dtype).tiny), torch.ones_like(length)
    )
