"""The gradients of the other local rules, by hand; that of NUFM is in examples/plain_nufm.py."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from examples.plain_nufm import Device, Theta, gradient_of, leaves, meta_gradient, moved


def plain(module: Any, theta: Theta, device: Device, inner_lr: float, loss: Any) -> Any:
    """Return the loss on all samples together and its gradient, as FedAvg takes them."""
    del inner_lr
    everything = tuple(torch.cat(parts) for parts in zip(device.support, device.query, strict=True))
    value, slope = gradient_of(module, leaves(theta), everything, loss)
    return value.detach(), slope


def first_order(module: Any, theta: Theta, device: Device, inner_lr: float, loss: Any) -> Any:
    """Return the gradient at the adapted model, taken for one at the model itself."""
    _, inner = gradient_of(module, leaves(theta), device.support, loss)
    value, slope = gradient_of(module, leaves(moved(theta, inner, inner_lr)), device.query, loss)
    return value.detach(), slope


def exact_query(module: Any, theta: Theta, device: Device, inner_lr: float, loss: Any) -> Any:
    """Return Eq. (3) as it stands, with D'' = D'."""
    value, slope = first_order(module, theta, device, inner_lr, loss)
    start = leaves(theta)
    _, curved = gradient_of(module, start, device.query, loss, create_graph=True)
    along = sum((curved[name] * slope[name]).sum() for name in start)
    product = torch.autograd.grad(along, list(start.values()))
    return value, moved(slope, dict(zip(start, product, strict=True)), inner_lr)


def fedprox(start: Theta, module: Any, theta: Theta, device: Device, inner_lr: float, loss: Any) -> Any:
    """Return the gradient on all samples and a pull of 0.01 times the way from the global model ``start``."""
    value, slope = plain(module, theta, device, inner_lr, loss)
    pull = {name: theta[name] - start[name] for name in theta}
    length = sum(float(part.square().sum()) for part in pull.values())
    return value + 0.005 * length, moved(slope, pull, -0.01)


GRADIENTS = {
    "exact": meta_gradient,
    "hessian-free": meta_gradient,  # in the limit
    "exact-query": exact_query,
    "first-order": first_order,
    "plain": plain,
}


def gradient_by_hand(rule: str, start: Theta) -> Any:
    """Return the gradient of a rule in a round that began with the global model ``start``."""
    return partial(fedprox, start) if rule == "fedprox" else GRADIENTS[rule]
